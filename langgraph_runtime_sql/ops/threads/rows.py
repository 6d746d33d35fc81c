"""Rows of threads: the statements and shapes that operations share."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, hooks
from langgraph_runtime_sql.database.connection import Connection, Prefetched
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import InsertNew, LockingSelect, Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.encryption.documents import moved_to_tenant
from langgraph_runtime_sql.errors import WriteConflict
from langgraph_runtime_sql.events.changes import changed, changed_metadata
from langgraph_runtime_sql.gate import entries, limits
from langgraph_runtime_sql.gate.caller import Caller
from langgraph_runtime_sql.gate.operations import THREAD_CREATE, THREAD_UPDATE
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.threads import dependents
from langgraph_runtime_sql.search import metadata_index
from langgraph_runtime_sql.statuses import ThreadStatus
from langgraph_runtime_sql.tenancy import tenants

_TTL = ("ttl_strategy", "ttl_minutes", "expires_at")
_PRIVATE = {"resting_status", "tenant", "long_values", *_TTL}

_INSERT = Prepared(InsertNew(threads))
_BY_ID = LockingSelect(select(threads).where(threads.c.thread_id == bindparam("thread_id")))
_DELETE = Prepared(
    threads.delete()
    .where(threads.c.thread_id == bindparam("thread_id"))
    .returning(threads.c.thread_id, threads.c.tenant, threads.c.metadata)
)


class ThreadExists(HTTPException):
    """A thread with this id exists."""

    def __init__(self, thread_id: UUID) -> None:
        super().__init__(409, f"Thread with ID {thread_id} already exists")


def public(row: Row, *, include_ttl: bool = False) -> Row:
    """Return a thread as the API shows it."""
    shown = {key: value for key, value in row.items() if key not in _PRIVATE}
    if include_ttl and row["ttl_strategy"] is not None:
        shown["ttl"] = {
            "strategy": row["ttl_strategy"],
            "ttl_minutes": row["ttl_minutes"],
            "expires_at": row["expires_at"],
        }
    return shown


def find(conn: Connection, thread_id: UUID) -> Row | None:
    """Return a thread as stored, or None. A write locks it, and thereby its runs."""
    return prefetch(conn, thread_id).one()


def prefetch(conn: Connection, thread_id: UUID) -> Prefetched:
    """Queue the query for a thread."""
    return conn.prefetch(_BY_ID, {"thread_id": thread_id})


def find_visible(conn: Connection, thread_id: UUID, visible: Visible) -> Row | None:
    """Return a thread as stored, or None if it is missing or hidden."""
    return visible.only(find(conn, thread_id))


def require(conn: Connection, thread_id: UUID, visible: Visible) -> Row:
    """Return a thread as stored.

    Raises:
        HTTPException: (404) it is missing or hidden.
    """
    row = find_visible(conn, thread_id, visible)
    if row is None:
        raise HTTPException(404, f"Thread with ID {thread_id} not found")
    return row


def ttl_columns(ttl: dict[str, Any] | None, now: datetime) -> Row:
    """Return the columns of a time to live, by default the configured one."""
    from langgraph_api import config

    wanted = dict(ttl or config.THREAD_TTL or {})
    minutes = wanted.get("ttl", wanted.get("default_ttl"))
    if minutes is None:
        return dict.fromkeys(_TTL)
    return {
        "ttl_strategy": wanted.get("strategy") or "delete",
        "ttl_minutes": float(minutes),
        "expires_at": now + timedelta(minutes=float(minutes)),
    }


def insert(
    conn: Connection,
    thread_id: UUID,
    metadata: dict[str, Any],
    caller: Caller,
    *,
    config: dict[str, Any] | None = None,
    status: str = ThreadStatus.IDLE,
    ttl: dict[str, Any] | None = None,
    **columns: Any,
) -> Row:
    """Create a thread.

    Raises:
        ThreadExists: (409) a thread has this id, and the caller cannot see it.
        LimitReached: (429) the tenant has as many threads, or stores as much, as it may.
    """
    now = conn.now()
    row: Row = {
        "thread_id": thread_id,
        "created_at": now,
        "updated_at": now,
        "state_updated_at": now,
        # A copy, because hooks change it and run again if Postgres repeats the transaction.
        "metadata": dict(metadata),
        "config": config or {},
        "status": status,
        "resting_status": ThreadStatus.IDLE if status == ThreadStatus.BUSY else status,
        "values": None,
        "long_values": None,
        "interrupts": {},
        "error": None,
        **ttl_columns(ttl, now),
        **columns,
    }
    hooks.call("before_thread_create", conn, caller, row)
    row["tenant"] = tenants.of(row["metadata"])
    limits.thread(conn, row)
    if not conn.execute(_INSERT, seal_row(conn, threads, thread_id, row["tenant"], row)):
        if find(conn, thread_id) is not None:
            raise WriteConflict
        raise ThreadExists(thread_id)
    metadata_index.update(conn, thread_id, {}, row["metadata"], row["updated_at"])
    entries.record(conn, THREAD_CREATE, thread_id, tenant=row["tenant"])
    changed(conn, row)
    return row


def merge_metadata(
    conn: Connection, row: Row, changes: dict[str, Any], caller: Caller, **columns: Any
) -> Row:
    """Merge `changes` into a thread's metadata, key by key, and set other columns."""
    changes = dict(changes)
    hooks.call("before_thread_update", conn, caller, row, changes)
    # The hook may have patched this thread.
    row = find(conn, row["thread_id"]) or row
    merged = {**row["metadata"], **changes}
    columns = {
        "metadata": merged,
        "tenant": tenants.of(merged),
        "updated_at": conn.now(),
        **columns,
    }
    stored = columns
    if columns["tenant"] != row["tenant"]:
        stored = moved_to_tenant(conn, row, columns)
    conn.execute(threads.update().where(threads.c.thread_id == row["thread_id"]).values(**stored))
    metadata_index.update(conn, row["thread_id"], row["metadata"], merged, columns["updated_at"])
    entries.record(conn, THREAD_UPDATE, row["thread_id"], tenant=columns["tenant"])
    updated = {**row, **columns}
    changed_metadata(conn, row, updated)
    return updated


