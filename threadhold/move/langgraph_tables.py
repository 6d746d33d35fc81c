"""Tables of langgraph's stores in Postgres."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, DateTime, Float, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from langgraph_runtime_sql.store.sqlite_rows import from_text
from threadhold.move.part import Row, TablePart, Target

_metadata = MetaData()


class _StoreDate(TypeDecorator[datetime]):
    """Read dates that the store writes as text in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return from_text


def _key(*names: str) -> list[Column[Any]]:
    return [Column(name, Text, primary_key=True) for name in names]


store = Table(
    "store",
    _metadata,
    *_key("prefix", "key"),
    Column("value", JSONB, nullable=False),
    Column("created_at", _StoreDate),
    Column("updated_at", _StoreDate),
    Column("expires_at", _StoreDate),
    Column("ttl_minutes", Float),
)

vectors = Table(
    "store_vectors",
    _metadata,
    *_key("prefix", "key", "field_name"),
    Column("embedding", LargeBinary),
    Column("created_at", _StoreDate),
    Column("updated_at", _StoreDate),
)


class VectorPart(TablePart):
    """The store's vectors, in a pgvector column if the target has pgvector."""

    def __init__(self) -> None:
        super().__init__(vectors)
        self._place = self.columns.index("embedding")

    def dimensions(self, raw: sqlite3.Connection) -> int | None:
        """Return the dimensions of the source's vectors, or None if there are none."""
        row = raw.execute("SELECT length(embedding) / 4 FROM store_vectors LIMIT 1").fetchone()
        return None if row is None else int(row[0])

    def write(self, target: Target, rows: Sequence[Row]) -> None:
        if _is_native(target):
            rows = [self._with(row, _literal(row[self._place])) for row in rows]
        super().write(target, rows)

    def stored(self, target: Target) -> Iterator[Row]:
        native = _is_native(target)
        if native:
            self.fields[self._place].out = '"embedding"::text'
        for row in super().stored(target):
            yield self._with(row, _bytes(row[self._place])) if native else row

    def _with(self, row: Row, embedding: Any) -> Row:
        return (*row[: self._place], embedding, *row[self._place + 1 :])


def _is_native(target: Target) -> bool:
    [(kind,)] = target.execute(
        "SELECT atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
    ).fetchall()
    return str(kind) != "bytea"


def _literal(vector: bytes | None) -> str | None:
    import numpy as np

    return None if vector is None else str(np.frombuffer(vector, np.float32).tolist())


def _bytes(literal: str | None) -> bytes | None:
    import numpy as np

    if literal is None:
        return None
    return np.array(literal[1:-1].split(","), np.float32).tobytes()
