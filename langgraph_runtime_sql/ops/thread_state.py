"""The state of a thread: its checkpoints, seen and written through its graph."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from langgraph.types import StateSnapshot, StateUpdate
from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import bus, checkpoint, database, filters, json_codec
from langgraph_runtime_sql.checkpoint.history import Version
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.errors import Outdated
from langgraph_runtime_sql.ops import run_rows, thread_rows
from langgraph_runtime_sql.ops.access import as_uuid, authorize, caller
from langgraph_runtime_sql.ops.state_guard import StateGuard
from langgraph_runtime_sql.statements import Prepared, Row
from langgraph_runtime_sql.tables import runs, threads

logger = structlog.stdlib.get_logger(__name__)

_LAST_KWARGS = Prepared(
    select(runs.c.kwargs)
    .where(runs.c.thread_id == bindparam("thread_id"))
    .order_by(runs.c.created_at.desc())
    .limit(1)
)

Update = Callable[[Any], Awaitable[Any]]

NO_GRAPH = (
    "Thread {} has no graph yet: no run has been made on it. Make a run first, or set "
    "`graph_id` in the thread's metadata."
)


class State:
    """`Threads.State` of the interface."""

    @staticmethod
    async def get(
        conn: Any, config: dict[str, Any], subgraphs: bool = False, ctx: Any = None
    ) -> StateSnapshot:
        """The state at the checkpoint that `config` names, the newest without one.

        Raises:
            HTTPException: (404) the thread does not exist or may not be seen.
        """
        row, graph_id = await _permitted(config, ctx, "read")
        if graph_id is None:
            return _empty()
        config["configurable"].setdefault("graph_id", graph_id)
        return await _snapshot(row, graph_id, config, subgraphs=subgraphs)

    @staticmethod
    async def post(
        conn: Any,
        config: dict[str, Any],
        values: Any,
        as_node: str | None = None,
        ctx: Any = None,
    ) -> dict[str, Any]:
        """Write `values` as if `as_node` had returned them.

        Raises:
            HTTPException: (404) no such thread, (409) a run is in flight, (400) no graph yet.
        """
        row = await _writable(config, ctx)

        async def update(graph: Any) -> Any:
            named = config["configurable"]
            place = {**named, "checkpoint_ns": named.get("checkpoint_ns") or ""}
            target = {**config, "configurable": place}
            return await graph.aupdate_state(target, values, as_node=as_node)

        written = await _write(row, config, ctx, update)
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
            HTTPException: as `post`, and (409) somebody else has written in between.
        """
        row = await _writable(config, ctx)
        config["configurable"].setdefault("checkpoint_ns", "")

        async def update(graph: Any) -> Any:
            updates = [
                [_state_update(each) for each in superstep.get("updates", [])]
                for superstep in supersteps
            ]
            return await graph.abulk_update_state(config, updates)

        return {"checkpoint": await _write(row, config, ctx, update)}

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
        """Past states, newest first, of checkpoints older than `before`.

        Raises:
            HTTPException: (404) the thread does not exist or may not be seen.
        """
        row, graph_id = await _permitted(config, ctx, "read")
        if graph_id is None:
            return []
        async with _graph(row, graph_id, config, "threads.read") as graph:
            return [
                snapshot
                async for snapshot in graph.aget_state_history(
                    config, limit=limit, filter=metadata, before=_before(before)
                )
            ]


@contextmanager
def _applying() -> Iterator[None]:
    """A value that the graph's reducers and branches cannot take is its sender's mistake.

    Raises:
        HTTPException: (422) with what they say.
    """
    try:
        yield
    except _UNFIT as error:
        # In full, because it may be a mistake of the graph's, or ours.
        logger.warning("A graph cannot apply a state update", exc_info=error)
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise HTTPException(422, f"The graph cannot apply this update: {said}") from error


