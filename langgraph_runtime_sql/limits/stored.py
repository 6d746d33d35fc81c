"""Stored bytes: refuse requests that store more than their tenant may.

A count in the background (`stored_count`) says how much a tenant stores. What requests send after a
count is added to it, so that a check reads one row. Without a configured limit a check executes no
statement.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql import json_codec, process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import stored_bytes
from langgraph_runtime_sql.database.statements import InsertNew, Prepared
from langgraph_runtime_sql.limits import members, stored_count
from langgraph_runtime_sql.limits.refusals import refuse

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database

# A deletion counts at the latest then, in an ordinary database.
RETRY_SECONDS = 60.0
_AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)

_FIND = Prepared(
    select(stored_bytes.c.counted, stored_bytes.c.added).where(
        stored_bytes.c.tenant == bindparam("tenant")
    )
)
_ADD = Prepared(
    stored_bytes.update()
    .where(stored_bytes.c.tenant == bindparam("its_tenant"))
    .values(added=stored_bytes.c.added + bindparam("more"))
)
_START = Prepared(
    InsertNew(stored_bytes).values({each.name: bindparam(each.name) for each in stored_bytes.c})
)


def check(conn: Connection, tenant: str | None, document: Any) -> None:
    """Check that a document may be stored, and count its size.

    Args:
        conn: The transaction that stores it.
        tenant: Whose it is.
        document: A JSON document, as the client sent it.

    Raises:
        LimitReached: the tenant stores as much as it may.
    """
    if _most(tenant) is not None:
        check_size(conn, tenant, len(json_codec.dumps(document)))


def check_thread(conn: Connection, tenant: str | None, thread_id: UUID) -> None:
    """Check that a copied thread may be stored, and count its size.

    Raises:
        LimitReached: the tenant stores more than it may.
    """
    if _most(tenant) is not None:
        check_size(conn, tenant, stored_count.of_threads(conn, [thread_id]))


def check_size(conn: Connection, tenant: str | None, size: int) -> None:
    """Check that so many bytes may be stored, and count them.

    On Postgres, the tenant's other checks wait for the end of the transaction.

    Raises:
        LimitReached: the tenant would store more than it may.
    """
    most = _most(tenant)
    if most is None or not size:
        return
    name = tenant or ""
    # First, because it locks the row: processes together stay within the limit.
    if not conn.execute(_ADD, {"its_tenant": name, "more": size}):
        row = {"tenant": name, "counted": 0, "added": 0, "due_at": _AT_ONCE}
        conn.execute(_START, row)
        conn.execute(_ADD, {"its_tenant": name, "more": size})
    found = conn.fetchone(_FIND, {"tenant": name})
    if found is not None and found["counted"] + found["added"] > most:
        raise refuse("tenant", "stored_bytes", most, "stored bytes", RETRY_SECONDS)


async def admit(database: "Database", tenant: str | None, document: Any) -> None:
    """Check, in a transaction of its own, that a document may be stored.

    Raises:
        LimitReached: the tenant stores as much as it may.
    """
    if _most(tenant) is not None:
        await database.write(lambda conn: check(conn, tenant, document))


def _most(tenant: str | None) -> int | None:
    limits = process.current().options.limits
    if not limits.any_has("stored_bytes"):
        return None
    return members.of_tenant(limits, tenant).stored_bytes
