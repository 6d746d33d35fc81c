"""Counts of stored bytes: sum up in the background what each tenant with a limit stores.

A count reads some threads in each transaction. It takes at most a twentieth of the time, because the
next one is due after twenty times as long as the last one took.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, select

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import packed_id, stored_bytes, thread_labels, threads
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.limits import members
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.tenancy import scope

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database

# Seconds between two looks for due counts, and between two counts of a tenant.
LOOK_SECONDS, COUNT_SECONDS = 5.0, 45.0
REST = 20
# A process that takes longer, or has died, loses its count to another.
LEASE = timedelta(minutes=30)
# Threads in one transaction.
PAGE = 100

_OF_THREADS = ("threads", "runs", "event_segments")
# With the ids of threads as bytes.
_OF_CHECKPOINTS = ("thread_checkpoints", "thread_writes", "run_writes")
_OF_STORE = ("store", "store_vectors")

_DUE = Prepared(select(stored_bytes).where(stored_bytes.c.due_at <= bindparam("now")))
_CLAIM = Prepared(
    stored_bytes.update()
    .where(
        stored_bytes.c.tenant == bindparam("its_tenant"), stored_bytes.c.due_at == bindparam("seen")
    )
    .values(due_at=bindparam("later"))
)
_FINISH = Prepared(
    stored_bytes.update()
    .where(stored_bytes.c.tenant == bindparam("its_tenant"))
    .values(
        counted=bindparam("sum"),
        added=stored_bytes.c.added - bindparam("before"),
        due_at=bindparam("later"),
    )
)
# The labels have an index by tenant, the threads have none.
_LABELLED = Prepared(
    select(thread_labels.c.thread_id).where(
        thread_labels.c.key == bindparam("key"),
        thread_labels.c.value == bindparam("value", type_=Text),
    )
)
_ALL = Prepared(select(threads.c.thread_id))


async def count_due(database: "Database", options: Options) -> int:
    """Count each tenant with a limit that is due, and return how many there were.

    Several processes may call this: one counts a tenant.
    """
    counted = 0
    for row in await database.write(partial(_claim, options)):
        started = time.monotonic()
        size = await count(database, options.tenant_key, row["tenant"])
        rest = max(COUNT_SECONDS, REST * (time.monotonic() - started))
        await database.write(partial(_finish, row, size, timedelta(seconds=rest)))
        counted += 1
    return counted


async def count(database: "Database", tenant_key: str | None, tenant: str) -> int:
    """Return how many bytes a tenant stores. Threads that appear meanwhile may be missing.

    Args:
        database: The database, with all tenants in scope.
        tenant_key: As in `Options`.
        tenant: Its name; an empty text for everything of a server without tenants.
    """
    ids = await database.read(lambda conn: _threads(conn, tenant_key, tenant))
    size = await database.read(lambda conn: _of_store(conn, tenant))
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        size += await database.read(lambda conn, page=page: of_threads(conn, page))  # type: ignore[misc]
    return size


def of_threads(conn: Connection, ids: Sequence[Any]) -> int:
    """Return the size of threads with all that belongs to them, as the database stores it."""
    total = 0
    texts, packed = [str(each) for each in ids], [packed_id(str(each)) for each in ids]
    values: list[Any]
    for table in (*_OF_THREADS, *_OF_CHECKPOINTS):
        columns, names = _columns(conn, table), texts if table in _OF_THREADS else packed
        if conn.dialect_name == "sqlite":
            marks = ", ".join("?" * len(names))
            where, values = f"thread_id IN ({marks})", names
        else:
            kind = columns["thread_id"]
            where, values = f"thread_id = ANY(%s::{kind}[])", [names]
        total += _sum(conn, table, columns, where, values)
    return total


def tables(conn: Connection) -> dict[str, int]:
    """Return the bytes of each table, as the database stores it."""
    if conn.dialect_name == "sqlite":
        found = conn.raw.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        sizes = {name: _sum(conn, name, _columns(conn, name), "true", ()) for (name,) in found}
    else:
        # With indexes and what is too long for a row.
        sizes = dict(
            conn.raw.execute(
                "SELECT (SELECT relname FROM pg_class AS whole"
                " WHERE whole.oid = coalesce(pg_partition_root(part.oid), part.oid)),"
                " sum(pg_total_relation_size(oid))::bigint FROM pg_class AS part"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace GROUP BY 1"
            ).fetchall()
        )
    return {name: size for name, size in sizes.items() if size}


def _claim(options: Options, conn: Connection) -> list[Row]:
    """Return the tenants to count, and keep others from counting them."""
    now = conn.now()
    limits = options.limits
    return [
        row
        for row in conn.fetchall(_DUE, {"now": now})
        if members.of_tenant(limits, row["tenant"]).stored_bytes is not None
        and conn.execute(
            _CLAIM, {"its_tenant": row["tenant"], "seen": row["due_at"], "later": now + LEASE}
        )
    ]


def _finish(row: Row, size: int, rest: timedelta, conn: Connection) -> None:
    values = {"sum": size, "before": row["added"], "later": conn.now() + rest}
    conn.execute(_FINISH, {"its_tenant": row["tenant"], **values})


def _threads(conn: Connection, tenant_key: str | None, tenant: str) -> list[Any]:
    if tenant_key is None:
        rows = conn.fetchall(_ALL)
    else:
        label = {"key": tenant_key, "value": json_codec.dumps(tenant)}
        rows = conn.fetchall(_LABELLED, label)
    return [row["thread_id"] for row in rows]


def _of_store(conn: Connection, tenant: str) -> int:
    total = 0
    for table in _OF_STORE:
        columns = _columns(conn, table)
        if not columns:
            continue
        where, values = "true", list[str]()
        if tenant:
            # Namespaces are joined by periods, and "/" is the character after it.
            label = scope.label(tenant)
            values = [label, f"{label}.", f"{label}/"]
            where = (
                "prefix = ? OR (prefix >= ? AND prefix < ?)"
                if conn.dialect_name == "sqlite"
                # Compares bytes, as the index of the store does.
                else "prefix = %s OR (prefix ~>=~ %s AND prefix ~<~ %s)"
            )
        total += _sum(conn, table, columns, where, values)
    return total


def _columns(conn: Connection, table: str) -> dict[str, str]:
    """Return the types of a table's columns by name; none if the table is missing."""
    if conn.dialect_name == "sqlite":
        found = conn.raw.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    else:
        found = conn.raw.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            (table,),
        )
    return dict(found.fetchall())


def _sum(
    conn: Connection, table: str, columns: dict[str, str], where: str, values: Sequence[Any]
) -> int:
    # On Postgres the size of a compressed value, which is not read for that.
    size = "length(CAST({} AS BLOB))" if conn.dialect_name == "sqlite" else "pg_column_size({})"
    sizes = " + ".join("coalesce(" + size.format(f'"{name}"') + ", 0)" for name in columns)
    statement = f"SELECT coalesce(sum({sizes}), 0) FROM {table} WHERE {where}"
    return int(conn.raw.execute(statement, values).fetchone()[0])
