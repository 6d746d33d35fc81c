"""Announcements: what operations publish about a run after their commit."""

from uuid import UUID

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.bus import Control
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus


def made(conn: Connection, run: Row) -> None:
    """Announce to subscribers that a run was queued."""
    key, resumable = StreamKey.of_run(run), _is_resumable(run)
    conn.after_commit(lambda: runtime.current().bus.run_created(key, resumable=resumable))


def started(conn: Connection, run: Row) -> None:
    """Announce that this process has claimed a run."""
    key, resumable = StreamKey.of_run(run), _is_resumable(run)
    conn.after_commit(lambda: runtime.current().bus.run_started(key, resumable=resumable))


def ended(conn: Connection, run: Row) -> None:
    """Announce the end of a run to its subscribers."""
    key, resumable = StreamKey.of_run(run), _is_resumable(run)
    conn.after_commit(lambda: runtime.current().bus.run_ended(key, resumable=resumable))


def deleted(conn: Connection, run: Row, reason: str) -> None:
    """Stop the worker of a deleted run; without a worker, announce its end."""
    if run["status"] == RunStatus.RUNNING:
        stop(conn, run["run_id"], Control(ROLLBACK, reason))
    else:
        ended(conn, run)


def dropped(conn: Connection, run: Row) -> None:
    """Delete the log of a deleted run in every process, and end its streams."""
    key = StreamKey.of_run(run)
    conn.after_commit(lambda: runtime.current().bus.drop(key))


def stop(conn: Connection, run_id: UUID, control: Control) -> None:
    """Ask a run's worker to stop."""
    key = str(run_id)
    conn.after_commit(lambda: runtime.current().bus.send_control(key, control))


def wake(conn: Connection) -> None:
    """Tell the queues to look for runs that may start."""
    conn.after_commit(lambda: runtime.current().bus.wake())


def _is_resumable(run: Row) -> bool:
    return bool(run["kwargs"].get("resumable"))
