"""The newest state of a thread: read through its graph, and shown in the thread's row."""

from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from langgraph.types import StateSnapshot

from langgraph_runtime_sql import checkpoint, runtime
from langgraph_runtime_sql.checkpoint.history import Version
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import Outdated
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import graph as thread_graph
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ThreadStatus

logger = structlog.stdlib.get_logger(__name__)


async def find(thread_id: UUID, graph_id: str) -> tuple[Version, dict[str, Any] | None]:
    """A thread's newest state as a run tells of its own, and by what it is known to be the newest.

    None where there is none, or no such thread.
    """
    row = await runtime.current().database.read(lambda conn: thread_rows.find(conn, thread_id))
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
    version = await runtime.current().database.read(
        lambda conn: checkpoint.latest_version(conn, thread_id)
    )
    place = {**configurable, "thread_id": str(thread_id), "graph_id": graph_id}
    return version, await thread_graph.snapshot(row, graph_id, {"configurable": place})


def refuse_outdated(conn: Connection, thread_id: UUID, version: Version) -> None:
    """Raise Outdated unless this is still what a thread's state is made of."""
    if checkpoint.latest_version(conn, thread_id) != version:
        raise Outdated


async def refresh(
    row: Row,
    graph_id: str,
    configurable: dict[str, Any],
    *,
    since: datetime | None = None,
    undone: bool = False,
) -> tuple[StateSnapshot, Row | None]:
    """Bring a thread's row to its newest state; that state, and the row unless it is gone.

    Args:
        configurable: What the graph is to be built with.
        since, undone: As in `_show`.
    """
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
        status = ThreadStatus.INTERRUPTED if snapshot.next else ThreadStatus.IDLE
        if undone and row["resting_status"] == ThreadStatus.ERROR:
            status = ThreadStatus.ERROR
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

    return await runtime.current().database.write(fn)


async def refresh_at_rest(thread_id: UUID) -> None:
    """Bring a thread's row to what is left of its checkpoints, unless a run will do so."""

    def fn(conn: Connection) -> tuple[Row, str] | None:
        row = thread_rows.find(conn, thread_id)
        graph_id = None if row is None else thread_graph.id_of(conn, row)
        if row is None or graph_id is None or run_rows.any_running(conn, thread_id):
            return None
        return row, graph_id

    found = await runtime.current().database.read(fn)
    if found is not None:
        await _refresh_if_readable(*found)


async def refresh_after_rollback(thread_id: UUID, graph_id: str) -> None:
    """The same once a run was undone. What it came upon may have been deleted meanwhile."""
    row = await runtime.current().database.read(lambda conn: thread_rows.find(conn, thread_id))
    if row is not None:
        await _refresh_if_readable(row, graph_id, undone=True)


async def _refresh_if_readable(row: Row, graph_id: str, *, undone: bool = False) -> None:
    from langgraph_api.graph import GRAPHS

    if graph_id not in GRAPHS:
        return
    try:
        await refresh(row, graph_id, {}, since=row["state_updated_at"], undone=undone)
    except Exception:
        # The graph's own code failed. The deletion is done all the same.
        logger.exception(
            "Cannot read a thread's state", action="refresh_failed", thread_id=str(row["thread_id"])
        )
