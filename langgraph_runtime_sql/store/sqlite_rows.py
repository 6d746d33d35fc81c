"""The store's tables in SQLite: langgraph's own, and the statements on them.

The tables are those of langgraph's `SqliteStore`, so either reads what the
other wrote. The statements are ours: they see no expired item, keep the
creation date of an item that is overwritten, page in a stable order, and let no
part of a request into their text.

A namespace is stored as its labels joined by dots; labels hold no dot, so what
is below `("t1",)` lies between `t1.` and `t1/` (the character after the dot),
and `("t10",)` does not.
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph_runtime_sql.json_codec import loads
from langgraph_runtime_sql.store.filter import Test

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
else:
    # numpy is imported where there are vectors: most stores have none, and each start would wait.
    Vector = Any
Namespace = tuple[str, ...]

_ALIVE = "(expires_at IS NULL OR expires_at > ?)"
_COLUMNS = "prefix, key, value, created_at, updated_at, ttl_minutes"
_NEWEST_FIRST = "ORDER BY updated_at DESC, prefix, key"
# A blob sorts behind every text.
_BEHIND_ALL_TEXT = b""
_SWEEP_ROWS = 1000
_VECTORS_AT_ONCE = 1000

# How many steps langgraph has for its table, and what they make of a new file.
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

# The vectors of a text that was replaced or deleted must not be found again,
# whoever writes it, with or without an index configured at that moment.
_STALE_VECTORS = """
CREATE TRIGGER IF NOT EXISTS store_vectors_{event} AFTER {when} ON store BEGIN
    DELETE FROM store_vectors WHERE prefix = old.prefix AND key = old.key;
END
"""


class Row(NamedTuple):
    """One item as it is stored."""

    prefix: str
    key: str
    value: str | bytes
    created_at: str
    updated_at: str
    ttl_minutes: float | None

    def fields(self) -> dict[str, Any]:
        """What langgraph's `Item` is made of."""
        return {
            "namespace": tuple(self.prefix.split(".")),
            "key": self.key,
            "value": loads(self.value),
            "created_at": from_text(self.created_at),
            "updated_at": from_text(self.updated_at),
        }


class Search(NamedTuple):
    """One search, ready to run: `query` is the vector to rank by, if any.

    `look_at_time` is called for each row, or some, that is looked at outside of a statement.
    """

    prefix: Namespace
    test: Test | None
    limit: int
    offset: int
    query: Vector | None
    look_at_time: Callable[[], None]

    def passes(self, value: Any) -> bool:
        """Whether an item with this value is looked for."""
        self.look_at_time()
        return self.test is None or self.test(value)


def to_text(moment: datetime) -> str:
    """A date as stored: UTC, sorted by time when sorted as text."""
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")


def from_text(text: str) -> datetime:
    """The date that was stored so."""
    moment = datetime.fromisoformat(text)
    # langgraph's own store writes SQLite's CURRENT_TIMESTAMP: UTC, without saying so.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def ensure_tables(raw: sqlite3.Connection, dims: int | None) -> None:
    """Create what is missing, all of it or nothing, in the caller's transaction if there is one.

    Args:
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
            _check_dimensions(raw, dims)
    except BaseException:
        raw.execute("ROLLBACK TO store_tables")
        raise
    finally:
        raw.execute("RELEASE store_tables")


def _ensure_items(raw: sqlite3.Connection) -> None:
    """As langgraph's own steps do, which only older files need: with them comes all of numpy."""
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


def _check_dimensions(raw: sqlite3.Connection, dims: int) -> None:
    some = _fetch(raw, "SELECT length(embedding) / 4 FROM store_vectors LIMIT 1")
    if some and some[0][0] != dims:
        raise ValueError(
            f"The store's vectors have {some[0][0]} dimensions, but the configured index has "
            f"{dims}. Configure the embedding model they were made with, or empty the table "
            "store_vectors and put the items again."
        )


def _migrate(raw: sqlite3.Connection, table: str, steps: list[str]) -> None:
    done = _steps_done(raw, table)
    for version, step in enumerate(steps[done:], start=done):
        raw.execute(step)
        raw.execute(f"INSERT INTO {table} (v) VALUES (?)", (version,))


