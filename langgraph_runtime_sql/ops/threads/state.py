"""The state of a thread: read and write its checkpoints through its graph."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any

import orjson
import structlog
from langgraph.types import StateSnapshot, StateUpdate
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, json_codec, pacing, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import Outdated
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.gate import limits, reads, state_keys, writes
from langgraph_runtime_sql.gate.operations import STATE_WRITE, THREAD_READ
from langgraph_runtime_sql.gate.writes import Admission
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.threads import graph as thread_graph
from langgraph_runtime_sql.ops.threads import long_values, newest_state
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.state_guard import StateGuard
from langgraph_runtime_sql.tenancy import scope

logger = structlog.stdlib.get_logger(__name__)

Update = Callable[[Any], Awaitable[Any]]

# About what the event loop writes as JSON.
ENCODED_BYTES_PER_MS = 1_000_000.0
NO_GRAPH = (
    "Thread {} has no graph yet, because it has no run. Create a run first, or set `graph_id` "
    "in the thread's metadata."
)


class State:
    """`Threads.State` of the interface."""

    @staticmethod
    async def get(
        conn: Any, config: dict[str, Any], subgraphs: bool = False, ctx: Any = None
    ) -> StateSnapshot:
        """Return the state at the checkpoint that `config` names, by default the newest.

        Raises:
            HTTPException: (404) the thread does not exist or is hidden.
        """
        row, graph_id = await _visible(config, ctx)
        if graph_id is None:
            return _empty()
        config["configurable"].setdefault("graph_id", graph_id)
        return await thread_graph.snapshot(row, graph_id, config, subgraphs=subgraphs)

    @staticmethod
    async def post(
        conn: Any, config: dict[str, Any], values: Any, as_node: str | None = None, ctx: Any = None
    ) -> dict[str, Any]:
        """Write `values` as if `as_node` had returned them.

        Raises:
            HTTPException: (400) the thread has no graph yet; (403) the caller may not change it;
                (404) it does not exist or is hidden; (409) a run is in flight; (422) the graph
                cannot apply the values.
        """
        row, admission = await _writable(config, ctx)

        async def update(graph: Any) -> Any:
            state_keys.check_values(graph, values)
            named = config["configurable"]
            place = {**named, "checkpoint_ns": named.get("checkpoint_ns") or ""}
            target = {**config, "configurable": place}
            return await graph.aupdate_state(target, values, as_node=as_node)

        written = await _write(row, config, admission, values, update)
        return {
            "checkpoint": written,
            "configurable": written,
            "checkpoint_id": written["checkpoint_id"],
        }

    @staticmethod
    async def bulk(
        conn: Any, *, config: dict[str, Any], supersteps: Sequence[dict[str, Any]], ctx: Any = None
    ) -> dict[str, Any]:
        """Write several supersteps, each a list of updates.

        Raises:
            HTTPException: as `post`, and (409) another writer has written in between.
        """
        row, admission = await _writable(config, ctx)
        config["configurable"].setdefault("checkpoint_ns", "")

        async def update(graph: Any) -> Any:
            sent = [superstep.get("updates", []) for superstep in supersteps]
            for each in (each for superstep in sent for each in superstep):
                if each.get("command"):
                    state_keys.check_command(graph, each["command"], admission.permissions)
                else:
                    state_keys.check_values(graph, each.get("values"))
            updates = [[_state_update(each) for each in superstep] for superstep in sent]
            return await graph.abulk_update_state(config, updates)

        return {"checkpoint": await _write(row, config, admission, supersteps, update)}

    @staticmethod
    async def list(
        conn: Any,
        *,
        config: dict[str, Any],
        limit: int = 1,
        before: Any = None,
        metadata: dict[str, Any] | None = None,
        ctx: Any = None,
    ) -> list[StateSnapshot]:
        """Return what `iterate` yields, for versions of the API that do not know it."""
        found = State.iterate(
            conn, config=config, limit=limit, before=before, metadata=metadata, ctx=ctx
        )
        return [snapshot async for snapshot in found]

    @staticmethod
    async def iterate(
        conn: Any,
        *,
        config: dict[str, Any],
        limit: int = 1,
        before: Any = None,
        metadata: dict[str, Any] | None = None,
        ctx: Any = None,
        incremental: bool = False,
        channels: Sequence[str] | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Yield the states of checkpoints older than `before`, newest first.

        Args:
            incremental: Whether to read few at a time, because the caller may stop early.
            channels: Leave out all other channels of the values.

        Raises:
            HTTPException: (404) the thread does not exist or is hidden; (422) the page is too large.
        """
        row, graph_id = await _visible(config, ctx)
        if graph_id is None:
            return
        repeated, page = checkpoint.Repeated(), limits.history_page()
        opened = thread_graph.opened(
            row, graph_id, config, "threads.read", repeated.hook, page.add_read
        )
        async with opened as graph:
            repeated.share_in(getattr(graph, "channels", {}))
            cost = 0.0
            history = _incremental_history if incremental else _history
            async with aclosing(history(graph, config, limit, metadata, _before(before))) as found:
                async for snapshot in found:
                    await pacing.turn(scope.turn(), "history", cost)
                    values, size = _encoded(repeated.encoded(snapshot.values), channels)
                    page.add(size)
                    # The next state is expected to cost as much.
                    cost = size / ENCODED_BYTES_PER_MS
                    yield thread_graph.of_thread(row, snapshot)._replace(values=values)


