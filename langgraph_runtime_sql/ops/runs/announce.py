"""Announcements: what operations tell the bus of a run, once their transaction is committed.

Operations know ids as `UUID`, and events carry them as text: here the one becomes the other.
"""

from uuid import UUID

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.bus import Control


def started(conn: Connection, run: Row, *, here: bool) -> None:
    """Announce that a run is live.

    Args:
        conn: The transaction that queues or claims it.
        run: The run as stored.
        here: Whether this process has claimed it.
    """
    run_id, resumable = str(run["run_id"]), _is_resumable(run)
    conn.after_commit(lambda: bus.current().run_started(run_id, resumable=resumable, here=here))


def ended(conn: Connection, run: Row) -> None:
    """Announce to a run's followers that nothing more comes."""
    run_id, thread_id, resumable = str(run["run_id"]), str(run["thread_id"]), _is_resumable(run)
    conn.after_commit(lambda: bus.current().run_ended(run_id, thread_id, resumable=resumable))


def stop(conn: Connection, run_id: UUID, control: Control) -> None:
    """Ask a run's worker to stop."""
    key = str(run_id)
    conn.after_commit(lambda: bus.current().send_control(key, control))


def wake(conn: Connection) -> None:
    """Have the queue look for runs that may start."""
    conn.after_commit(lambda: bus.current().wake())


def _is_resumable(run: Row) -> bool:
    return bool(run["kwargs"].get("resumable"))