def _steps_done(raw: sqlite3.Connection, table: str) -> int:
    """How many of its steps the file has had, as noted in `table`, which is made if missing."""
    raw.execute(f"CREATE TABLE IF NOT EXISTS {table} (v INTEGER PRIMARY KEY)")
    [(done,)] = _fetch(raw, f"SELECT coalesce(max(v), -1) + 1 FROM {table}")
    return int(done)


def get(raw: sqlite3.Connection, namespace: Namespace, key: str, now: str) -> Row | None:
    """The item, unless it is missing or has expired."""
    found = _rows(
        raw,
        f"SELECT {_COLUMNS} FROM store WHERE prefix = ? AND key = ? AND {_ALIVE}",
        [".".join(namespace), key, now],
    )
    return next(found, None)


def put(
    raw: sqlite3.Connection,
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
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (prefix, key) DO UPDATE SET"
        " value = excluded.value, updated_at = excluded.updated_at,"
        " expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes,"
        " created_at = CASE WHEN store.expires_at <= excluded.updated_at"
        " THEN excluded.created_at ELSE store.created_at END",
        (prefix, key, value, now, now, expires_at, ttl_minutes),
    )
    # Without an index there are no vectors, and no table for them either.
    if vectors:
        raw.executemany(
            "INSERT INTO store_vectors (prefix, key, field_name, embedding, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(prefix, key, field, vector.tobytes(), now, now) for field, vector in vectors],
        )


def delete(raw: sqlite3.Connection, namespace: Namespace, key: str) -> None:
    """Delete the item if it is there."""
    raw.execute("DELETE FROM store WHERE prefix = ? AND key = ?", (".".join(namespace), key))


def refresh(raw: sqlite3.Connection, row: Row, *, now: str, expires_at: str | None) -> None:
    """Put off the expiry of an item that was read, unless it has changed since."""
    raw.execute(
        "UPDATE store SET expires_at = max(expires_at, ?)"
        " WHERE prefix = ? AND key = ? AND ttl_minutes = ? AND expires_at > ?",
        (expires_at, row.prefix, row.key, row.ttl_minutes, now),
    )


def sweep(raw: sqlite3.Connection, now: str) -> int:
    """Delete some expired items; how many, 0 when none is left."""
    return raw.execute(
        "DELETE FROM store WHERE rowid IN (SELECT rowid FROM store WHERE expires_at <= ? LIMIT ?)",
        (now, _SWEEP_ROWS),
    ).rowcount


def search(raw: sqlite3.Connection, wanted: Search, now: str) -> list[tuple[Row, float | None]]:
    """The items of a page and their scores: best first, or newest first without a query."""
    if wanted.query is not None:
        return _nearest(raw, wanted, wanted.query, now)
    within, params = _below(wanted.prefix)
    statement = f"SELECT {_COLUMNS} FROM store WHERE {within} AND {_ALIVE} {_NEWEST_FIRST}"
    if wanted.test is None:
        page = [*params, now, wanted.limit, wanted.offset]
        return [(row, None) for row in _rows(raw, f"{statement} LIMIT ? OFFSET ?", page)]
    found = _rows(raw, statement, [*params, now])
    matching = (row for row in found if wanted.passes(loads(row.value)))
    return [(row, None) for row in islice(matching, wanted.offset, wanted.offset + wanted.limit)]


def _nearest(
    raw: sqlite3.Connection, wanted: Search, query: Vector, now: str
) -> list[tuple[Row, float | None]]:
    """By cosine similarity of an item's best vector; items without one come last.

    Ranked in Python, because not every build of it can load SQLite extensions.
    """
    within, params = _below(wanted.prefix)
    found = _cursor(raw).execute(
        f"SELECT prefix, key, {'value' if wanted.test else 'NULL'}"
        f" FROM store WHERE {within} AND {_ALIVE} {_NEWEST_FIRST}",
        [*params, now],
    )
    items = [
        (prefix, key)
        for prefix, key, value in found
        if wanted.test is None or wanted.passes(loads(value))
    ]
    scores = similarities(_chunks(raw, within, params), query)
    # Stable: items of the same score, or of none, stay newest first.
    items.sort(key=lambda item: scores.get(item, -math.inf), reverse=True)
    page = items[wanted.offset : wanted.offset + wanted.limit]
    select = f"SELECT {_COLUMNS} FROM store WHERE prefix = ? AND key = ?"
    return [(next(_rows(raw, select, [*item])), scores.get(item)) for item in page]