def _history(
    graph: Any, config: Any, limit: int, metadata: Any, before: Any
) -> AsyncGenerator[StateSnapshot, None]:
    found: AsyncGenerator[StateSnapshot, None] = graph.aget_state_history(
        config, limit=limit, filter=metadata, before=before
    )
    return found


def _incremental_history(
    graph: Any, config: Any, limit: int, metadata: Any, before: Any
) -> AsyncGenerator[StateSnapshot, None]:
    # Only versions of the API that have it ask for it.
    from langgraph_api.state import iter_state_history

    found: AsyncGenerator[StateSnapshot, None] = iter_state_history(
        graph, config, limit=limit, filter=metadata, before=before
    )
    return found


def _encoded(values: Any, channels: Sequence[str] | None) -> tuple[Any, int]:
    """Return values as finished JSON, and its size in bytes.

    With `channels`, the JSON of each of them: the API picks some by their names.
    """
    if channels is None:
        whole = json_codec.encoded(values)
        return orjson.Fragment(whole), len(whole)
    known = values if isinstance(values, dict) else {}
    some = {name: json_codec.encoded(known[name]) for name in channels if name in known}
    parts = {name: orjson.Fragment(each) for name, each in some.items()}
    return parts, sum(map(len, some.values()))


@contextmanager
def _applying() -> Iterator[None]:
    """Report an error of the graph's reducers and branches as an invalid request (422)."""
    try:
        yield
    except _UPDATE_ERRORS as error:
        # With the traceback, because it may be an error of the graph or of this code.
        logger.warning("State update failed in the graph", exc_info=error)
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise HTTPException(422, f"The graph cannot apply this update: {message}") from error


_UPDATE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
)


def _before(before: Any) -> dict[str, Any] | None:
    if not before:
        return None
    if isinstance(before, str):
        return {"configurable": {"checkpoint_id": before}}
    if "configurable" in before:
        return dict(before)
    return {"configurable": dict(before)}


def _state_update(update: dict[str, Any]) -> StateUpdate:
    from langgraph_api.command import map_cmd

    command, values = update.get("command"), update.get("values")
    if command:
        values = map_cmd(command)
        # The API passes null if no node is named, but langgraph iterates over `goto`.
        values = replace(values, goto=values.goto or ())
    return StateUpdate(values, update.get("as_node"))


async def _visible(config: dict[str, Any], ctx: Any) -> tuple[Row, str | None]:
    """Return the visible thread that `config` names, and the id of its graph."""
    thread_id = as_uuid(config["configurable"]["thread_id"], "thread ID")
    visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread_id})

    def fn(conn: Connection) -> tuple[Row, str | None] | None:
        row = thread_rows.find_visible(conn, thread_id, visible)
        return None if row is None else (row, thread_graph.id_of(conn, row))

    found = await runtime.current().database.read(fn)
    if found is None:
        raise HTTPException(404, f"Thread {thread_id} not found.")
    return found


async def _writable(config: dict[str, Any], ctx: Any) -> tuple[Row, Admission]:
    """Return the thread that `config` names, if the caller may change its state."""
    row, _ = await _visible(config, ctx)
    admission = await writes.admit(ctx, STATE_WRITE, {"thread_id": row["thread_id"]})
    if not admission.visible.shows(row["metadata"]):
        raise HTTPException(403, "Forbidden")
    return row, admission


async def _write(
    row: Row, config: dict[str, Any], admission: Admission, sent: Any, update: Update
) -> dict[str, Any]:
    """Write a thread's state by `update`, and return the `configurable` of its checkpoint.

    Retries if another writer was faster.

    Args:
        sent: What the client sent, which counts as stored.

    Raises:
        LimitReached: (429) the tenant stores as much as it may.
    """
    configurable = config["configurable"]
    with admission.opened():
        await limits.state(row["tenant"], sent)
        async with StateGuard(row["thread_id"], admission.caller, configurable) as guard:
            while True:
                graph_id = await guard.begin(lambda conn: thread_graph.id_of(conn, row))
                if graph_id is None:
                    raise HTTPException(400, NO_GRAPH.format(row["thread_id"]))
                configurable.setdefault("graph_id", graph_id)
                opened = thread_graph.opened(row, graph_id, config, "threads.update")
                try:
                    async with opened as graph:
                        with _applying():
                            written = await update(graph)
                    break
                except Outdated:
                    continue
        await _publish(row, graph_id, config)
    return dict(written["configurable"])


async def _publish(row: Row, graph_id: str, config: dict[str, Any]) -> None:
    """Copy the thread's new state into its row, and publish it to its subscribers."""
    from langgraph_api.state import state_snapshot_to_thread_state

    thread_id = row["thread_id"]
    # The row shows the newest state of the whole thread, not of a subgraph or older checkpoint.
    place = {k: v for k, v in config["configurable"].items() if not k.startswith("checkpoint_")}
    snapshot, written = await newest_state.refresh(row, graph_id, place)
    created = request_context.unanswered.get()
    if created is not None and written is not None and created["thread_id"] == thread_id:
        created.update(thread_rows.public(await long_values.completed(written)))
    message = {"state": state_snapshot_to_thread_state(snapshot), "thread_id": str(thread_id)}
    key, data = StreamKey.of_thread(row), json_codec.dumps(message).encode()
    runtime.current().bus.publisher.publish_state(key, "state_update", data)


def _empty() -> StateSnapshot:
    return StateSnapshot(
        values={},
        next=(),
        config=None,  # type: ignore[arg-type]  # as the API shows a thread without a graph
        metadata=None,
        created_at=None,
        parent_config=None,
        tasks=(),
        interrupts=(),
    )
