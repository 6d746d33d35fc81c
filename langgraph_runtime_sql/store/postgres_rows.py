"""The store's tables in Postgres.

pgvector ranks vectors where the server has it, exactly and inside their namespace. Elsewhere they
are stored as bytes, and Python ranks them.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.store.postgres.base import MIGRATIONS
from psycopg import errors

from langgraph_runtime_sql.database.postgres import lock_wait
from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.store.rows import (
    ALIVE,
    COLUMNS,
    Found,
    Search,
    StoreTables,
    Vector,
    check_dimensions,
)

logger = logging.getLogger(__name__)

_VECTORS = """
CREATE TABLE IF NOT EXISTS store_vectors (
    prefix text NOT NULL,
    key text NOT NULL,
    field_name text NOT NULL,
    embedding {type},
    created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name),
    FOREIGN KEY (prefix, key) REFERENCES store(prefix, key) ON DELETE CASCADE
)
"""
# Searches must not find the vectors of a replaced text, also when another program replaces it.
_STALE_VECTORS = (
    """
    CREATE OR REPLACE FUNCTION store_vectors_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM store_vectors WHERE prefix = old.prefix AND key = old.key;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE TRIGGER store_vectors_replaced AFTER UPDATE OF value ON store
    FOR EACH ROW EXECUTE FUNCTION store_vectors_replaced()
    """,
)


def ensure_tables(raw: Raw, dims: int | None) -> None:
    """Create missing tables. `raw` is outside any transaction.

    Args:
        raw: The driver's connection.
        dims: Dimensions of the configured index; None without an index.

    Raises:
        ValueError: the stored vectors have other dimensions.
        DatabaseBusy: other sessions have used a table for ten minutes.
    """
    lock_wait.run_foreign_migration(raw, partial(_ensure_tables, raw, dims))


def _ensure_tables(raw: Raw, dims: int | None) -> None:
    raw.execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
    [done] = raw.execute("SELECT coalesce(max(v), -1) + 1 FROM store_migrations").fetchall()
    for version, step in enumerate(MIGRATIONS[done[0] :], start=done[0]):
        raw.execute(step)
        if "ttl_minutes" in step:
            # The library's column holds whole minutes and would round fractions.
            raw.execute("ALTER TABLE store ALTER COLUMN ttl_minutes TYPE double precision")
        # Recorded last, so that the next start repeats an interrupted step.
        raw.execute("INSERT INTO store_migrations (v) VALUES (%s)", (version,))
    if dims is not None:
        kind = f"vector({dims})" if _has_pgvector(raw) else "bytea"
        raw.execute(_VECTORS.format(type=kind))
        with raw.transaction():
            for statement in _STALE_VECTORS:
                raw.execute(statement)
        _check_dimensions(raw, dims)


def _has_pgvector(raw: Raw) -> bool:
    if not raw.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'").fetchall():
        return False
    try:
        raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege:
        logger.warning("pgvector was not enabled: this role may not run CREATE EXTENSION vector")
        return False
    return True


def _check_dimensions(raw: Raw, dims: int) -> None:
    found = raw.execute(
        "SELECT atttypmod FROM pg_attribute"
        " WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
        if _is_native(raw)
        else "SELECT octet_length(embedding) / 4 FROM store_vectors LIMIT 1"
    ).fetchone()
    if found:
        check_dimensions(found[0], dims)


_native: WeakKeyDictionary[Raw, bool] = WeakKeyDictionary()


def _is_native(raw: Raw) -> bool:
    """Return whether the column has pgvector's type; each connection asks once."""
    known = _native.get(raw)
    if known is None:
        [kind] = raw.execute(
            "SELECT atttypid::regtype::text FROM pg_attribute"
            " WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
        ).fetchall()
        known = _native[raw] = kind[0] != "bytea"
    return known


def _literal(vector: Vector) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


class PostgresTables(StoreTables):
    """The statements in Postgres. Their operators compare texts byte by byte."""

    placeholder = "%s"
    greatest = "greatest"
    # The order of SQLite, whatever language the database sorts text by.
    newest_first = 'ORDER BY updated_at DESC, prefix COLLATE "C", key COLLATE "C"'
    below = "(prefix = ? OR (prefix ~>~ ? AND prefix ~<~ ?))"
    sweep_statement = (
        "DELETE FROM store WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM store WHERE expires_at <= ? LIMIT ? FOR UPDATE SKIP LOCKED))"
    )
    behind_all_text = "\U0010ffff"

    def execute(self, raw: Raw, statement: str, params: Sequence[Any]) -> Any:
        return raw.execute(statement.replace("?", "%s").encode(), params)

    @contextmanager
    def stream(self, raw: Raw, statement: str, params: Sequence[Any]) -> Iterator[Any]:
        with raw.cursor(name="store_rows", binary=True) as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), params)
            yield cursor

    def encode(self, raw: Raw, vector: Vector) -> str | bytes:
        return _literal(vector) if _is_native(raw) else super().encode(raw, vector)

    def nearest(self, raw: Raw, wanted: Search, query: Vector, now: str) -> Found:
        if not _is_native(raw):
            return super().nearest(raw, wanted, query, now)
        within, params = self.within(wanted.prefix)
        # A vector of zeros has no direction: its similarity, NaN, counts as 0.
        statement = f"""
            SELECT {COLUMNS}, score FROM store LEFT JOIN (
                SELECT prefix AS p, key AS k,
                    max(coalesce(nullif(1 - (embedding <=> ?::vector), 'NaN'), 0)) AS score
                FROM store_vectors WHERE {within} GROUP BY prefix, key
            ) AS scores ON p = prefix AND k = key
            WHERE {within} AND {ALIVE}
            ORDER BY score DESC NULLS LAST, updated_at DESC, prefix COLLATE "C", key COLLATE "C"
        """
        found = self.page(raw, statement, [_literal(query), *params, *params, now], wanted)
        return [(self.row(each[:-1]), each[-1]) for each in found]

    def prefixes(self, raw: Raw, start: str, end: str | bytes, now: str) -> list[str]:
        first = "ORDER BY prefix USING ~<~ LIMIT 1"
        found = self.execute(
            raw,
            "WITH RECURSIVE each (prefix) AS ("
            f" (SELECT prefix FROM store WHERE prefix ~>=~ ? {first})"
            " UNION ALL"
            # Not past the end: there policies would hide the rows of other tenants one by one.
            f" SELECT (SELECT prefix FROM store WHERE prefix ~>~ each.prefix AND prefix ~<~ ? {first})"
            " FROM each WHERE each.prefix ~<~ ?)"
            " SELECT prefix FROM each WHERE prefix ~<~ ? AND EXISTS"
            f" (SELECT FROM store WHERE store.prefix = each.prefix AND {ALIVE})",
            (start, end, end, end, now),
        )
        return [prefix for (prefix,) in found]


TABLES = PostgresTables()