_UNFIT = (
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
        # The API writes null where no node is named, which langgraph cannot iterate over.
        values = replace(values, goto=values.goto or ())
    return StateUpdate(values, update.get("as_node"))


async def _permitted(config: dict[str, Any], ctx: Any, action: str) -> tuple[Row, str | None]:
    """The thread that `config` names, if the caller may, and the id of its graph."""
    thread_id = as_uuid(config["configurable"]["thread_id"], "thread ID")
    permitted = await authorize(ctx, "threads", action, {"thread_id": thread_id})

    def fn(conn: Connection) -> tuple[Row, str | None] | None:
        row = thread_rows.find_permitted(conn, thread_id, permitted)
        return None if row is None else (row, _graph_id(conn, row))

    found = await database.current().read(fn)
    if found is None:
        raise HTTPException(404, f"Thread {thread_id} not found.")
    return found


def _graph_id(conn: Connection, row: Row) -> str | None:
    if graph_id := row["metadata"].get("graph_id"):
        return str(graph_id)
    kwargs = conn.scalar(_LAST_KWARGS, {"thread_id": row["thread_id"]})
    return kwargs["config"]["configurable"]["graph_id"] if kwargs else None


async def _writable(config: dict[str, Any], ctx: Any) -> Row:
    """The thread that `config` names, if the caller may change it."""
    row, _ = await _permitted(config, ctx, "read")
    thread_id = row["thread_id"]
    permitted = await authorize(ctx, "threads", "update", {"thread_id": thread_id})
    if not filters.allows(permitted, row["metadata"]):
        raise HTTPException(403, "Forbidden")
    return row


async def _write(row: Row, config: dict[str, Any], ctx: Any, update: Update) -> dict[str, Any]:
    """Have a graph write a thread's state, again where somebody else was quicker.

    Args:
        update: Has the graph do it; the configuration of the checkpoint it has written.
    """
    configurable = config["configurable"]
    async with StateGuard(row["thread_id"], caller(ctx), configurable) as guard:
        while True:
            graph_id = await guard.look(lambda conn: _graph_id(conn, row))
            if graph_id is None:
                raise HTTPException(400, NO_GRAPH.format(row["thread_id"]))
            configurable.setdefault("graph_id", graph_id)
            try:
                async with _graph(row, graph_id, config, "threads.update") as graph:
                    with _applying():
                        written = await update(graph)
                break
            except Outdated:
                continue
    await _publish(row, graph_id, config)
    return dict(written["configurable"])


@asynccontextmanager
async def _graph(
    row: Row, graph_id: str, config: dict[str, Any], access: str
) -> AsyncIterator[Any]:
    """The thread's graph on our checkpointer, as the API builds it for `access`."""
    from langgraph_api import config as api_config
    from langgraph_api._checkpointer import get_checkpointer
    from langgraph_api.graph import get_graph
    from langgraph_api.store import get_store

    stored = row["config"]
    merged = {
        **stored,
        "configurable": {**stored.get("configurable", {}), **config.get("configurable", {})},
    }
    hook = _json_hook() if access == "threads.read" else None
    checkpointer = (
        await get_checkpointer()
        if api_config.USE_CUSTOM_CHECKPOINTER
        else checkpoint.Checkpointer(unpack_hook=hook)
    )
    async with get_graph(
        graph_id, merged, checkpointer=checkpointer, store=await get_store(), access_context=access
    ) as graph:
        yield graph


def _json_hook() -> Any:
    # Reading a state for a client makes JSON of it: no class of the user's is imported.
    from langgraph.checkpoint.serde.jsonplus import _msgpack_ext_hook_to_json

    return _msgpack_ext_hook_to_json


async def _snapshot(
    row: Row, graph_id: str, config: dict[str, Any], *, subgraphs: bool = False
) -> StateSnapshot:
    async with _graph(row, graph_id, config, "threads.read") as graph:
        snapshot: StateSnapshot = await graph.aget_state(config, subgraphs=subgraphs)
    shown: dict[str, Any] | None = snapshot.metadata  # type: ignore[assignment]
    if shown is not None and shown.get("checkpoint_ns") == "":
        del shown["checkpoint_ns"]
    return snapshot


async def newest(thread_id: UUID, graph_id: str) -> tuple[Version, dict[str, Any] | None]:
    """A thread's newest state as a run tells of its own, and by what it is known to be the newest.

    None where there is none, or no such thread.
    """
    row = await database.current().read(lambda conn: thread_rows.find(conn, thread_id))
    if row is None:
        return (None, ()), None
    version, snapshot = await _newest(row, graph_id, {})
    if snapshot.metadata is None:
        return version, None
    tasks = [{"id": task.id, "interrupts": task.interrupts} for task in snapshot.tasks]
    return version, {"values": snapshot.values, "next": snapshot.next, "tasks": tasks}


async def _newest(
    row: Row, graph_id: str, configurable: dict[str, Any]
) -> tuple[Version, StateSnapshot]:
    thread_id = row["thread_id"]
    version = await database.current().read(lambda conn: checkpoint.latest_version(conn, thread_id))
    place = {**configurable, "thread_id": str(thread_id), "graph_id": graph_id}
    return version, await _snapshot(row, graph_id, {"configurable": place})


def refuse_outdated(conn: Connection, thread_id: UUID, version: Version) -> None:
    """Raise Outdated unless this is still what a thread's state is made of."""
    if checkpoint.latest_version(conn, thread_id) != version:
        raise Outdated


async def _refresh(
    row: Row,
    graph_id: str,
    configurable: dict[str, Any],
    *,
    since: datetime | None = None,
    undone: bool = False,
) -> tuple[StateSnapshot, Row | None]:
    """Bring a thread's row to its newest state; that state, and the row unless it is gone."""
    while True:
        version, snapshot = await _newest(row, graph_id, configurable)
        # Again if somebody has written a newer one meanwhile.
        with suppress(Outdated):
            return snapshot, await _show(row["thread_id"], version, snapshot, since, undone)


async def _show(
    thread_id: UUID,
    version: Version,
    snapshot: StateSnapshot,
    since: datetime | None,
    undone: bool,
) -> Row | None:
    """Write a state into its thread's row.

    Args:
        since: Only if nobody else has brought the row to a state after this.
        undone: A run was, which leaves its error, and its thread failed if it was before.

    Raises:
        Outdated: it is no longer the newest.
    """
    from langgraph_api.state import patch_interrupt

    interrupts = {
        task.id: [patch_interrupt(each) for each in task.interrupts]
        for task in snapshot.tasks
        if task.interrupts
    }

    def fn(conn: Connection) -> Row | None:
        moment = conn.now()
        row = thread_rows.find(conn, thread_id)
        if row is None or since not in (None, row["state_updated_at"]):
            return row
        refuse_outdated(conn, thread_id, version)
        status = "interrupted" if snapshot.next else "idle"
        if undone and row["resting_status"] == "error":
            status = "error"
        conn.execute(
            threads.update()
            .where(threads.c.thread_id == thread_id)
            .values(
                # A run queued since the checkpoint was written keeps the thread busy.
                status=row["status"] if run_rows.any_in_flight(conn, thread_id) else status,
                resting_status=status,
                values=snapshot.values if snapshot.metadata is not None else None,
                interrupts=interrupts,
                error=row["error"] if undone else None,
                updated_at=moment,
                state_updated_at=moment,
                **thread_rows.renewed(row, moment),
            )
        )
        return thread_rows.find(conn, thread_id)

    return await database.current().write(fn)


async def refresh_after_deletion(thread_id: UUID) -> None:
    """Bring a thread's row to what is left of its checkpoints, unless a run will do so."""

    def fn(conn: Connection) -> tuple[Row, str] | None:
        row = thread_rows.find(conn, thread_id)
        graph_id = None if row is None else _graph_id(conn, row)
        if row is None or graph_id is None or run_rows.any_running(conn, thread_id):
            return None
        return row, graph_id

    found = await database.current().read(fn)
    if found is not None:
        await _refresh_if_readable(*found)


async def refresh_after_undoing(thread_id: UUID, graph_id: str) -> None:
    """The same once a run was undone. What it came upon may have been deleted meanwhile."""
    row = await database.current().read(lambda conn: thread_rows.find(conn, thread_id))
    if row is not None:
        await _refresh_if_readable(row, graph_id, undone=True)


async def _refresh_if_readable(row: Row, graph_id: str, *, undone: bool = False) -> None:
    from langgraph_api.graph import GRAPHS

    if graph_id not in GRAPHS:
        return
    try:
        await _refresh(row, graph_id, {}, since=row["state_updated_at"], undone=undone)
    except Exception:
        # The graph's own code failed. The deletion is done all the same.
        logger.exception(
            "Cannot read a thread's state", action="refresh_failed", thread_id=str(row["thread_id"])
        )


async def _publish(row: Row, graph_id: str, config: dict[str, Any]) -> None:
    """Bring the thread's row to the state just written, and tell its followers."""
    from langgraph_api.state import state_snapshot_to_thread_state

    thread_id = row["thread_id"]
    # Whichever checkpoint or subgraph was written to: the row shows the thread as a whole.
    asked = {k: v for k, v in config["configurable"].items() if not k.startswith("checkpoint_")}
    snapshot, written = await _refresh(row, graph_id, asked)
    created = thread_rows.unanswered.get()
    if created is not None and written is not None and created["thread_id"] == thread_id:
        created.update(thread_rows.public(written))
    message = {"state": state_snapshot_to_thread_state(snapshot), "thread_id": str(thread_id)}
    bus.current().publish_state(str(thread_id), "state_update", json_codec.dumps(message).encode())


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