def _chunks(
    raw: sqlite3.Connection, within: str, params: list[Any]
) -> Iterator[list[tuple[str, str, bytes]]]:
    cursor = _cursor(raw).execute(
        f"SELECT prefix, key, embedding FROM store_vectors WHERE {within}", params
    )
    while chunk := cursor.fetchmany(_VECTORS_AT_ONCE):
        yield chunk


def similarities(
    chunks: Iterable[list[tuple[str, str, bytes]]], query: Vector
) -> dict[tuple[str, str], float]:
    """The cosine similarity to `query` of each item's best vector; chunks hold item and vector."""
    import numpy as np

    scores: dict[tuple[str, str], float] = {}
    size = float(np.linalg.norm(query))
    for chunk in chunks:
        vectors = np.frombuffer(b"".join(row[2] for row in chunk), np.float32)
        vectors = vectors.reshape(len(chunk), -1)
        sizes = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * size
        # A vector of zeros is like nothing.
        similar = np.divide(vectors @ query, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        for (prefix, key, _), score in zip(chunk, similar.tolist(), strict=True):
            scores[prefix, key] = max(score, scores.get((prefix, key), -math.inf))
    return scores


def namespaces(raw: sqlite3.Connection, wanted: ListNamespacesOp, now: str) -> list[Namespace]:
    """The namespaces that hold an item, cut to `max_depth`, sorted by label."""
    start, end = range_of(wanted.match_conditions or ())
    return matching_namespaces(_prefixes(raw, start, end, now), wanted)


def matching_namespaces(prefixes: Iterable[str], wanted: ListNamespacesOp) -> list[Namespace]:
    """The page of namespaces that `wanted` asks for, among those of `prefixes`."""
    conditions = wanted.match_conditions or ()
    found = {
        labels[: wanted.max_depth]
        for labels in (tuple(prefix.split(".")) for prefix in prefixes)
        if all(_matches(condition, labels) for condition in conditions)
    }
    return sorted(found)[wanted.offset : wanted.offset + wanted.limit]


def _prefixes(raw: sqlite3.Connection, start: str, end: str | bytes, now: str) -> list[str]:
    """Distinct prefixes, by one jump through the index each instead of one step an item."""
    found = _fetch(
        raw,
        "WITH RECURSIVE each (prefix) AS ("
        " SELECT min(prefix) FROM store WHERE prefix >= ?"
        " UNION ALL"
        " SELECT (SELECT min(prefix) FROM store WHERE prefix > each.prefix)"
        " FROM each WHERE each.prefix < ?)"
        f" SELECT prefix FROM each WHERE prefix < ? AND EXISTS"
        f" (SELECT 1 FROM store WHERE store.prefix = each.prefix AND {_ALIVE})",
        [start, end, end, now],
    )
    return [prefix for (prefix,) in found]


def range_of(conditions: Iterable[MatchCondition]) -> tuple[str, str | bytes]:
    """Where in the index the namespaces can lie; a superset, the conditions decide."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = [str(label) for label in condition.path]
            literal = path[: path.index("*")] if "*" in path else path
            if literal:
                text = ".".join(literal)
                return text, f"{text}/"
    return "", _BEHIND_ALL_TEXT


def _matches(condition: MatchCondition, labels: Namespace) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unknown match type {condition.match_type!r}: use prefix or suffix")
    if len(labels) < len(path):
        return False
    part = labels[: len(path)] if condition.match_type == "prefix" else labels[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=False))


def _below(prefix: Namespace) -> tuple[str, list[Any]]:
    """The condition for a namespace and those below it."""
    if not prefix:
        return "TRUE", []
    text = ".".join(prefix)
    return "(prefix = ? OR (prefix > ? AND prefix < ?))", [text, f"{text}.", f"{text}/"]


def _cursor(raw: sqlite3.Connection) -> sqlite3.Cursor:
    cursor = raw.cursor()
    cursor.row_factory = None
    return cursor


def _fetch(raw: sqlite3.Connection, statement: str, params: Iterable[Any] = ()) -> list[Any]:
    return _cursor(raw).execute(statement, tuple(params)).fetchall()


def _rows(raw: sqlite3.Connection, statement: str, params: list[Any]) -> Iterator[Row]:
    return map(Row._make, _cursor(raw).execute(statement, params))
