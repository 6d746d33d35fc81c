"""Idempotency: a repeated creation of a thread or run finds what the first one has created.

The transaction that creates the thread or run also stores the request's key, so a key without a
result, or a result without its key, cannot exist.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import idempotency_keys as table
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.errors import WriteConflict

KEEP = timedelta(days=1)

_FIND = Prepared(
    select(table).where(table.c.key == bindparam("name"), table.c.created_at > bindparam("since"))
)
_THREAD = Prepared(
    select(threads.c.thread_id).where(
        threads.c.thread_id == bindparam("id"), threads.c.created_at == bindparam("created_at")
    )
)
_RUN = Prepared(
    select(runs.c.thread_id, runs.c.run_id).where(
        runs.c.run_id == bindparam("id"), runs.c.thread_id == bindparam("thread")
    )
)
_DROP = Prepared(
    table.delete().where(table.c.key == bindparam("name"), table.c.created_at <= bindparam("since"))
)
_INSERT = Prepared(InsertNew(table))
_EXPIRE = Prepared(table.delete().where(table.c.created_at <= bindparam("since")))


@dataclass(slots=True)
class Repeatable:
    """A request with the header `Idempotency-Key`.

    Attributes:
        key: Made from tenant, user and the header.
        fingerprint: Made from method, path and body.
        found: The ids of the thread or run that an earlier request has created.
    """

    key: str
    fingerprint: str
    found: Row | None = None
    taken: bool = field(default=False, repr=False)


def take() -> Repeatable | None:
    """Return the repeatable request whose thread or run is about to be created, or None.

    Returned only once: an authorization handler may create other threads and runs.
    """
    current: Repeatable | None = request_context.idempotency.get()
    if current is None or current.taken:
        return None
    current.taken = True
    return current


def refuse_repetition(conn: Connection, request: Repeatable) -> None:
    """Refuse a request whose key was used, and set its `found`.

    Raises:
        HTTPException: (422) the key was used for another request; (409) the earlier request has
            created `found`, or what it has created was deleted.
    """
    request.found = None
    row = conn.fetchone(_FIND, {"name": request.key, "since": conn.now() - KEEP})
    if row is None:
        return
    if row["fingerprint"] != request.fingerprint:
        raise HTTPException(
            422,
            "This Idempotency-Key was used for another request in the last 24 hours. "
            "Use a new key for each new request.",
        )
    request.found = _created(conn, row)
    if request.found is None:
        raise HTTPException(409, gone(row["thread_id"], row["run_id"]))
    raise HTTPException(409, "An earlier request with this Idempotency-Key has created its object.")


def _created(conn: Connection, row: Row) -> Row | None:
    """Return the ids of what a request has created, if it still exists.

    A thread may be deleted, and another user create one with the same id.
    """
    thread_id, run_id = row["thread_id"], row["run_id"]
    if run_id is None:
        return conn.fetchone(_THREAD, {"id": thread_id, "created_at": row["created_at"]})
    # Only the server chooses the ids of runs.
    return conn.fetchone(_RUN, {"id": run_id, "thread": thread_id})


def gone(thread_id: Any, run_id: Any = None) -> str:
    """Return what a repetition is told if its object is deleted, or hidden from the caller."""
    what = f"thread {thread_id}" if run_id is None else f"run {run_id} of thread {thread_id}"
    return f"An earlier request with this Idempotency-Key created {what}, which is gone."


def note(
    conn: Connection,
    request: Repeatable,
    thread: Row,
    run_id: UUID | None = None,
) -> None:
    """Store what a request has created, in the transaction that creates it.

    Args:
        thread: The created thread, or that of the created run.
        run_id: The created run.
    """
    # The date of a created thread tells it from a later one with the same id.
    now = thread["created_at"] if run_id is None else conn.now()
    conn.execute(_DROP, {"name": request.key, "since": now - KEEP})
    row = {
        "key": request.key,
        "tenant": thread["tenant"],
        "fingerprint": request.fingerprint,
        "thread_id": thread["thread_id"],
        "run_id": run_id,
        "created_at": now,
    }
    if not conn.execute(_INSERT, row):
        # The same request at the same time was faster. Repeating the transaction finds it.
        raise WriteConflict


def expire(conn: Connection) -> None:
    """Delete keys that are older than a day."""
    conn.execute(_EXPIRE, {"since": conn.now() - KEEP})
