"""Checkpoints: whole documents in SQLite; in Postgres each version of a value is a row.

The library's savers read and write them. Values that are not plain data stay serialized, so
the move imports no class of a graph.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import ormsgpack
import psycopg
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from psycopg.rows import dict_row

from langgraph_runtime_sql.checkpoint import postgres, sealing
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED, serializer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.connection import DIALECT
from langgraph_runtime_sql.database.sqlite.engine import DIALECT as SQLITE
from langgraph_runtime_sql.encryption import master
from langgraph_runtime_sql.encryption.keys import TenantKeys
from threadhold.move import canonical
from threadhold.move.canonical import Unstorable
from threadhold.move.part import Entry, Key, Part, Row, Target, streamed


class _Statements:
    """A cursor that collects statements, to execute those of many checkpoints together."""

    def __init__(self) -> None:
        self._statements: dict[Any, list[Sequence[Any]]] = {}

    def execute(self, statement: Any, params: Sequence[Any]) -> None:
        self._statements.setdefault(statement, []).append(params)

    def executemany(self, statement: Any, params: Sequence[Sequence[Any]]) -> None:
        self._statements.setdefault(statement, []).extend(params)

    def run(self, cursor: psycopg.Cursor[Any]) -> None:
        for statement, params in self._statements.items():
            cursor.executemany(statement, params)


class _Saver(postgres.PostgresStockSaver):
    """A saver that collects its statements instead of executing them."""

    def __init__(self, target: Target, statements: _Statements) -> None:
        super().__init__(Connection(target, DIALECT), SERIALIZED)
        self._statements = statements

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
        yield self._statements


class _Document(dict[str, Any]):
    """A checkpoint that was encrypted.

    Attributes:
        serde: Encrypts its values with the same key.
    """

    serde: sealing.Recorded


class CheckpointPart(Part):
    """The checkpoints, and the values of their channels. Encrypted ones keep their key."""

    _source: Connection
    _keys: TenantKeys

    name = source = "checkpoints"
    columns = (
        *("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id"),
        *("type", "checkpoint", "metadata"),
    )
    key = (0, 1, 2)

    def __init__(self) -> None:
        self._serde = serializer(ormsgpack.Ext)
        # Versions already written for the current thread, which are stored once.
        self._known: tuple[str, set[tuple[str, str, str]]] = "", set()

    def entries(self, raw: sqlite3.Connection, after: Key | None = None) -> Iterator[Entry]:
        self._source, self._keys = Connection(raw, SQLITE), TenantKeys()
        yield from super().entries(raw, after)

    def write(self, target: Target, rows: Sequence[Row]) -> None:
        statements = _Statements()
        saver = _Saver(target, statements)
        for row in rows:
            self._put(saver, row)
        with target.cursor(binary=True) as cursor:
            statements.run(cursor)

    def stored(self, target: Target) -> Iterator[Row]:
        conn, keys = Connection(target, DIALECT), TenantKeys()
        saver = postgres.PostgresStockSaver(conn, self._serde)
        for row in streamed(target, saver.SELECT_SQL, binary=True, row_factory=dict_row):
            saver.serde = sealing.reading(conn, self._serde, row["thread_id"], keys)
            loaded = saver._load_checkpoint_tuple({**row, "pending_writes": None})
            checkpoint = dict(loaded.checkpoint)
            inline = row["checkpoint"].get("channel_values") or {}
            checkpoint["channel_values"] = {
                channel: value
                for channel, value in loaded.checkpoint["channel_values"].items()
                # Other checkpoints of the version load the snapshot too, but did not take it.
                if channel in inline or not isinstance(value, _DeltaSnapshot)
            }
            yield (*(row[name] for name in self.columns[:4]), checkpoint, row["metadata"])

    def digest(self, row: Row) -> bytes:
        *place, checkpoint, metadata = row
        values = sorted(checkpoint["channel_values"].items())
        parts = (part for channel, value in values for part in (channel, _packed(value)))
        return canonical.digest([*place, _shape(checkpoint), metadata, *parts])

    def read(self, record: Sequence[Any]) -> Row:
        *place, kind, blob, about = record
        for each in place:
            if each is not None:
                canonical.check_text(each)
        checkpoint = self._loaded(str(place[0]), str(kind), blob, self._source, self._keys)
        canonical.check_json(_shape(checkpoint))
        for channel in checkpoint["channel_values"]:
            if channel not in checkpoint["channel_versions"]:
                raise Unstorable(f"has a value without a version, of the channel {channel!r}")
        # In the form in which the library's Postgres saver writes it.
        metadata = get_serializable_checkpoint_metadata(
            {}, postgres.storable(json.loads(about or b"{}"))
        )
        return (*place, checkpoint, metadata)

    def _loaded(
        self, thread_id: str, kind: str, blob: bytes, source: Connection, keys: TenantKeys
    ) -> dict[str, Any]:
        encrypted = sealing.is_encrypted(kind)
        if encrypted and not master.all_keys():
            raise Unstorable("is encrypted: set LANGGRAPH_AES_KEY as it was for the server")
        try:
            serde = sealing.reading(source, self._serde, thread_id, keys)
            loaded: dict[str, Any] = serde.loads_typed((kind, blob))
            empty: dict[str, Any] = {
                "channel_values": {},
                "channel_versions": {},
                "versions_seen": {},
            }
            if not encrypted:
                return {**empty, **loaded}
            document = _Document({**empty, **loaded})
            document.serde = sealing.Recorded(kind, blob, thread_id, source, keys)
            return document
        except Exception as error:
            # A wrong key, damaged bytes or an unknown format raise different errors.
            why = " (is LANGGRAPH_AES_KEY the server's?)" if encrypted else ""
            raise Unstorable(f"cannot be read: {type(error).__name__}: {error}{why}") from error

    def _put(self, saver: _Saver, row: Row) -> None:
        thread, ns, checkpoint_id, parent, checkpoint, metadata = row
        if self._known[0] != thread:
            self._known = thread, set()
        known = self._known[1]
        new = {
            channel: version
            for channel, version in checkpoint["channel_versions"].items()
            if (ns, channel, version) not in known and channel in checkpoint["channel_values"]
        }
        hidden = isinstance(checkpoint, _Document)
        saver.serde = checkpoint.serde if isinstance(checkpoint, _Document) else SERIALIZED
        typed = postgres.serialized(self._serde, cast(Checkpoint, checkpoint), new, hidden=hidden)
        where = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": parent}
        saver.put(
            {"configurable": where},
            cast(Checkpoint, {**typed, "id": checkpoint_id}),
            cast(CheckpointMetadata, metadata),
            new,
        )
        known.update((ns, channel, version) for channel, version in new.items())


def _shape(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without its values: the part that Postgres stores as JSON."""
    return {key: value for key, value in checkpoint.items() if key != "channel_values"}


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, default=_snapshot, option=ormsgpack.OPT_NON_STR_KEYS)


def _snapshot(value: Any) -> Any:
    if isinstance(value, _DeltaSnapshot):
        return {"snapshot": value.value}
    raise TypeError(f"A checkpoint cannot hold {type(value).__name__}")
