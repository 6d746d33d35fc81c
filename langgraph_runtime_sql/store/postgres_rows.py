"""The store's tables in Postgres: langgraph's own, and the statements on them.

The same functions as in `store_rows`, with the same meaning. Vectors are ranked by
pgvector where the server has it, exactly and inside their namespace; elsewhere they
are kept as bytes and ranked here.
"""

import logging
import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from langgraph.store.base import ListNamespacesOp
from langgraph.store.postgres.base import MIGRATIONS
from psycopg import errors

from langgraph_runtime_sql.database.postgres import lock_wait
from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.store.sqlite_rows import (
    Namespace,
    Search,
    Vector,
    matching_namespaces,
    range_of,
    similarities,
)

logger = logging.getLogger(__name__)

_ALIVE = "(expires_at IS NULL OR expires_at > %s)"
_COLUMNS = "prefix, key, value, created_at, updated_at, ttl_minutes"
# As in SQLite, whatever language the database sorts text by.
_NEWEST_FIRST = 'ORDER BY updated_at DESC, prefix COLLATE "C", key COLLATE "C"'
_LAST_CHARACTER = "\U0010ffff"
_SWEEP_ROWS = 1000
_VECTORS_AT_ONCE = 1000

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
# The vectors of a text that was replaced must not be found again, whoever writes it.
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


class Row(NamedTuple):
    """One item as it is stored."""

    prefix: str
    key: str
    value: Any
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None

    def fields(self) -> dict[str, Any]:
        """What langgraph's `Item` is made of."""
        return {
            "namespace": tuple(self.prefix.split(".")),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.astimezone(UTC),
            "updated_at": self.updated_at.astimezone(UTC),
        }


def ensure_tables(raw: Raw, dims: int | None) -> None:
    """Create what is missing. `raw` is outside any transaction.

    Args:
        dims: Dimensions of the configured index; None without an index.

    Raises:
        ValueError: the stored vectors have other dimensions.
        DatabaseBusy: others have been using a table for ten minutes.
    """
    lock_wait.run_foreign_migration(raw, partial(_ensure_tables, raw, dims))


def _ensure_tables(raw: Raw, dims: int | None) -> None:
    raw.execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
    [done] = raw.execute("SELECT coalesce(max(v), -1) + 1 FROM store_migrations").fetchall()
    for version, step in enumerate(MIGRATIONS[done[0] :], start=done[0]):
        raw.execute(step)
        if "ttl_minutes" in step:
            # The library's whole minutes would round what is given as a fraction.
            raw.execute("ALTER TABLE store ALTER COLUMN ttl_minutes TYPE double precision")
        # At last, so that what is cut off before is done again.
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
        logger.warning("pgvector is there, but this role may not use it: CREATE EXTENSION vector")
        return False
    return True


def _check_dimensions(raw: Raw, dims: int) -> None:
    found = raw.execute(
        "SELECT atttypmod FROM pg_attribute"
        " WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
        if _is_native(raw)
        else "SELECT octet_length(embedding) / 4 FROM store_vectors LIMIT 1"
    ).fetchone()
    if found and found[0] != dims:
        raise ValueError(
            f"The store's vectors have {found[0]} dimensions, but the configured index has "
            f"{dims}. Configure the embedding model they were made with, or drop the table "
            "store_vectors and put the items again."
        )


_native: WeakKeyDictionary[Raw, bool] = WeakKeyDictionary()


def _is_native(raw: Raw) -> bool:
    """Whether vectors are pgvector's; asked once a connection."""
    known = _native.get(raw)
    if known is None:
        [kind] = raw.execute(
            "SELECT atttypid::regtype::text FROM pg_attribute"
            " WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
        ).fetchall()
        known = _native[raw] = kind[0] != "bytea"
    return known


def get(raw: Raw, namespace: Namespace, key: str, now: str) -> Row | None:
    """The item, unless it is missing or has expired."""
    found = raw.execute(
        f"SELECT {_COLUMNS} FROM store WHERE prefix = %s AND key = %s AND {_ALIVE}",
        (".".join(namespace), key, now),
    ).fetchone()
    return None if found is None else Row._make(found)


def put(
    raw: Raw,
    namespace: Namespace,
    key: str,
    value: str,
    *,
    now: str,
    expires_at: str | None,
    ttl_minutes: float | None,
    vectors: list[tuple[str, Vector]],
) -> None:
    """Insert or replace; `vectors` are (name of the field, vector)."""
    prefix = ".".join(namespace)
    raw.execute(
        "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (prefix, key) DO UPDATE SET"
        " value = excluded.value, updated_at = excluded.updated_at,"
        " expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes,"
        " created_at = CASE WHEN store.expires_at <= excluded.updated_at"
        " THEN excluded.created_at ELSE store.created_at END",
        (prefix, key, value, now, now, expires_at, ttl_minutes),
    )
    if not vectors:
        return
    native = _is_native(raw)
    with closing(raw.cursor()) as cursor:
        cursor.executemany(
            "INSERT INTO store_vectors (prefix, key, field_name, embedding, created_at, updated_at)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (prefix, key, field, _literal(vector) if native else vector.tobytes(), now, now)
                for field, vector in vectors
            ],
        )


def _literal(vector: Vector) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


def delete(raw: Raw, namespace: Namespace, key: str) -> None:
    """Delete the item if it is there."""
    raw.execute("DELETE FROM store WHERE prefix = %s AND key = %s", (".".join(namespace), key))


def refresh(raw: Raw, row: Row, *, now: str, expires_at: str | None) -> None:
    """Put off the expiry of an item that was read, unless it has changed since."""
    raw.execute(
        "UPDATE store SET expires_at = greatest(expires_at, %s)"
        " WHERE prefix = %s AND key = %s AND ttl_minutes = %s AND expires_at > %s",
        (expires_at, row.prefix, row.key, row.ttl_minutes, now),
    )


