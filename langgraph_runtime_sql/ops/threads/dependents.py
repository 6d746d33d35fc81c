"""Rows of the host that belong to a thread: they go in the transaction that deletes the thread.

The host names its tables in `Options.thread_tables`. Every deletion passes here: by a client, by a
prune, by a time to live, and that of a temporary thread.
"""

from functools import cache
from uuid import UUID
from weakref import WeakKeyDictionary

from sqlalchemy import String, Text, bindparam, cast, column, delete, func, select, table

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.audit import triggers
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.options import ThreadTable

_IN_SQLITE = Prepared(
    select(column("name"))
    .select_from(table("sqlite_master", column("name"), column("type")))
    .where(column("type") == "table", column("name") == bindparam("name"))
)
_IN_POSTGRES = Prepared(
    select(cast(func.to_regclass(bindparam("name", type_=String)), Text).label("name"))
)
# The graphs create their tables when they first need them, and never drop them.
_seen: WeakKeyDictionary[Database, set[str]] = WeakKeyDictionary()


def delete_rows(conn: Connection, thread_id: UUID, tenant: str | None) -> None:
    """Delete the host's rows of a thread.

    Args:
        conn: The transaction that deletes the thread.
        thread_id: The thread.
        tenant: Its tenant. Without one, rows of every tenant that have this thread.
    """
    for each in runtime.current().options.thread_tables():
        if not _exists(conn, each.name):
            continue
        statements = _Statements.of(each)
        named = {"thread": str(thread_id)}
        if tenant is not None:
            owners = [tenant]
        else:
            owners = [row["tenant"] for row in conn.fetchall(statements.owners, named)]
        for owner in owners:
            if each.guard is not None:
                triggers.allow(conn, each.guard, owner)
            conn.execute(statements.delete, {**named, "tenant": owner})
            if each.guard is not None:
                triggers.forbid(conn, each.guard)


class _Statements:
    """The statements of one table.

    Args:
        of: The table.
    """

    def __init__(self, of: ThreadTable) -> None:
        thread, tenant = column(of.thread, Text), column(of.tenant, Text)
        rows = table(of.name, thread, tenant)
        is_of_thread = thread == bindparam("thread", type_=Text)
        self.owners = Prepared(select(tenant.label("tenant")).where(is_of_thread).distinct())
        self.delete = Prepared(
            delete(rows).where(tenant == bindparam("tenant", type_=Text), is_of_thread)
        )

    @staticmethod
    @cache
    def of(wanted: ThreadTable) -> "_Statements":
        """Return the statements of a table, which are compiled once."""
        return _Statements(wanted)


def _exists(conn: Connection, name: str) -> bool:
    seen = _seen.setdefault(runtime.current().database, set())
    if name not in seen:
        wanted = _IN_SQLITE if conn.dialect_name == "sqlite" else _IN_POSTGRES
        if conn.scalar(wanted, {"name": name}) is None:
            return False
        seen.add(name)
    return True
