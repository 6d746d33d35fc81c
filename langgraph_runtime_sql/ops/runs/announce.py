"""Announcements: what operations publish about a run after their commit."""

from uuid import UUID

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.changes import changed
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.ops.runs import run_metrics
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus
from langgraph_runtime_sql.telemetry import metrics


def made(conn: Connection, run: Row) -> None:
    """Announce to subscribers that a run was queued."""
    key, resumable = StreamKey.of_run(run), _is_resumable(run)
    conn.after_commit(lambda: runtime.current().bus.followers.run_created(key, resumable=resumable))
    labels = run_metrics.labels(run, run.get("tenant"))
    conn.after_commit(lambda: metrics.runs().queued.labels(*labels).inc())
    changed(conn, run)


def started(conn: Connection, run: Row) -> None:
    """Make this process the writer of a claimed run's thread."""
    runtime.current().bus.writers.claimed(conn, StreamKey.of_run(run), run)
    changed(conn, run)


def ended(conn: Connection, run: Row) -> None:
    """Announce the end of a run to its subscribers."""
    writers, key, resumable = (
        runtime.current().bus.writers,
        StreamKey.of_run(run),
        _is_resumable(run),
    )
    if run["kwargs"].get("temporary") and not log.has_thread(conn, run["thread_id"]):
        # A stateless run and its thread are deleted before this.
        conn.after_commit(lambda: writers.ended(key, resumable=resumable))
    else:
        writers.end(conn, key, resumable=resumable)
        changed(conn, run)


def deleted(conn: Connection, run: Row, reason: str) -> None:
    """Stop the worker of a deleted run; without a worker, announce its end."""
    if run["status"] == RunStatus.RUNNING:
        stop(conn, run["run_id"], Control(ROLLBACK, reason))
    else:
        ended(conn, run)


def dropped(conn: Connection, run: Row) -> None:
    """Delete the events of a deleted run, and end its streams in every process."""
    key = StreamKey.of_run(run)
    log.drop_run(conn, run["thread_id"], key.run_id)
    changed(conn, run)
    conn.after_commit(lambda: runtime.current().bus.followers.drop(key))


def stop(conn: Connection, run_id: UUID, control: Control) -> None:
    """Ask a run's worker to stop."""
    key = str(run_id)
    conn.after_commit(lambda: runtime.current().bus.controls.send(key, control))


def wake(conn: Connection) -> None:
    """Tell the queues to look for runs that may start."""
    conn.after_commit(lambda: runtime.current().bus.controls.wake())


def _is_resumable(run: Row) -> bool:
    return bool(run["kwargs"].get("resumable"))
