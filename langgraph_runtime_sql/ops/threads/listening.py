"""Listening: which of its threads have changed, for a client that lists them."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import hooks, json_codec, pacing, runtime
from langgraph_runtime_sql.events.changes import READY, Item, Metadata
from langgraph_runtime_sql.events.subscription import EVENT_MS, MS_A_BYTE
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.caller import caller
from langgraph_runtime_sql.gate.operations import THREAD_SEARCH
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.threads import search
from langgraph_runtime_sql.search import filters, metadata_index
from langgraph_runtime_sql.stopping import hand_over
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.tenancy.scope import Scope

STOPS = "The server stops. Ask again at this path, and read the list again."


@dataclass(frozen=True, slots=True)
class Listed:
    """The threads that a search without conditions shows to a caller. It is a `changes.View`.

    Attributes:
        scope: The rows of the caller's tenant.
        visible: What the authorization handler's filter shows.
        metadata: What the handler has added to the search.
        status: The status that the handler has added to the search.
        without: The entries with which a hook hides threads.
    """

    scope: Scope
    visible: Visible
    metadata: Metadata
    status: str | None
    without: frozenset[metadata_index.Entry]

    @property
    def is_limited(self) -> bool:
        """Whether anything but the tenant hides threads."""
        return bool(self.visible.is_limited or self.metadata or self.status or self.without)

    def shows(self, metadata: Metadata, status: str | None = None) -> bool:
        """Return whether a search shows a thread with this metadata, and this status if it is known."""
        return (
            self.status in (None, status or self.status)
            and filters.contains(metadata, self.metadata)
            and self.without.isdisjoint(metadata_index.entries(metadata))
            and self.visible.shows(metadata)
        )


async def listed(ctx: Any = None) -> Listed:
    """Return what the caller may list. Handlers and hooks are asked as for a search.

    Raises:
        HTTPException: the handler refuses; (422) it limits searches by values.
    """
    value = search.as_asked(None, None, None, 0, 0)
    visible = await reads.admit(ctx, THREAD_SEARCH, value)
    if value["values"]:
        raise HTTPException(
            422,
            "The authorization handler limits searches by `values`, which changes do not name. "
            "Search instead of listening.",
        )
    without: dict[str, Any] = {}
    if hooks.active("before_thread_search"):
        asked = {**value, "without": without}
        ask = partial(hooks.call, "before_thread_search")
        await runtime.current().database.read(lambda conn: ask(conn, caller(ctx), asked))
    return Listed(
        scope.current(runtime.current().options.tenant_key),
        visible,
        filters.searchable(value["metadata"] or {}),
        value["status"],
        frozenset(metadata_index.entries(json_codec.plain(without))),
    )


async def listen(view: Listed) -> AsyncGenerator[Item, None]:
    """Yield events of changed threads until the client disconnects or the server stops.

    The first one is `ready`: what a client reads after it lacks no change that is not told later.
    """
    here = runtime.current()
    with here.bus.changes.listen(view) as listener:
        ending = None
        if here.stopping is not None:
            ending = asyncio.create_task(here.stopping.wait_begun(), name="end-of-list")
            ending.add_done_callback(lambda _: listener.wake())
        try:
            yield READY
            while True:
                for item in await listener.take():
                    cost = EVENT_MS + len(item[1]) * MS_A_BYTE
                    await pacing.turn(view.scope.turn, "changes", cost)
                    yield item
                if here.stopping is not None and here.stopping.has_begun:
                    await hand_over(STOPS)
                    return
        finally:
            if ending is not None:
                ending.cancel()
