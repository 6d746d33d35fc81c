"""Run rows: the statements and shapes that operations on runs share."""

from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, or_, select

from langgraph_runtime_sql.database.connection import Asked, Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import Prepared, Row
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
IN_FLIGHT = or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL)

_BY_ID = Prepared(select(runs).where(runs.c.run_id == bindparam("run_id")))
_HELD = Prepared(
    select(runs.c.status, runs.c.attempt, runs.c.claimed_by).where(
        runs.c.run_id == bindparam("run_id")
    )
)
_LOCK = Prepared(
    select(runs).where(runs.c.run_id == bindparam("run_id")).with_for_update(key_share=True)
)
_LOCK_THREAD = Prepared(
    select(threads.c.thread_id)
    .where(
        threads.c.thread_id
        == select(runs.c.thread_id).where(runs.c.run_id == bindparam("run_id")).scalar_subquery()
    )
    .with_for_update(key_share=True)
)
_of_thread = (
    select(runs)
    .where(runs.c.thread_id == bindparam("thread_id"), IN_FLIGHT)
    .order_by(runs.c.created_at, runs.c.seq)
)
_OF_THREAD = Prepared(_of_thread)
_LOCK_OF_THREAD = Prepared(_of_thread.with_for_update(key_share=True))
_of_thread = select(runs.c.seq).where(runs.c.thread_id == bindparam("thread_id")).limit(1)
_ANY = Prepared(_of_thread.where(IN_FLIGHT))
_ANY_RUNNING = Prepared(_of_thread.where(runs.c.status == RUNNING_LITERAL))
_OTHER = Prepared(
    select(runs.c.seq)
    .where(
        runs.c.thread_id == bindparam("thread_id"), runs.c.run_id != bindparam("run_id"), IN_FLIGHT
    )
    .limit(1)
)
_DELETE = Prepared(runs.delete().where(runs.c.run_id == bindparam("run_id")))


def public(row: Row) -> Row:
    """A run as the API shows it."""
    return {name: row[name] for name in FIELDS}


def claimed(row: Row) -> Row:
    """A run as its worker gets it, with its tenant."""
    return {name: row[name] for name in (*FIELDS, "tenant")}


def find(conn: Connection, run_id: UUID, *, thread_locked: bool = False) -> Row | None:
    """A run as stored, or None; in a write, nobody else changes it or its thread until the end.

    Args:
        conn: The transaction.
        run_id: The run.
        thread_locked: Its thread was found in this write already.
    """
    if not thread_locked:
        lock_thread(conn, run_id)
    return ask(conn, run_id).one()


def ask(conn: Connection, run_id: UUID) -> Asked:
    """`find` of a run whose thread was found, or asked for, as `conn.ask` does it."""
    return conn.ask(_LOCK if conn.locks else _BY_ID, {"run_id": run_id})


def lock_thread(conn: Connection, run_id: Any) -> None:
    """In a write, lock a run's thread; always before the run, so that nobody waits in a circle."""
    if conn.locks:
        conn.send(_LOCK_THREAD, {"run_id": run_id})


def attempt(conn: Connection, run_id: Any) -> tuple[str, int] | None:
    """A run's status and how often it was started, or None where there is no such run."""
    row = conn.fetchone(_HELD, {"run_id": run_id})
    return None if row is None else (row["status"], row["attempt"])


def is_held(conn: Connection, run_id: Any, attempt: int, owner: str | None) -> bool:
    """Whether an attempt at a run, of this owner if one is given, is the one that works on it."""
    row = conn.fetchone(_HELD, {"run_id": run_id})
    return (
        row is not None
        and row["status"] == RunStatus.RUNNING
        and row["attempt"] == attempt
        and owner in (None, row["claimed_by"])
    )


def in_flight(conn: Connection, thread_id: UUID) -> list[Row]:
    """The thread's runs that have not ended, in the order they will run."""
    statement = _LOCK_OF_THREAD if conn.locks else _OF_THREAD
    return conn.fetchall(statement, {"thread_id": thread_id})


def any_in_flight(conn: Connection, thread_id: UUID) -> bool:
    """Whether the thread has runs that have not ended."""
    return conn.fetchone(_ANY, {"thread_id": thread_id}) is not None


def any_running(conn: Connection, thread_id: UUID) -> bool:
    """Whether somebody works on a run of the thread."""
    return conn.fetchone(_ANY_RUNNING, {"thread_id": thread_id}) is not None


def ask_others(conn: Connection, run_id: UUID, thread_id: UUID) -> Asked:
    """Ask for a run of the thread that has not ended and is not this one."""
    return conn.ask(_OTHER, {"thread_id": thread_id, "run_id": run_id})


def delete(conn: Connection, run_id: UUID) -> bool:
    """Delete the row of a run; False if it was not there."""
    return conn.execute(_DELETE, {"run_id": run_id}) > 0
