"""The stream of a thread: the events of its current and future runs."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID

import orjson

from langgraph_runtime_sql import json_codec, runtime
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOverloaded, EventsLost
from langgraph_runtime_sql.events.event import CONTROL, DONE, Event, Order, parse_order
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.operations import THREAD_READ
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops import stream_access
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.stream import final_event
from langgraph_runtime_sql.ops.threads import cursor
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.stopping import hand_over

Delivered = tuple[bytes, bytes, bytes | None, str | None]
Modes = frozenset[str]

CONTINUE = "Runs go on when it can be used. Continue with this id, at this path."


class Stream:
    """`Threads.Stream` of the interface."""

    @staticmethod
    def join(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
    ) -> AsyncIterator[tuple[bytes, bytes, bytes | None]]:
        """Yield the (event, data, id) tuples of a thread until the client disconnects."""
        events = Stream.join_event_streaming(
            thread_id, last_event_id=last_event_id, stream_modes=stream_modes, ctx=ctx
        )
        return ((name, data, event_id) async for name, data, event_id, _ in events)

    @staticmethod
    def join_event_streaming(
        thread_id: Any,
        *,
        last_event_id: str | None = None,
        stream_modes: Sequence[str],
        ctx: Any = None,
        auth_filters: Visible | None = None,
    ) -> AsyncIterator[Delivered]:
        """Yield the (event, data, id, run id) tuples of a thread until the client disconnects.

        If events that the client asks for were deleted, the stream ends with an error and the
        result of the newest run.

        Args:
            auth_filters: What `check_thread_stream_auth` has returned for the caller; None asks.
        """
        # The iteration starts after the response. The client may create a run in between, so
        # the stream starts at this time.
        followed = _follow(
            as_uuid(thread_id, "thread ID"),
            parse_order(last_event_id),
            frozenset(stream_modes) or frozenset({"run_modes"}),
            ctx,
            auth_filters,
            asked_at=time.time_ns() // 1_000_000,
        )
        return _until_outage(followed)

    @staticmethod
    async def events(
        thread_id: UUID, seen: cursor.Seen | None, visible: Visible | None = None
    ) -> AsyncGenerator[cursor.Begin | Event, None]:
        """Yield where the stream begins, then its events in order until the thread is deleted.

        Unlike `join`, the stream goes on after lost events: a loss event stands in their place.

        Args:
            seen: The last event that the client has; None begins at what is not over.
            visible: What `check_thread_stream_auth` has returned for the caller; None asks.

        Raises:
            HTTPException: (404) the filter of the host's handler hides the thread.
        """
        followers, key = runtime.current().bus.followers, await stream_access.key_of(thread_id)
        visible = await _visible(thread_id, None) if visible is None else visible
        admission = stream_access.Admission(thread_id, visible)
        begin = await cursor.begin(thread_id, seen)
        yield begin
        async with await followers.follow_thread(key, begin.after) as subscription:
            while (event := await subscription.get()) is not None:
                if event.is_loss or (
                    event.name != "state_update"
                    and await admission.admits(event.run_id, is_last=event.is_end)
                ):
                    yield event

    @staticmethod
    async def check_thread_stream_auth(thread_id: Any, ctx: Any = None) -> Visible:
        """Check that no filter hides the thread. Without a filter, it need not exist yet.

        Returns:
            What the caller may see. The API passes it on to the stream, so that the project's handler is
            asked once.

        Raises:
            HTTPException: (404) the filter hides the thread, or the thread does not exist.
        """
        return await _visible(as_uuid(thread_id, "thread ID"), ctx)


async def _visible(thread_id: UUID, ctx: Any) -> Visible:
    """Return what the caller may see, if the handler's filter does not hide the thread."""
    visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread_id})
    if visible.is_limited:
        await runtime.current().database.read(
            lambda conn: thread_rows.require(conn, thread_id, visible)
        )
    return visible


async def _until_outage(followed: AsyncGenerator[Delivered, None]) -> AsyncIterator[Delivered]:
    """Yield events. If the database cannot be used for too long, hand the response over."""
    try:
        async with aclosing(outage.followed(followed)) as events:
            async for each in events:
                yield each
    except (DatabaseOverloaded, DatabaseDamaged) as error:
        if isinstance(error, DatabaseOverloaded):
            await hand_over(f"{error.public} {CONTINUE}")
        body = {"error": type(error).__name__, "message": error.public}
        yield b"error", json_codec.dumps(body).encode(), None, None


async def _follow(
    thread_id: UUID,
    after: Order | None,
    modes: Modes,
    ctx: Any,
    visible: Visible | None,
    *,
    asked_at: int,
) -> AsyncGenerator[Delivered, None]:
    followers, key = runtime.current().bus.followers, await stream_access.key_of(thread_id)
    async with await followers.follow_thread(key, after, asked_at) as subscription:
        visible = await _visible(thread_id, ctx) if visible is None else visible
        admission = stream_access.Admission(thread_id, visible)
        while (event := await subscription.get()) is not None and not event.is_loss:
            admitted = await admission.admits(event.run_id, is_last=event.is_end)
            if admitted and (shown := _shown(event, modes)) is not None:
                yield shown
    if event is None:
        return
    seen = [run_id for run_id in await _last(thread_id) if await admission.admits(run_id)]
    async for shown in _rest(seen, modes):
        yield shown


async def _last(thread_id: UUID) -> list[str]:
    found = await runtime.current().database.read(lambda conn: run_rows.last(conn, thread_id))
    return [] if found is None else [str(found)]


async def _rest(lost: list[str], modes: Modes) -> AsyncIterator[Delivered]:
    """Yield an error and the results of runs in place of their lost events.

    In the v2 protocol, each error belongs to a run. Use one that is still in flight.
    """
    finals = {run_id: await final_event(UUID(run_id)) for run_id in lost}
    in_flight = next((run_id for run_id, final in finals.items() if final is None), None)
    yield b"error", json_codec.dumps(EventsLost()).encode(), None, in_flight
    for run_id, final in finals.items():
        if final is None:
            continue
        for event in (final, Event((0, 0), run_id, CONTROL, DONE, False)):
            if (shown := _shown(event, modes)) is not None:
                name, data, _, _ = shown
                yield name, data, None, run_id


def _shown(event: Event, modes: Modes) -> Delivered | None:
    """Return the tuple of an event for a subscriber with these modes, or None."""
    name, data = event.name, event.data
    if event.is_end:
        name = "metadata"
        data = orjson.dumps({"status": "run_done", "run_id": event.run_id})
    if not _wanted(name, data, modes):
        return None
    return name.encode(), data, event.id, event.run_id


def _wanted(name: str, data: bytes, modes: Modes) -> bool:
    if name == "state_update":
        return "state_update" in modes
    if "run_modes" in modes:
        return True
    return name == "metadata" and "lifecycle" in modes and _is_lifecycle(data)


def _is_lifecycle(data: bytes) -> bool:
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and (
        fields.get("status") == "run_done" or ("attempt" in fields and "run_id" in fields)
    )
