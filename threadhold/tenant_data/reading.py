"""Reading: one transaction on either database, for exports and erases."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from langgraph_runtime_sql import checkpoint, json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.sqlite.engine import BUSY_TIMEOUT_SECONDS
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.encryption.keys import KeyErased
from langgraph_runtime_sql.tenancy.scope import label
from threadhold.tenant_data.errors import CannotErase, UnknownTenant
from threadhold.tenant_data.rules import Rule

_PARAMETER = re.compile(r":(\w+)")
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": (
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
        " AND relnamespace = current_schema()::regnamespace"
    ),
}
_HEX = {"sqlite": "lower(hex(thread_id))", "postgresql": "encode(thread_id, 'hex')"}


class Transaction:
    """A transaction that sees all rows.

    Attributes:
        kind: `sqlite` or `postgresql`.
        raw: The driver's connection.
    """

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.kind = "sqlite" if isinstance(raw, sqlite3.Connection) else "postgresql"

    def execute(self, statement: str, tenant: str) -> Any:
        """Execute a statement of rules; return the cursor.

        Its parameters are `:tenant` and `:label`; `HEX_OF_ID` stands for the digits of `thread_id`.
        """
        return self.raw.execute(*self.written(statement, tenant))

    def written(self, statement: str, tenant: str) -> tuple[str, dict[str, str]]:
        """Return a statement of rules and its values for the driver; see `execute`."""
        statement = statement.replace("HEX_OF_ID", _HEX[self.kind])
        if self.kind != "sqlite":
            statement = _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
        return statement, {"tenant": tenant, "label": label(tenant)}

    def rules(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rules of the tables that the database has, without those that have no rows.

        Raises:
            CannotErase: a table has no rule.
        """
        found = self._tables()
        if unknown := sorted(found - {rule.table for rule in rules}):
            raise CannotErase(
                f"No rule says which rows of these tables are a tenant's: {', '.join(unknown)}. "
                "Use the program that made them, such as `python -m server`, or add rules."
            )
        return [rule for rule in rules if rule.table in found and rule.where]

    def rebuild(self, rules: Sequence[Rule]) -> None:
        """Rebuild the indexes that keep deleted words."""
        found = self._tables()
        for rule in rules:
            if rule.rebuild is not None and rule.table in found:
                self.raw.execute(rule.rebuild)

    def _tables(self) -> set[str]:
        return {name for (name,) in self.raw.execute(_TABLES[self.kind]).fetchall()}

    def count(self, rule: Rule, tenant: str) -> int:
        """Return the number of a tenant's rows in a table."""
        query = f'SELECT count(*) FROM "{rule.table}" WHERE {rule.where}'
        return int(self.execute(query, tenant).fetchone()[0])

    def connection(self, tenant: str | None = None) -> Connection:
        """Return a connection of the runtime in this transaction, for a tenant's rows."""
        from langgraph_runtime_sql.database.postgres.connection import DIALECT
        from langgraph_runtime_sql.database.sqlite.engine import DIALECT as SQLITE

        dialect = SQLITE if self.kind == "sqlite" else DIALECT
        return Connection(self.raw, dialect, tenant=tenant)


def check_tenant(transaction: Transaction, tenant: str) -> None:
    """Check that the database has tenants, and that `tenant` is a name.

    Raises:
        UnknownTenant: it has none, or the name is empty.
    """
    known = "SELECT value FROM facts WHERE name = 'tenant_key'"
    row = transaction.raw.execute(known).fetchone()
    if not tenant or row is None or row[0] is None:
        raise UnknownTenant(
            "The database has no tenants: set `sql.tenant_key` in langgraph.json, and start the "
            "server once"
            if tenant
            else "A tenant has a name"
        )


@contextmanager
def snapshot(url: str) -> Iterator[Transaction]:
    """Open a read-only transaction, while servers may run.

    Raises:
        UnknownTenant: there is no database.
        DatabaseOverloaded: Postgres cannot be reached.
    """
    if not is_postgres(url):
        path = database_path(url)
        if not path.is_file():
            raise UnknownTenant(f"There is no database at {path}")
        uri = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS)) as raw:
            raw.execute("BEGIN")
            yield Transaction(raw)
        return
    with closing(PostgresEngine(url).reach()) as there, there.transaction():
        there.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        there.execute("SET LOCAL threadhold.everything = 'on'")
        yield Transaction(there)


def complete(transaction: Transaction, thread: dict[str, Any]) -> None:
    """Add to a thread's row the long values that it leaves to a checkpoint, if both can be read."""
    about, values = _json(thread.get("long_values")), _json(thread["values"])
    if about is None or values is None:
        return
    place = thread["thread_id"], about["checkpoint_id"]
    try:
        found = checkpoint.shown_values(transaction.connection(), *place, is_served=False) or {}
    except KeyErased:
        return
    left_out = {key: found[key] for key in about["keys"] if key not in values and key in found}
    thread["values"] = {**values, **left_out}


def _json(document: Any) -> Any:
    """Return a document that SQLite has as text, and Postgres's driver has read."""
    return json_codec.loads(document) if isinstance(document, str) else document


def rows(transaction: Transaction, rule: Rule, tenant: str) -> Iterator[dict[str, Any]]:
    """Yield a tenant's rows of a table, a few in memory at a time."""
    query = f'SELECT * FROM "{rule.table}" WHERE {rule.where}'
    if transaction.kind == "sqlite":
        cursor = transaction.execute(query, tenant)
        names = [each[0] for each in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))
        return
    options: Any = {"name": "exported", "row_factory": psycopg.rows.dict_row}
    with transaction.raw.cursor(**options) as cursor:
        cursor.execute(*transaction.written(query, tenant))
        yield from cursor
