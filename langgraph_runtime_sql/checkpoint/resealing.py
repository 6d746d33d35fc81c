"""Resealing: encrypt stored checkpoints again, for another thread or with another key.

Each stored value is encrypted by itself, so a patch and its base may have different keys.
"""

from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

from sqlalchemy import Table, bindparam, select

from langgraph_runtime_sql.checkpoint import sealing
from langgraph_runtime_sql.checkpoint.sealing import SUFFIX
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import run_writes, thread_checkpoints, thread_writes
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.encryption import envelope, keys

VALUES = (thread_checkpoints, thread_writes, run_writes)
"""The tables with values of checkpoints, in the columns `type` and `value`."""

_FIND = {
    table: Prepared(
        select(*table.primary_key.columns, table.c.type, table.c.value).where(
            table.c.thread_id == bindparam("thread"), table.c.value.is_not(None)
        )
    )
    for table in VALUES
}
_STORE = {
    table: Prepared(
        table.update()
        .where(*(each == bindparam(f"its_{each.name}") for each in table.primary_key.columns))
        .values(type=bindparam("new_type"), value=bindparam("new_value"))
    )
    for table in VALUES
}
_THREADS = Prepared(
    select(thread_checkpoints.c.thread_id)
    .distinct()
    .where(thread_checkpoints.c.thread_id > bindparam("after"))
    .order_by(thread_checkpoints.c.thread_id)
    .limit(bindparam("count"))
)
_FIRST_THREADS = Prepared(
    select(thread_checkpoints.c.thread_id)
    .distinct()
    .order_by(thread_checkpoints.c.thread_id)
    .limit(bindparam("count"))
)


def threads_after(conn: Connection, after: str | None, count: int) -> list[str]:
    """Return the next threads with checkpoints.

    Args:
        conn: A transaction.
        after: The thread before them; None for the first ones.
        count: How many at most.
    """
    if after is None:
        found = conn.fetchall(_FIRST_THREADS, {"count": count})
    else:
        found = conn.fetchall(_THREADS, {"after": after, "count": count})
    return [each["thread_id"] for each in found]


def rebind(conn: Connection, source: str, target: str) -> None:
    """Encrypt the copied values of `source` in `target` for their new thread."""
    opener = sealing.Opener(conn, source)
    # `run_writes` are not copied.
    for table in (thread_checkpoints, thread_writes):
        for row in conn.fetchall(_FIND[table], {"thread": target}):
            if row["type"].endswith(SUFFIX):
                _store(conn, table, target, row, opener)


def changes(conn: Connection, thread_id: str) -> Iterator[Callable[[], int]]:
    """Yield what encrypts a thread's checkpoints with the tenant's newest key, step by step.

    Each step returns the number of changed values. It raises KeyErased or CannotDecrypt for one that
    cannot be read; the others do not depend on it.
    """
    newest = keys.current().for_writing(conn, sealing.tenant_of(conn, thread_id)).id
    opener = sealing.Opener(conn, thread_id)
    for table in VALUES:
        for row in conn.fetchall(_FIND[table], {"thread": thread_id}):
            if not _is_current(row, newest):
                yield partial(_store, conn, table, thread_id, row, opener)


def _is_current(row: Row, newest: UUID) -> bool:
    is_sealed: bool = row["type"].endswith(SUFFIX)
    return is_sealed and envelope.key_id(bytes(row["value"])) == newest


def _store(conn: Connection, table: Table, thread_id: str, row: Row, opener: sealing.Opener) -> int:
    kind, value = sealing.sealed(conn, thread_id, *opener.opened(row["type"], bytes(row["value"])))
    key = {f"its_{each.name}": row[each.name] for each in table.primary_key.columns}
    conn.send(_STORE[table], {**key, "new_type": kind, "new_value": value})
    return 1
