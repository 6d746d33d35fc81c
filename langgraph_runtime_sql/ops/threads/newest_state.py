"""The newest state of a thread: read it through the graph, and copy it into the thread's row."""

from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from langgraph.types import StateSnapshot

from langgraph_runtime_sql import checkpoint, runtime
from langgraph_runtime_sql.checkpoint.history import StateVersion as Version
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import Outdated
from langgraph_runtime_sql.events.changes import changed
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import graph as thread_graph
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ThreadStatus

logger = structlog.stdlib.get_logger(__name__)


async def find(thread_id: UUID, graph_id: str) -> tuple[Version, dict[str, Any] | None]:
    """Return the version of a thread's newest state, and the state as a run reports its own.

    The state is None if the thread has none, or does not exist.
    """
    row = await runtime.current().database.read(lambda conn: thread_rows.find(conn, thread_id))
    if row is None:
        return (None, ()), None
    version, snapshot = await _newest(row, graph_id, {})
    if snapshot.metadata is None:
        return version, None
    tasks = [{"id": task.id, "interrupts": task.interrupts} for task in snapshot.tasks]
    state = {"values": snapshot.values, "next": snapshot.next, "tasks": tasks}
    return version, {**state, "checkpoint": snapshot.config["configurable"]}


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
    """Check that `version` is still the newest state of a thread.

    Raises:
        Outdated: it is not.
    """
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
    """Copy a thread's newest state into its row.

    Args:
        configurable: The `configurable` for the graph.
        since: The `state_updated_at` of the row. If it has changed, the row stays as it is.
        undone: Whether a run was rolled back. The row then keeps its error, and the status
            `error` if it had that before the run.

    Returns:
        The state, and the row or None if the thread is gone.
    """
    while True:
        version, snapshot = await _newest(row, graph_id, configurable)
        # Read again if a newer checkpoint was written meanwhile.
        with suppress(Outdated):
            return snapshot, await _store(
                row["thread_id"], graph_id, version, snapshot, since, undone
            )


async def _store(
    thread_id: UUID,
    graph_id: str,
    version: Version,
    snapshot: StateSnapshot,
    since: datetime | None,
    undone: bool,
) -> Row | None:
    from langgraph_api.state import patch_interrupt

    interrupts = {
        task.id: [patch_interrupt(each) for each in task.interrupts]
        for task in snapshot.tasks
        if task.interrupts
    }

    def fn(conn: Connection) -> Row | None:
        now = conn.now()
        row = thread_rows.find(conn, thread_id)
        if row is None or since not in (None, row["state_updated_at"]):
            return row
        refuse_outdated(conn, thread_id, version)
        status = ThreadStatus.INTERRUPTED if snapshot.next else ThreadStatus.IDLE
        if undone and row["resting_status"] == ThreadStatus.ERROR:
            status = ThreadStatus.ERROR
        has_state = snapshot.metadata is not None
        # The values of a waiting thread contain what its tasks have written since.
        at_rest = has_state and not snapshot.next
        documents = {
            **long_values.columns(
                conn,
                thread_id,
                snapshot.values if has_state else None,
                graph_id,
                snapshot.config["configurable"]["checkpoint_id"] if at_rest else None,
            ),
            "interrupts": interrupts,
            "error": row["error"] if undone else None,
        }
        conn.execute(
            threads.update()
            .where(threads.c.thread_id == thread_id)
            .values(
                # A run queued after the checkpoint keeps the thread busy.
                status=row["status"] if run_rows.any_in_flight(conn, thread_id) else status,
                resting_status=status,
                **seal_row(conn, threads, thread_id, row["tenant"], documents),
                updated_at=now,
                state_updated_at=now,
                **thread_rows.renewed(row, now),
            )
        )
        changed(conn, row)
        return thread_rows.find(conn, thread_id)

    return await runtime.current().database.write(fn)


async def refresh_at_rest(thread_id: UUID) -> None:
    """Copy a thread's newest state into its row, unless a running run will do so."""

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
    """Copy a thread's newest state into its row, if it still exists, after a rollback."""
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
        # The graph's own code has failed. The deletion has happened anyway.
        thread_id = str(row["thread_id"])
        logger.exception(
            "Reading a thread's state failed", action="refresh_failed", thread_id=thread_id
        )