def delete(conn: Connection, thread_id: UUID) -> bool:
    """Delete a thread with its runs, crons, checkpoints and the host's rows.

    Returns:
        Whether there was one.
    """
    checkpoint.delete_thread(conn, thread_id)
    deleted = conn.fetchone(_DELETE, {"thread_id": thread_id})
    if deleted is not None:
        dependents.delete_rows(conn, thread_id, deleted["tenant"])
        changed(conn, deleted, deleted["metadata"])
    return deleted is not None


def renewed(row: Row, now: datetime) -> Row:
    """Return the new expiry of a thread after activity."""
    if row["ttl_minutes"] is None:
        return {}
    return {"expires_at": now + timedelta(minutes=row["ttl_minutes"])}


_OCCUPY = Prepared(
    threads.update()
    .where(threads.c.thread_id == bindparam("id"))
    .values(
        status=ThreadStatus.BUSY,
        metadata=bindparam("new_metadata"),
        config=bindparam("new_config"),
        updated_at=bindparam("now"),
    )
)
_SET_STATUS = Prepared(
    threads.update()
    .where(threads.c.thread_id == bindparam("id"))
    .values(status=bindparam("new_status"), updated_at=bindparam("now"))
)


def occupy(conn: Connection, row: Row, *, metadata: Row, config: Row) -> None:
    """Make a thread busy, with the metadata and config of the run that will use it."""
    now, thread_id = conn.now(), row["thread_id"]
    sealed = seal_row(conn, threads, thread_id, row["tenant"], {"config": config})
    values = {
        "id": thread_id,
        "new_metadata": metadata,
        "new_config": sealed["config"],
        "now": now,
    }
    conn.send(_OCCUPY, values)
    changed_metadata(conn, row, {**row, "metadata": metadata})
    metadata_index.update(conn, thread_id, row["metadata"], metadata, now)


def rest(conn: Connection, thread_id: UUID, *, busy: bool) -> None:
    """Set a thread's status after one of its runs is gone."""
    row = find(conn, thread_id)
    if row is not None:
        status = ThreadStatus.BUSY if busy else row["resting_status"]
        conn.send(_SET_STATUS, {"id": thread_id, "new_status": status, "now": conn.now()})
        changed(conn, row)
