"""The store's rows: the types and statements that SQLite and Postgres share.

The tables are those of langgraph's own stores, so either reads what the other wrote. The
statements are ours: they see no expired item, keep the creation date of an item that is
overwritten, page in a stable order, and let no part of a request into their text.

A namespace is stored as its labels joined by dots. Labels hold no dot, so what is below `("t1",)`
lies between `t1.` and `t1/` (the character after the dot), and `("t10",)` does not.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraph_runtime_sql.store.filter import Test
from langgraph_runtime_sql.store.sealing import Sealing

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
else:
    # Most stores hold no vectors, and importing numpy would slow down each start.
    Vector = Any
Namespace = tuple[str, ...]

ALIVE = "(expires_at IS NULL OR expires_at > ?)"
COLUMNS = "prefix, key, value, created_at, updated_at, ttl_minutes"
_SWEEP_ROWS = 1000
_VECTORS_AT_ONCE = 1000


class Row(NamedTuple):
    """One stored item."""

    prefix: str
    key: str
    value: Any
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None

    def fields(self) -> dict[str, Any]:
        """Return the arguments of langgraph's `Item`."""
        return {
            "namespace": tuple(self.prefix.split(".")),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.astimezone(UTC),
            "updated_at": self.updated_at.astimezone(UTC),
        }


Found = list[tuple[Row, float | None]]
"""The rows of a page, each with its score."""


class Search(NamedTuple):
    """A search.

    Attributes:
        query: The vector to rank by; None ranks by date.
        check_deadline: Called between rows that Python examines; raises when time is up.
    """

    prefix: Namespace
    test: Test | None
    limit: int
    offset: int
    query: Vector | None
    check_deadline: Callable[[], None]

    def passes(self, value: Any) -> bool:
        """Return whether the filter admits an item with this value."""
        self.check_deadline()
        return self.test is None or self.test(value)


def check_dimensions(stored: int, configured: int) -> None:
    """Check that the stored vectors have the dimensions of the configured index.

    Raises:
        ValueError: they have others.
    """
    if stored != configured:
        raise ValueError(
            f"The store's vectors have {stored} dimensions, but the configured index has "
            f"{configured}. Configure the embedding model they were made with, or delete all rows "
            "of the table store_vectors, on Postgres the table itself, and put the items again."
        )


def to_text(date: datetime) -> str:
    """Format a date for storage: UTC, so that texts sort by time."""
    return date.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")


