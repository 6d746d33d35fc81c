"""Rows of runs: the statements and shapes that operations share."""

from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, or_, select

from langgraph_runtime_sql.database.connection import Connection, Prefetched
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs, threads
from langgraph_runtime_sql.database.statements import LockingSelect, Prepared, Row
from langgraph_runtime_sql.statuses import RunStatus

FIELDS = (
    "run_id",
    "thread_id",
    "assistant_id",
    "created_at",
    "updated_at",
    "status",
    "metadata",
    "kwargs",
    "multitask_strategy",
    "langsmith_session_name",
)
PUBLIC = [runs.c[name] for name in FIELDS]
# `langgraph_api` shows them from 0.17 on.
LATER_FIELDS = ("cancel_reason",)
SHOWN = [*PUBLIC, *(runs.c[name] for name in LATER_FIELDS)]
IN_FLIGHT = or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL)

_BY_ID = LockingSelect(select(runs).where(runs.c.run_id == bindparam("run_id")))
_HELD = Prepared(
    select(runs.c.status, runs.c.attempt, runs.c.claimed_by).where(
        runs.c.run_id == bindparam("run_id")
    )
)
_LOCK_THREAD = Prepared(
    select(threads.c.thread_id)
    .where(
        threads.c.thread_id
        == select(runs.c.thread_id).where(runs.c.run_id == bindparam("run_id")).scalar_subquery()
    )
    .with_for_update(key_share=True)
)
_OF_THREAD = LockingSelect(
    select(runs)
    .where(runs.c.thread_id == bindparam("thread_id"), IN_FLIGHT)
    .order_by(runs.c.created_at, runs.c.seq)
)
_of_thread = select(runs.c.seq).where(runs.c.thread_id == bindparam("thread_id")).limit(1)
_ANY = Prepared(_of_thread.where(IN_FLIGHT))
_ANY_RUNNING = Prepared(_of_thread.where(runs.c.status == RUNNING_LITERAL))
_OTHER = Prepared(_of_thread.where(runs.c.run_id != bindparam("run_id"), IN_FLIGHT))
_LAST = Prepared(
    select(runs.c.run_id)
    .where(runs.c.thread_id == bindparam("id"))
    .order_by(runs.c.created_at.desc(), runs.c.seq.desc())
    .limit(1)
)
_END = Prepared(
    runs.update()
    .where(runs.c.run_id == bindparam("ended_run"))
    .values(
        status=bindparam("new_status"),
        updated_at=bindparam("now"),
        claimed_by=None,
        lease_until=None,
    )
)
_NOTE_REASON = Prepared(
    runs.update()
    .where(runs.c.run_id == bindparam("cancelled_run"))
    .values(cancel_reason=bindparam("reason"))
)
_DELETE = Prepared(runs.delete().where(runs.c.run_id == bindparam("run_id")))


def public(row: Row) -> Row:
    """Return a run as the installed API shows it."""
    return {name: row[name] for name in FIELDS} | {name: row.get(name) for name in _later_fields()}


@cache
def _later_fields() -> tuple[str, ...]:
    from langgraph_api.schema import RUN_FIELDS

    return tuple(name for name in LATER_FIELDS if name in RUN_FIELDS)


def tell_why_cancelled() -> bool:
    """Return whether the installed API shows in a run why it was cancelled."""
    return "cancel_reason" in _later_fields()


def claimed(row: Row) -> Row:
    """Return a run as its worker gets it, with its tenant."""
    return {**public(row), "tenant": row["tenant"]}


def find(conn: Connection, run_id: UUID, *, thread_locked: bool = False) -> Row | None:
    """Return a run as stored, or None. A write locks it and its thread.

    Args:
        thread_locked: Whether this write has locked the thread already.
    """
    if not thread_locked:
        lock_thread(conn, run_id)
    return prefetch(conn, run_id).one()


def find_in_thread(conn: Connection, run_id: UUID, thread_id: UUID) -> Row | None:
    """Return a run as stored, or None if the thread has no such run."""
    row = find(conn, run_id)
    return None if row is None or row["thread_id"] != thread_id else row


def prefetch(conn: Connection, run_id: UUID) -> Prefetched:
    """Queue the query for a run, after that for its thread."""
    return conn.prefetch(_BY_ID, {"run_id": run_id})


def lock_thread(conn: Connection, run_id: Any) -> None:
    """In a write, lock a run's thread. Lock it before the run, to prevent deadlocks."""
    if conn.locks:
        conn.send(_LOCK_THREAD, {"run_id": run_id})


def attempt(conn: Connection, run_id: Any) -> tuple[str, int] | None:
    """Return a run's status and number of attempts, or None if it is missing."""
    row = conn.fetchone(_HELD, {"run_id": run_id})
    return None if row is None else (row["status"], row["attempt"])


def is_held(conn: Connection, run_id: Any, attempt: int, owner: str | None) -> bool:
    """Return whether an attempt holds its run; with `owner`, whether this process does."""
    row = conn.fetchone(_HELD, {"run_id": run_id})
    return (
        row is not None
        and row["status"] == RunStatus.RUNNING
        and row["attempt"] == attempt
        and owner in (None, row["claimed_by"])
    )


def in_flight(conn: Connection, thread_id: UUID) -> list[Row]:
    """Return the thread's runs that have not ended, in the order in which they run."""
    return conn.fetchall(_OF_THREAD, {"thread_id": thread_id})


def any_in_flight(conn: Connection, thread_id: UUID) -> bool:
    """Return whether the thread has runs that have not ended."""
    return conn.fetchone(_ANY, {"thread_id": thread_id}) is not None


def any_running(conn: Connection, thread_id: UUID) -> bool:
    """Return whether a run of the thread has a worker."""
    return conn.fetchone(_ANY_RUNNING, {"thread_id": thread_id}) is not None


def prefetch_others(conn: Connection, run_id: UUID, thread_id: UUID) -> Prefetched:
    """Queue the query for another run of the thread that has not ended."""
    return conn.prefetch(_OTHER, {"thread_id": thread_id, "run_id": run_id})


def last(conn: Connection, thread_id: UUID) -> UUID | None:
    """Return the id of the thread's newest run, or None."""
    found: UUID | None = conn.scalar(_LAST, {"id": thread_id})
    return found


def end(conn: Connection, run_id: UUID, status: str, now: datetime) -> None:
    """Give a run its final status, and end its lease."""
    conn.send(_END, {"ended_run": run_id, "new_status": status, "now": now})


def note_reason(conn: Connection, run_id: UUID, reason: str | None) -> None:
    """Note why a run without a worker was cancelled. It may be gone."""
    conn.execute(_NOTE_REASON, {"cancelled_run": run_id, "reason": reason})


def delete(conn: Connection, run_id: UUID) -> None:
    """Delete the row of a run."""
    conn.execute(_DELETE, {"run_id": run_id})
