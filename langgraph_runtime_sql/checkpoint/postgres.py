"""Postgres saver: the library's, on a connection whose owner commits."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from psycopg import Cursor
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_loads

from langgraph_runtime_sql.checkpoint import parts, sealing, undo
from langgraph_runtime_sql.checkpoint.sql import NAMES
from langgraph_runtime_sql.database import formats
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.lock_wait import concurrently, run_foreign_migration
from langgraph_runtime_sql.encryption import master

_INT64 = range(-(2**63), 2**63)
_INDEXES = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_run_writes_thread_id ON run_writes (thread_id)",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_checkpoints_run_id ON checkpoints (({run_id}))",
)


class PostgresStockSaver(PostgresSaver):
    """The library's schema and SQL for Postgres. It neither locks nor commits."""

    def __init__(self, conn: Connection, serde: SerializerProtocol) -> None:
        # Not the library's constructor: see `StockSaver`.
        self.connection = conn
        self.serde = serde

    def setup(self) -> None:
        """Do nothing: the tables exist since start-up."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; one asked for by id keeps its config, as in the other savers."""
        found = super().get_tuple(config)
        if found is not None and get_checkpoint_id(config):
            return found._replace(config=config)
        return found

    def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        values = value["checkpoint"].get("channel_values") or {}
        # True marks a snapshot, whose value is a blob.
        if isinstance(self.serde, sealing.Opener) and not all(
            each is None or each is True for each in values.values()
        ):
            self.serde.refuse_plain()
        return super()._load_checkpoint_tuple(value)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Open a cursor in the current transaction."""
        if pipeline:
            # The library asks for a pipeline where it only writes.
            yield cast("Cursor[DictRow]", _Writing(self.connection))
            return
        with self.connection.raw.cursor(binary=True, row_factory=dict_row) as cursor:
            set_json_loads(loads, cursor)
            yield cursor


class _Writing:
    """Replaces the library's cursor for writes: they are sent together with the commit."""

    def __init__(self, conn: Connection) -> None:
        self.executemany = conn.send_text

    def execute(self, text: str, values: Sequence[Any]) -> None:
        self.executemany(text, [values])


def ensure_schema(raw: Any) -> None:
    """Create the missing tables and indexes of the saver, and our additions.

    Args:
        raw: A connection outside any transaction; each statement is committed.

    Raises:
        DatabaseBusy: other sessions have used a table for ten minutes.
    """
    # Building an index beside writers is possible outside of transactions only.
    [(found,)] = raw.execute("SELECT to_regclass('checkpoints') IS NULL").fetchall()
    run_foreign_migration(raw, PostgresSaver(raw).setup)
    raw.execute(undo.TABLE.format(binary="BYTEA", **NAMES["postgresql"]))
    raw.execute(parts.TABLE.format(binary="BYTEA", **NAMES["postgresql"]))
    if found:
        # A new database has no older processes, which could not read the newest formats.
        raw.execute(formats.ALLOW)
    for statement in _INDEXES:
        concurrently(raw, statement.format(**NAMES["postgresql"]))


def serialized(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    new_versions: ChannelVersions,
    *,
    hidden: bool | None = None,
    place: str | None = None,
) -> dict[str, Any]:
    """Return a checkpoint as the saver stores it, with all values serialized now.

    The library writes strings and numbers into the checkpoint's JSON. JSON cannot hold all of them,
    and under encryption they would be readable. Those become blobs.

    Args:
        serde: Serializes the values.
        checkpoint: The checkpoint.
        new_versions: The channels whose values are new.
        hidden: Whether the values are encrypted. Default: whether a master key is configured.
        place: Names the thread and namespace, for `parts.encode`. Default: values are encoded whole.
    """
    hidden = master.active() if hidden is None else hidden
    values: dict[str, Any] = {}
    for channel, value in checkpoint["channel_values"].items():
        if _is_plain(value) and not (hidden and value is not None):
            values[channel] = value
        elif channel in new_versions:
            dumps: Callable[[Any], tuple[str, Any]] = serde.dumps_typed
            if place is not None:
                dumps = partial(parts.encode, dumps, place=f"{place} {channel}")
            typed = {"typed": dumps(value)}
            values[channel] = _DeltaSnapshot(typed) if isinstance(value, _DeltaSnapshot) else typed
        elif isinstance(value, _DeltaSnapshot):
            # The snapshot is stored already; only its mark remains here.
            values[channel] = _DeltaSnapshot(None)
    return {
        **checkpoint,
        "channel_values": values,
        "channel_versions": dict(checkpoint["channel_versions"]),
        "versions_seen": {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
    }


def storable(value: Any) -> Any:
    """Replace the characters in plain data that Postgres's JSON cannot hold."""
    if isinstance(value, str):
        return value if _is_text(value) else _replaced(value)
    if isinstance(value, dict):
        return {storable(key): storable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [storable(each) for each in value]
    return value


def loads(document: str | bytes) -> Any:
    """Parse the saver's JSON with the numbers that were stored.

    The faster decoder turns large integers of metadata into floats. Postgres writes large floats as
    integers; only floats are that large.
    """
    return json.loads(document, parse_int=_whole)


def _whole(written: str) -> int | float:
    number = int(written)
    return number if -(2**63) <= number < 2**64 else float(written)


def _is_plain(value: Any) -> bool:
    """Return whether JSON preserves this value and its type."""
    kind = type(value)
    if value is None or kind is bool:
        return True
    return (kind is str and _is_text(value)) or (kind is int and value in _INT64)


def _is_text(value: str) -> bool:
    return "\0" not in value and (value.isascii() or _replaced(value) == value)


def _replaced(value: str) -> str:
    return value.replace("\0", "\ufffd").encode(errors="replace").decode()