class StoreTables(ABC):
    """Statements on the store's tables. Subclasses hold what differs between the databases."""

    placeholder: str
    greatest: str
    newest_first: str
    below: str
    sweep_statement: str
    behind_all_text: str | bytes

    def __init__(self, sealing: Sealing | None = None) -> None:
        self._sealing = sealing

    @abstractmethod
    def execute(self, raw: Any, statement: str, params: Sequence[Any]) -> Any:
        """Execute a statement with `?` for its values; return the driver's cursor."""

    @abstractmethod
    def stream(
        self, raw: Any, statement: str, params: Sequence[Any]
    ) -> AbstractContextManager[Any]:
        """Open a cursor that fetches rows as they are read, not all at once."""

    def decode(self, stored: Any) -> Any:
        """Decode a stored document; by default the driver has done so."""
        return stored

    def value(self, prefix: str, key: str, stored: Any) -> Any:
        """Decode an item's value, and decrypt it."""
        document = self.decode(stored)
        return document if self._sealing is None else self._sealing.open(prefix, key, document)

    def row(self, columns: Sequence[Any]) -> Row:
        """Decode the `COLUMNS` of an item; by default the driver has decoded the dates."""
        prefix, key, value, *rest = columns
        return Row(prefix, key, self.value(prefix, key, value), *rest)

    def encode(self, raw: Any, vector: Vector) -> str | bytes:
        """Encode a vector for storage, by default as bytes."""
        return vector.tobytes()

    @abstractmethod
    def prefixes(self, raw: Any, start: str, end: str | bytes, now: str) -> list[str]:
        """Return the distinct prefixes of items from `start` up to `end`.

        The statement jumps through the index once for each prefix, not once for each item.
        """

    def seal(self, prefix: str, key: str, value: str) -> str:
        """Encrypt the JSON text of an item's value for storage."""
        return value if self._sealing is None else self._sealing.seal(prefix, key, value)

    def get(self, raw: Any, namespace: Namespace, key: str, now: str) -> Row | None:
        """Return the item, unless it is missing or has expired."""
        statement = f"SELECT {COLUMNS} FROM store WHERE prefix = ? AND key = ? AND {ALIVE}"
        found = self.execute(raw, statement, (".".join(namespace), key, now)).fetchone()
        return None if found is None else self.row(found)

    def put(
        self,
        raw: Any,
        namespace: Namespace,
        key: str,
        value: str,
        *,
        now: str,
        expires_at: str | None,
        ttl_minutes: float | None,
        vectors: list[tuple[str, Vector]],
    ) -> None:
        """Insert or replace an item; `vectors` are (name of the field, vector)."""
        prefix = ".".join(namespace)
        value = self.seal(prefix, key, value)
        self.execute(
            raw,
            "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (prefix, key) DO UPDATE SET"
            " value = excluded.value, updated_at = excluded.updated_at,"
            " expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes,"
            " created_at = CASE WHEN store.expires_at <= excluded.updated_at"
            " THEN excluded.created_at ELSE store.created_at END",
            (prefix, key, value, now, now, expires_at, ttl_minutes),
        )
        # Without an index the table of vectors does not exist.
        if vectors:
            added = "prefix, key, field_name, embedding, created_at, updated_at"
            statement = f"INSERT INTO store_vectors ({added}) VALUES (?, ?, ?, ?, ?, ?)"
            with closing(raw.cursor()) as cursor:
                cursor.executemany(
                    statement.replace("?", self.placeholder),
                    [(prefix, key, f, self.encode(raw, vector), now, now) for f, vector in vectors],
                )

    def delete(self, raw: Any, namespace: Namespace, key: str) -> None:
        """Delete the item if it exists."""
        statement = "DELETE FROM store WHERE prefix = ? AND key = ?"
        self.execute(raw, statement, (".".join(namespace), key))

    def refresh(self, raw: Any, row: Row, *, now: str, expires_at: str | None) -> None:
        """Postpone the expiry of an item that was read, unless it has changed since."""
        self.execute(
            raw,
            f"UPDATE store SET expires_at = {self.greatest}(expires_at, ?)"
            " WHERE prefix = ? AND key = ? AND ttl_minutes = ? AND expires_at > ?",
            (expires_at, row.prefix, row.key, row.ttl_minutes, now),
        )

    def sweep(self, raw: Any, now: str) -> int:
        """Delete up to 1000 expired items; return how many."""
        return int(self.execute(raw, self.sweep_statement, (now, _SWEEP_ROWS)).rowcount)

    def search(self, raw: Any, wanted: Search, now: str) -> Found:
        """Return a page of items: best score first, or newest first without a query."""
        if wanted.query is not None:
            return self.nearest(raw, wanted, wanted.query, now)
        within, params = self.within(wanted.prefix)
        statement = f"SELECT {COLUMNS} FROM store WHERE {within} AND {ALIVE} {self.newest_first}"
        rows = self.page(raw, statement, [*params, now], wanted)
        return [(self.row(found), None) for found in rows]

    def page(self, raw: Any, statement: str, params: list[Any], wanted: Search) -> list[Any]:
        """Return the page of rows that pass the filter; their third column is the value."""
        if wanted.test is None:
            page = (*params, wanted.limit, wanted.offset)
            return list(self.execute(raw, f"{statement} LIMIT ? OFFSET ?", page).fetchall())
        with self.stream(raw, statement, params) as cursor:
            passing = (found for found in cursor if wanted.passes(self.value(*found[:3])))
            return list(islice(passing, wanted.offset, wanted.offset + wanted.limit))

    def nearest(self, raw: Any, wanted: Search, query: Vector, now: str) -> Found:
        """Return a page by cosine similarity of an item's best vector; items without one last.

        Python ranks them: not every build of it loads SQLite extensions, and not every Postgres
        server has pgvector.
        """
        within, params = self.within(wanted.prefix)
        found = self.execute(
            raw,
            f"SELECT prefix, key, {'value' if wanted.test else 'NULL'}"
            f" FROM store WHERE {within} AND {ALIVE} {self.newest_first}",
            (*params, now),
        )
        items = [
            (prefix, key)
            for prefix, key, value in found
            if wanted.passes(self.value(prefix, key, value) if wanted.test else None)
        ]
        scores = similarities(self._chunks(raw, wanted), query)
        # The sort is stable: items of the same score, or of none, stay newest first.
        items.sort(key=lambda item: scores.get(item, -math.inf), reverse=True)
        page = items[wanted.offset : wanted.offset + wanted.limit]
        select = f"SELECT {COLUMNS} FROM store WHERE prefix = ? AND key = ?"
        return [(self.row(self.execute(raw, select, i).fetchone()), scores.get(i)) for i in page]

    def _chunks(self, raw: Any, wanted: Search) -> Iterator[list[tuple[str, str, bytes]]]:
        within, params = self.within(wanted.prefix)
        statement = f"SELECT prefix, key, embedding FROM store_vectors WHERE {within}"
        with self.stream(raw, statement, params) as cursor:
            while chunk := cursor.fetchmany(_VECTORS_AT_ONCE):
                wanted.check_deadline()
                yield chunk

    def within(self, prefix: Namespace) -> tuple[str, list[Any]]:
        """Return the condition for a namespace and those below it, and its parameters."""
        if not prefix:
            return "TRUE", []
        text = ".".join(prefix)
        return self.below, [text, f"{text}.", f"{text}/"]

    def namespaces(self, raw: Any, wanted: ListNamespacesOp, now: str) -> list[Namespace]:
        """Return the namespaces that hold an item, cut to `max_depth`, sorted by label."""
        conditions = wanted.match_conditions or ()
        start, end = _range_of(conditions) or ("", self.behind_all_text)
        found = {
            labels[: wanted.max_depth]
            for labels in (tuple(each.split(".")) for each in self.prefixes(raw, start, end, now))
            if all(_matches(condition, labels) for condition in conditions)
        }
        return sorted(found)[wanted.offset : wanted.offset + wanted.limit]


