"""Parts: read, write and compare the rows of one moved table."""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import set_json_loads
from sqlalchemy import Table

from langgraph_runtime_sql.database.schema import unpacked_id
from threadhold.move import canonical
from threadhold.move.canonical import Unstorable
from threadhold.move.field import Field, quoted

Target = psycopg.Connection[Any]
Key = tuple[Any, ...]
Row = tuple[Any, ...]

# Rows to fetch from Postgres at a time; rows of checkpoints may be large.
_AT_ONCE = 100
# From this length a key may be too long for an index, depending on its compression.
_LONG_KEY = 2000


class Entry(NamedTuple):
    """One row of the source.

    Attributes:
        key: Its primary key, after which reading can continue.
        row: Its values in the form that both databases share, or None if Postgres cannot hold it.
        problem: Why Postgres cannot hold it.
        size: Its approximate bytes.
    """

    key: Key
    row: Row | None
    problem: str | None
    size: int


class Part(ABC):
    """Rows that are moved from one table.

    Attributes:
        name: The target table.
        source: The source table.
        columns: Columns of the source table.
        key: Places of the primary key in `columns` and in rows.
    """

    name: str
    source: str
    columns: Sequence[str]
    key: Sequence[int]

    @abstractmethod
    def read(self, record: Sequence[Any]) -> Row:
        """Convert a record of the source.

        Raises:
            Unstorable: Postgres cannot hold it.
        """

    @abstractmethod
    def write(self, target: Target, rows: Sequence[Row]) -> None:
        """Insert rows into the target, in the caller's transaction."""

    @abstractmethod
    def stored(self, target: Target) -> Iterator[Row]:
        """Yield the target's rows in any order, with values as in `entries`."""

    def entries(self, raw: sqlite3.Connection, after: Key | None = None) -> Iterator[Entry]:
        """Yield the source's rows in key order, after the key `after`."""
        order = ", ".join(quoted(self.columns[place]) for place in self.key)
        statement = f"SELECT {', '.join(map(quoted, self.columns))} FROM {quoted(self.source)}"
        if after is not None:
            statement += f" WHERE ({order}) > ({', '.join('?' * len(self.key))})"
        for record in raw.execute(f"{statement} ORDER BY {order}", after or ()):
            row = problem = None
            try:
                row = self.read(record)
            except Unstorable as error:
                problem = str(error)
            size = sum(len(each) if isinstance(each, str | bytes) else 8 for each in record)
            yield Entry(tuple(record[place] for place in self.key), row, problem, size)

    def digest(self, row: Row) -> bytes:
        """Return the digest of a row, which is the same for both databases."""
        return canonical.digest(row)

    def refusal(self, target: Target, row: Row) -> str | None:
        """Return why the target would refuse a row, if only the target can tell; else None."""
        return None

    def describe(self, row: Row) -> str:
        """Return the id of a row for messages."""
        return describe_key(row[place] for place in self.key)


class TablePart(Part):
    """A table with the same content in both databases.

    Args:
        table: The Postgres table. `info["source"]` is its name in SQLite, if different.
    """

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self.source = str(table.info.get("source", table.name))
        self.fields = [Field(column) for column in table.columns]
        self.columns = [field.source for field in self.fields]
        names = [field.name for field in self.fields]
        self.key = [names.index(column.name) for column in table.primary_key.columns]

    def read(self, record: Sequence[Any]) -> Row:
        return tuple(f.read(value) for f, value in zip(self.fields, record, strict=True))

    def write(self, target: Target, rows: Sequence[Row]) -> None:
        with target.cursor() as cursor:
            cursor.executemany(self._insert(self.name), rows)

    def stored(self, target: Target) -> Iterator[Row]:
        names = ", ".join(field.out for field in self.fields)
        for record in streamed(target, f"SELECT {names} FROM {quoted(self.name)}"):
            pairs = zip(self.fields, record, strict=True)
            yield tuple(field.stored(value) for field, value in pairs)

    def refusal(self, target: Target, row: Row) -> str | None:
        if sum(len(row[i]) for i in self.key if isinstance(row[i], str)) < _LONG_KEY:
            return None
        trial = f"{self.name}_trial"
        try:
            with target.transaction(force_rollback=True):
                target.execute(
                    f"CREATE TEMP TABLE {quoted(trial)}"
                    f" (LIKE {quoted(self.name)} INCLUDING INDEXES)".encode()
                )
                target.execute(self._insert(trial), row)
        except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
            return first_line(error)
        return None

    def _insert(self, table: str) -> bytes:
        names = ", ".join(quoted(field.name) for field in self.fields)
        values = ", ".join(field.into for field in self.fields)
        return f"INSERT INTO {quoted(table)} ({names}) VALUES ({values})".encode()


def streamed(target: Target, statement: str, **options: Any) -> Iterator[Any]:
    """Yield the rows of a query on the target from a server-side cursor.

    Args:
        options: Arguments of the cursor.
    """
    with target.transaction(), target.cursor(name="moved", **options) as cursor:
        cursor.itersize = _AT_ONCE
        # Keeps whole numbers of any size exact.
        set_json_loads(json.loads, cursor)
        cursor.execute(statement.encode())
        yield from cursor


def describe_key(values: Iterable[Any]) -> str:
    """Join the columns of a key for messages."""
    texts = (unpacked_id(value) if isinstance(value, bytes) else str(value) for value in values)
    return " / ".join(each for each in texts if each)


def first_line(error: Exception) -> str:
    """Return a driver's message without the position in the statement."""
    return str(error).partition("\n")[0] or type(error).__name__
