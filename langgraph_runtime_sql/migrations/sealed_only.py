"""Sealed only: triggers that refuse rows without encryption, once `keys encrypt` has ended.

A process without the key, of whatever version, would otherwise store what nobody reads any more. The
database refuses its writes.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from langgraph_runtime_sql.checkpoint import VALUES
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import metadata
from langgraph_runtime_sql.encryption import keys
from langgraph_runtime_sql.encryption.documents import SEALED, sealed_columns

_NAME = "only_sealed"
MESSAGE = (
    "All rows of this database are encrypted, and this one is not: set LANGGRAPH_AES_KEY to the key "
    "of its servers"
)


class Guarded(NamedTuple):
    """A value that must be encrypted in each row of a table.

    A statement that changes only others of the row is not checked: the value may still be plain.

    Attributes:
        table: The table.
        column: The column of the value.
        is_plain: The SQL condition that it is plain, with `{row}` for the row.
        kind: Another column of the condition.
    """

    table: str
    column: str
    is_plain: str
    kind: str | None = None

    def plain(self, conn: Connection) -> int:
        """Return the number of rows in which it is plain."""
        condition = self.is_plain.format(row=f'"{self.table}"')
        [(count,)] = conn.raw.execute(f'SELECT count(*) FROM "{self.table}" WHERE {condition}')
        return int(count)

    @property
    def changed(self) -> str:
        """The columns whose change is checked."""
        return ", ".join(f'"{name}"' for name in (self.column, self.kind) if name is not None)


def guarded(dialect_name: str) -> Iterator[Guarded]:
    """Yield the values of a database that are encrypted."""
    is_sqlite = dialect_name == "sqlite"
    document = _document_in_sqlite if is_sqlite else _document_in_postgres
    for table in metadata.sorted_tables:
        for column in sealed_columns(table):
            yield Guarded(table.name, column, document(column))
    yield Guarded("store", "value", document("value"))
    first = "substr({row}.events, 1, 1)" if is_sqlite else "substring({row}.events FOR 1)"
    sealed = "x'01'" if is_sqlite else r"'\x01'"
    yield Guarded("event_segments", "events", f"{first} <> {sealed}")
    for table in VALUES:
        is_plain = "{row}.value IS NOT NULL AND coalesce({row}.type, '') NOT LIKE '%+sealed'"
        yield Guarded(table.name, "value", is_plain, "type")


# The version byte of an envelope is 1, so that its base64 begins with one of these.
def _document_in_sqlite(column: str) -> str:
    value = f'{{row}}."{column}"'
    return f"""({value} IS NOT NULL AND {value} NOT IN ('{{{{}}}}', '[]')
        AND {value} NOT GLOB '{{{{"{SEALED}":"A[Q-Za-f]*')"""


def _envelope_in_postgres(value: str) -> str:
    return f"coalesce(left({value} ->> '{SEALED}', 2), '') ~ '^A[Q-Za-f]$'"


def _document_in_postgres(column: str) -> str:
    value = f'{{row}}."{column}"'
    return f"""({value} IS NOT NULL AND {value} NOT IN ('{{{{}}}}', '[]')
        AND NOT {_envelope_in_postgres(value)})"""


_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{MESSAGE}'; END $$
"""


def ensure(raw: Any) -> None:
    """Create the missing triggers of a SQLite file, if all its rows are encrypted."""
    if raw.execute(_IS_ENCRYPTED).fetchone() is not None:
        _guard_file(raw)


def ensure_postgres(raw: Any) -> None:
    """Create the missing triggers of a Postgres database, if all its rows are encrypted.

    Args:
        raw: The driver's connection, outside of a transaction.
    """
    if raw.execute(_IS_ENCRYPTED).fetchone() is not None:
        _guard_postgres(raw)


_IS_ENCRYPTED = f"SELECT 1 FROM facts WHERE name = '{keys.ENCRYPTED}'"


def guard(database: Database) -> None:
    """Refuse plain rows from now on, whichever process writes them.

    Raises:
        DatabaseBusy: other sessions have used a table for ten minutes.
    """
    if database.dialect_name == "sqlite":
        database.write_sync(lambda conn: _guard_file(conn.raw))
        return
    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine

    with closing(PostgresEngine(database.url).reach()) as raw:
        _guard_postgres(raw)


def _guard_file(raw: Any) -> None:
    for each in guarded("sqlite"):
        condition = each.is_plain.format(row="NEW")
        name = f"{_NAME}_{each.table}_{each.column}"
        for suffix, event in (("insert", "INSERT"), ("update", f"UPDATE OF {each.changed}")):
            raw.execute(
                f"CREATE TRIGGER IF NOT EXISTS {name}_{suffix} BEFORE {event}"
                f" ON {each.table} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
            )


def _guard_postgres(raw: Any) -> None:
    from langgraph_runtime_sql.database.postgres import lock_wait

    raw.execute(_FUNCTION)
    for each in guarded("postgresql"):
        lock_wait.transaction(raw, partial(_guard_table, raw, each))


def _guard_table(raw: Any, each: Guarded) -> None:
    name = f"{_NAME}_{each.column}"
    # Replacing a trigger would wait for the users of its table.
    known = "SELECT 1 FROM pg_trigger WHERE tgname = %s AND tgrelid = %s::regclass"
    if raw.execute(known, (name, each.table)).fetchone() is None:
        raw.execute(
            f"CREATE TRIGGER {name} BEFORE INSERT OR UPDATE OF {each.changed} ON {each.table}"
            f" FOR EACH ROW WHEN ({each.is_plain.format(row='NEW')}) EXECUTE FUNCTION {_NAME}()"
        )