def similarities(
    chunks: Iterable[list[tuple[str, str, bytes]]], query: Vector
) -> dict[tuple[str, str], float]:
    """Return the cosine similarity to `query` of the best vector of each item.

    Args:
        chunks: Rows of prefix, key and vector.
        query: The vector to compare with.
    """
    import numpy as np

    scores: dict[tuple[str, str], float] = {}
    size = float(np.linalg.norm(query))
    for chunk in chunks:
        vectors = np.frombuffer(b"".join(row[2] for row in chunk), np.float32)
        vectors = vectors.reshape(len(chunk), -1)
        sizes = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * size
        # A vector of zeros has no direction: its similarity is 0.
        similar = np.divide(vectors @ query, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        for (prefix, key, _), score in zip(chunk, similar.tolist(), strict=True):
            scores[prefix, key] = max(score, scores.get((prefix, key), -math.inf))
    return scores


def _range_of(conditions: Iterable[MatchCondition]) -> tuple[str, str] | None:
    """Return a part of the index that holds all matching namespaces; None for all of it."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = [str(label) for label in condition.path]
            literal = path[: path.index("*")] if "*" in path else path
            if literal:
                text = ".".join(literal)
                return text, f"{text}/"
    return None


def _matches(condition: MatchCondition, labels: Namespace) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unknown match type {condition.match_type!r}: use prefix or suffix")
    if len(labels) < len(path):
        return False
    part = labels[: len(path)] if condition.match_type == "prefix" else labels[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=False))
