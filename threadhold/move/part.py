"""Parts: what is moved, table by table."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import psycopg
from psycopg.types.json import set_json_loads
from sqlalchemy import Table

from threadhold.move import canonical
from threadhold.move.canonical import Unstorable
from threadhold.move.field import Field, quoted

Target = psycopg.Connection[Any]
Key = tuple[Any, ...]
Row = tuple[Any, ...]

# Rows that Postgres sends at a time: those of checkpoints may be large.
_AT_ONCE = 100
# Characters from which on a key may be too long for an index: it depends on how it compresses.
_LONG_KEY = 2000


class Entry(NamedTuple):
    """One row of the source.

    Attributes:
        key: Where it is: reading goes on behind it.
        row: Its values as both databases give them, or None if it cannot be stored.
        problem: Why it cannot.
        size: About how many bytes it takes.
    """

    key: Key
    row: Row | None
    problem: str | None
    size: int


class Part(Protocol):
    """Rows that are moved from one table.

    Attributes:
        name: Of the table that they come to.
        source: Of the table that they are in.
        columns: What is read of it.
    """

    name: str
    source: str
    columns: Sequence[str]

    def entries(self, raw: sqlite3.Connection, after: Key | None = None) -> Iterator[Entry]:
        """The source's rows, in the order of their keys, behind the key `after`."""

    def write(self, target: Target, rows: Sequence[Row]) -> None:
        """Put rows into the target, in the caller's transaction."""

    def stored(self, target: Target) -> Iterator[Row]:
        """The target's rows, in whatever order, with values as in `entries`."""

    def digest(self, row: Row) -> bytes:
        """What tells a row from any other, whichever database it is from."""

    def refusal(self, target: Target, row: Row) -> str | None:
        """Why the target would not take a row, where only it can say."""

    def said(self, row: Row) -> str:
        """The id of a row, for people."""


class TablePart:
    """A table that holds the same in both databases.

    Args:
        table: As Postgres has it. `info["source"]` is what SQLite calls it, if that is
            something else.
    """

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self.source = str(table.info.get("source", table.name))
        self.fields = [Field(column) for column in table.columns]
        self.columns: Sequence[str] = [field.source for field in self.fields]
        names = [field.name for field in self.fields]
        self._key = [names.index(column.name) for column in table.primary_key.columns]

    def entries(self, raw: sqlite3.Connection, after: Key | None = None) -> Iterator[Entry]:
        for record in read_after(raw, self.source, self.columns, self._key, after):
            key = tuple(record[place] for place in self._key)
            try:
                row = tuple(f.read(value) for f, value in zip(self.fields, record, strict=True))
            except Unstorable as error:
                yield Entry(key, None, str(error), size_of(record))
            else:
                yield Entry(key, row, None, size_of(record))

    def write(self, target: Target, rows: Sequence[Row]) -> None:
        with target.cursor() as cursor:
            cursor.executemany(self._insert(self.name), rows)

    def stored(self, target: Target) -> Iterator[Row]:
        names = ", ".join(field.out for field in self.fields)
        for record in streamed(target, f"SELECT {names} FROM {quoted(self.name)}"):
            pairs = zip(self.fields, record, strict=True)
            yield tuple(field.stored(value) for field, value in pairs)

    def digest(self, row: Row) -> bytes:
        return canonical.digest(row)

    def refusal(self, target: Target, row: Row) -> str | None:
        if sum(len(row[i]) for i in self._key if isinstance(row[i], str)) < _LONG_KEY:
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

    def said(self, row: Row) -> str:
        return said(row[place] for place in self._key)

    def _insert(self, table: str) -> bytes:
        names = ", ".join(quoted(field.name) for field in self.fields)
        values = ", ".join(field.into for field in self.fields)
        return f"INSERT INTO {quoted(table)} ({names}) VALUES ({values})".encode()


def read_after(
    raw: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    key: Sequence[int],
    after: Key | None,
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table of the source behind a key, in order, one at a time."""
    order = ", ".join(quoted(columns[place]) for place in key)
    statement = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}"
    if after is not None:
        statement += f" WHERE ({order}) > ({', '.join('?' * len(key))})"
    yield from raw.execute(f"{statement} ORDER BY {order}", after or ())


def streamed(target: Target, statement: str, **options: Any) -> Iterator[Any]:
    """The rows that a statement finds in the target, some at a time.

    Args:
        options: Of the cursor.
    """
    with target.transaction(), target.cursor(name="moved", **options) as cursor:
        cursor.itersize = _AT_ONCE
        # Whole numbers of any size stay what they are.
        set_json_loads(json.loads, cursor)
        cursor.execute(statement.encode())
        yield from cursor


def said(values: Iterable[Any]) -> str:
    """An id of some columns, for people."""
    return " / ".join(str(value) for value in values if value != "")


def size_of(record: Iterable[Any]) -> int:
    """About how many bytes a row takes."""
    return sum(len(each) if isinstance(each, str | bytes) else 8 for each in record)


def first_line(error: Exception) -> str:
    """What a driver's error says, without where in the statement it is."""
    return str(error).partition("\n")[0] or type(error).__name__
