"""The store's tables in SQLite."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from typing import Any

from langgraph_runtime_sql.json_codec import loads
from langgraph_runtime_sql.store.rows import ALIVE, Row, StoreTables, check_dimensions

# How many migrations langgraph has for its table, and the table that they leave in a new file.
_STEPS = 5
_TABLE = """
CREATE TABLE store (
    prefix TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    expires_at TIMESTAMP,
    ttl_minutes REAL,
    PRIMARY KEY (prefix, key)
)
"""
_INDEXES = (
    "CREATE INDEX store_prefix_idx ON store (prefix)",
    "CREATE INDEX idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL",
)

# Searches must not find the vectors of a replaced or deleted text. A trigger removes them also
# when another program, or a process without an index, writes the text.
_STALE_VECTORS = """
CREATE TRIGGER IF NOT EXISTS store_vectors_{event} AFTER {when} ON store BEGIN
    DELETE FROM store_vectors WHERE prefix = old.prefix AND key = old.key;
END
"""


def from_text(text: str) -> datetime:
    """Parse a stored date."""
    date = datetime.fromisoformat(text)
    # langgraph's own store writes SQLite's CURRENT_TIMESTAMP: UTC without an offset.
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def ensure_tables(raw: sqlite3.Connection, dims: int | None) -> None:
    """Create missing tables, all or none, in the caller's transaction if there is one.

    Args:
        raw: The driver's connection.
        dims: Dimensions of the configured index; None without an index.

    Raises:
        ValueError: the stored vectors have other dimensions.
    """
    raw.execute("SAVEPOINT store_tables")
    try:
        _ensure_items(raw)
        if dims is not None:
            from langgraph.store.sqlite.base import VECTOR_MIGRATIONS

            _migrate(raw, "vector_migrations", VECTOR_MIGRATIONS)
            raw.execute(_STALE_VECTORS.format(event="replaced", when="UPDATE OF value"))
            raw.execute(_STALE_VECTORS.format(event="deleted", when="DELETE"))
            for (found,) in _fetch(raw, "SELECT length(embedding) / 4 FROM store_vectors LIMIT 1"):
                check_dimensions(found, dims)
    except BaseException:
        raw.execute("ROLLBACK TO store_tables")
        raise
    finally:
        raw.execute("RELEASE store_tables")


def _ensure_items(raw: sqlite3.Connection) -> None:
    """Create the table of items, or migrate an older one.

    langgraph's migrations serve older files only: importing them imports numpy.
    """
    known = _fetch(raw, "SELECT 1 FROM sqlite_master WHERE name IN ('store', 'store_migrations')")
    done = _steps_done(raw, "store_migrations")
    if not known:
        for statement in (_TABLE, *_INDEXES):
            raw.execute(statement)
        versions = ((version,) for version in range(_STEPS))
        raw.executemany("INSERT INTO store_migrations (v) VALUES (?)", versions)
    elif done < _STEPS:
        from langgraph.store.sqlite.base import MIGRATIONS

        _migrate(raw, "store_migrations", MIGRATIONS)


def _migrate(raw: sqlite3.Connection, table: str, steps: list[str]) -> None:
    done = _steps_done(raw, table)
    for version, step in enumerate(steps[done:], start=done):
        raw.execute(step)
        raw.execute(f"INSERT INTO {table} (v) VALUES (?)", (version,))


def _steps_done(raw: sqlite3.Connection, table: str) -> int:
    """Return how many migrations `table` records; create it if it is missing."""
    raw.execute(f"CREATE TABLE IF NOT EXISTS {table} (v INTEGER PRIMARY KEY)")
    [(done,)] = _fetch(raw, f"SELECT coalesce(max(v), -1) + 1 FROM {table}")
    return int(done)


def _cursor(raw: sqlite3.Connection) -> sqlite3.Cursor:
    """Open a cursor of plain tuples, whatever row factory the connection has."""
    cursor = raw.cursor()
    cursor.row_factory = None
    return cursor


def _fetch(raw: sqlite3.Connection, statement: str, params: Sequence[Any] = ()) -> list[Any]:
    return _cursor(raw).execute(statement, params).fetchall()


class SqliteTables(StoreTables):
    """The statements in SQLite. Vectors are bytes, dates are text."""

    placeholder = "?"
    greatest = "max"
    newest_first = "ORDER BY updated_at DESC, prefix, key"
    below = "(prefix = ? OR (prefix > ? AND prefix < ?))"
    sweep_statement = (
        "DELETE FROM store WHERE rowid IN (SELECT rowid FROM store WHERE expires_at <= ? LIMIT ?)"
    )
    # A blob sorts behind every text.
    behind_all_text = b""

    def execute(self, raw: Any, statement: str, params: Sequence[Any]) -> sqlite3.Cursor:
        return _cursor(raw).execute(statement, params)

    def stream(
        self, raw: Any, statement: str, params: Sequence[Any]
    ) -> AbstractContextManager[Any]:
        return closing(self.execute(raw, statement, params))

    def decode(self, stored: Any) -> Any:
        return loads(stored)

    def row(self, columns: Sequence[Any]) -> Row:
        prefix, key, value, created_at, updated_at, ttl_minutes = columns
        dates = from_text(created_at), from_text(updated_at)
        return Row(prefix, key, self.value(prefix, key, value), *dates, ttl_minutes)

    def prefixes(self, raw: Any, start: str, end: str | bytes, now: str) -> list[str]:
        found = _fetch(
            raw,
            "WITH RECURSIVE each (prefix) AS ("
            " SELECT min(prefix) FROM store WHERE prefix >= ?"
            " UNION ALL"
            " SELECT (SELECT min(prefix) FROM store WHERE prefix > each.prefix)"
            " FROM each WHERE each.prefix < ?)"
            f" SELECT prefix FROM each WHERE prefix < ? AND EXISTS"
            f" (SELECT 1 FROM store WHERE store.prefix = each.prefix AND {ALIVE})",
            (start, end, end, now),
        )
        return [prefix for (prefix,) in found]


TABLES = SqliteTables()