def sweep(raw: Raw, now: str) -> int:
    """Delete some expired items; how many, 0 when none is left."""
    return raw.execute(
        "DELETE FROM store WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM store WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED))",
        (now, _SWEEP_ROWS),
    ).rowcount


def search(raw: Raw, wanted: Search, now: str) -> list[tuple[Row, float | None]]:
    """The items of a page and their scores: best first, or newest first without a query."""
    if wanted.query is not None:
        nearest = _nearest if _is_native(raw) else _nearest_here
        return nearest(raw, wanted, wanted.query, now)
    within, params = _below(wanted.prefix)
    statement = f"SELECT {_COLUMNS} FROM store WHERE {within} AND {_ALIVE} {_NEWEST_FIRST}"
    return [(Row._make(found), None) for found in _page(raw, statement, [*params, now], wanted)]


def _page(raw: Raw, statement: str, params: list[Any], wanted: Search) -> list[Any]:
    """The page of rows that pass the test; their first columns are those of an item."""
    if wanted.test is None:
        return raw.execute(
            f"{statement} LIMIT %s OFFSET %s", (*params, wanted.limit, wanted.offset)
        ).fetchall()
    # A few at a time: only as many are read as it takes to fill the page.
    with raw.cursor(name="store_search") as cursor:
        cursor.execute(statement, params)
        passing = (found for found in cursor if wanted.passes(found[2]))
        return list(islice(passing, wanted.offset, wanted.offset + wanted.limit))


def _nearest(raw: Raw, wanted: Search, query: Vector, now: str) -> list[tuple[Row, float | None]]:
    """By cosine similarity of an item's best vector; items without one come last."""
    within, params = _below(wanted.prefix)
    statement = f"""
        SELECT {_COLUMNS}, score FROM store LEFT JOIN (
            SELECT prefix AS p, key AS k,
                -- A vector of zeros is like nothing.
                max(coalesce(nullif(1 - (embedding <=> %s::vector), 'NaN'), 0)) AS score
            FROM store_vectors WHERE {within} GROUP BY prefix, key
        ) AS scores ON p = prefix AND k = key
        WHERE {within} AND {_ALIVE}
        ORDER BY score DESC NULLS LAST, updated_at DESC, prefix COLLATE "C", key COLLATE "C"
    """
    found = _page(raw, statement, [_literal(query), *params, *params, now], wanted)
    return [(Row._make(each[:-1]), each[-1]) for each in found]


def _nearest_here(
    raw: Raw, wanted: Search, query: Vector, now: str
) -> list[tuple[Row, float | None]]:
    """The same on a server without pgvector."""
    within, params = _below(wanted.prefix)
    found = raw.execute(
        f"SELECT prefix, key, {'value' if wanted.test else 'NULL'}"
        f" FROM store WHERE {within} AND {_ALIVE} {_NEWEST_FIRST}",
        (*params, now),
    )
    items = [(prefix, key) for prefix, key, value in found if wanted.passes(value)]
    scores = similarities(_chunks(raw, wanted), query)
    # Stable: items of the same score, or of none, stay newest first.
    items.sort(key=lambda item: scores.get(item, -math.inf), reverse=True)
    page = items[wanted.offset : wanted.offset + wanted.limit]
    select = f"SELECT {_COLUMNS} FROM store WHERE prefix = %s AND key = %s"
    return [
        (Row._make(row), scores.get(item))
        for item in page
        if (row := raw.execute(select, item).fetchone()) is not None
    ]


def _chunks(raw: Raw, wanted: Search) -> Iterator[list[tuple[str, str, bytes]]]:
    within, params = _below(wanted.prefix)
    with raw.cursor(name="store_vectors", binary=True) as cursor:
        cursor.execute(f"SELECT prefix, key, embedding FROM store_vectors WHERE {within}", params)
        while chunk := cursor.fetchmany(_VECTORS_AT_ONCE):
            wanted.look_at_time()
            yield chunk


def namespaces(raw: Raw, wanted: ListNamespacesOp, now: str) -> list[Namespace]:
    """The namespaces that hold an item, cut to `max_depth`, sorted by label."""
    start, end = range_of(wanted.match_conditions or ())
    return matching_namespaces(_prefixes(raw, start, end or _LAST_CHARACTER, now), wanted)


def _prefixes(raw: Raw, start: str, end: str | bytes, now: str) -> list[str]:
    """Distinct prefixes, by one jump through the index each instead of one step an item."""
    first = "ORDER BY prefix USING ~<~ LIMIT 1"
    found = raw.execute(
        "WITH RECURSIVE each (prefix) AS ("
        f" (SELECT prefix FROM store WHERE prefix ~>=~ %s {first})"
        " UNION ALL"
        # Not past the end, where policies hide what others have, row by row.
        f" SELECT (SELECT prefix FROM store WHERE prefix ~>~ each.prefix AND prefix ~<~ %s {first})"
        " FROM each WHERE each.prefix ~<~ %s)"
        " SELECT prefix FROM each WHERE prefix ~<~ %s AND EXISTS"
        f" (SELECT FROM store WHERE store.prefix = each.prefix AND {_ALIVE})",
        (start, end, end, end, now),
    ).fetchall()
    return [prefix for (prefix,) in found]


def _below(prefix: Namespace) -> tuple[str, list[Any]]:
    """The condition for a namespace and those below it; the operators compare byte by byte."""
    if not prefix:
        return "TRUE", []
    text = ".".join(prefix)
    return "(prefix = %s OR (prefix ~>~ %s AND prefix ~<~ %s))", [text, f"{text}.", f"{text}/"]
