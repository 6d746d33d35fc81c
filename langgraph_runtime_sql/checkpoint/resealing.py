"""Resealing: encrypt stored checkpoints again, for another thread or with another key."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from langgraph_runtime_sql.checkpoint import sealing
from langgraph_runtime_sql.checkpoint.sealing import PLAIN_METADATA, SUFFIX
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.encryption import documents, envelope, keys
from langgraph_runtime_sql.encryption.documents import SEALED


class Values(NamedTuple):
    """A table with values of checkpoints: its key after the thread, and the value's column."""

    table: str
    key: tuple[str, ...]
    value: str


_PLACE = ("checkpoint_ns", "checkpoint_id")
_WRITE = (*_PLACE, "task_id", "idx")
VALUES = {
    "sqlite": (
        Values("checkpoints", _PLACE, "checkpoint"),
        Values("checkpoint_parts", ("id",), "value"),
        Values("writes", _WRITE, "value"),
        Values("run_writes", ("run_id", *_WRITE), "value"),
    ),
    "postgresql": (
        Values("checkpoint_blobs", ("checkpoint_ns", "channel", "version"), "blob"),
        Values("checkpoint_parts", ("id",), "blob"),
        Values("checkpoint_writes", _WRITE, "blob"),
        Values("run_writes", ("run_id", *_WRITE), "blob"),
    ),
}


def rebind(conn: Connection, source: str, target: str) -> None:
    """Encrypt the copied values of `source` in `target` for their new thread."""
    for values in VALUES[conn.dialect_name]:
        if values.table == "run_writes":
            # Not copied.
            continue
        for key, kind, data in _values(conn, values, target):
            if kind is not None and kind.endswith(SUFFIX):
                _write(conn, values, (target, *key), _plain(conn, source, kind, data))
    for key, metadata in _metadata(conn, target):
        if SEALED in metadata:
            _write_metadata(conn, target, key, sealing.open_metadata(conn, source, metadata))


def changes(conn: Connection, thread_id: str) -> Iterator[Callable[[], int]]:
    """Yield what encrypts a thread's checkpoints with the tenant's newest key, step by step.

    Each step returns the number of changed values. It raises KeyErased or CannotDecrypt for one that
    cannot be read; the others do not depend on it.
    """
    if conn.dialect_name == "postgresql":
        from langgraph_runtime_sql.checkpoint import inline_values

        yield from inline_values.changes(conn, thread_id)
    newest = keys.current().for_writing(conn, sealing.tenant_of(conn, thread_id)).id
    for values in VALUES[conn.dialect_name]:
        for key, kind, data in _values(conn, values, thread_id):
            if kind is not None and data is not None and not _is_current(kind, data, newest):
                yield partial(_reseal, conn, values, (thread_id, *key), (kind, data))
    for key, metadata in _metadata(conn, thread_id):
        hidden = {name: each for name, each in metadata.items() if name not in PLAIN_METADATA}
        if not documents.is_current(hidden, newest):
            yield partial(_reseal_metadata, conn, thread_id, key, metadata)


def _reseal(
    conn: Connection, values: Values, key: tuple[Any, ...], typed: tuple[str, bytes]
) -> int:
    _write(conn, values, key, _plain(conn, key[0], *typed))
    return 1


def _reseal_metadata(
    conn: Connection, thread_id: str, key: tuple[Any, ...], metadata: dict[str, Any]
) -> int:
    _write_metadata(conn, thread_id, key, sealing.open_metadata(conn, thread_id, metadata))
    return 1


def _is_current(kind: str, data: bytes, newest: UUID) -> bool:
    return kind.endswith(SUFFIX) and envelope.key_id(bytes(data)) == newest


def _plain(conn: Connection, thread_id: str, kind: str, data: bytes) -> tuple[str, bytes]:
    return sealing.Opener(SERIALIZED, conn, thread_id).plain(kind, bytes(data))


def _values(conn: Connection, values: Values, thread_id: str) -> Iterator[Any]:
    statement = (
        f"SELECT {', '.join(values.key)}, type, {values.value} FROM {values.table}"
        " WHERE thread_id = ?"
    )
    for *key, kind, data in run(conn, statement, (thread_id,)).fetchall():
        yield key, kind, data


def _write(
    conn: Connection, values: Values, key: tuple[Any, ...], typed: tuple[str, bytes]
) -> None:
    kind, data = sealing.writing(conn, key[0]).dumps_typed({"typed": typed})
    same = " AND ".join(f"{name} = ?" for name in ("thread_id", *values.key))
    run(
        conn,
        f"UPDATE {values.table} SET type = ?, {values.value} = ? WHERE {same}",
        (kind, data, *key),
    )


def _metadata(conn: Connection, thread_id: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    # As text, because the driver's decoder turns large integers into floats.
    statement = (
        "SELECT checkpoint_ns, checkpoint_id, CAST(metadata AS TEXT) FROM checkpoints"
        " WHERE thread_id = ?"
    )
    for ns, checkpoint_id, stored in run(conn, statement, (thread_id,)).fetchall():
        yield (ns, checkpoint_id), json.loads(stored or "{}")


def _write_metadata(
    conn: Connection, thread_id: str, key: tuple[Any, ...], metadata: dict[str, Any]
) -> None:
    text = json.dumps(sealing.seal_metadata(conn, thread_id, metadata), ensure_ascii=False)
    kind = "BLOB" if conn.dialect_name == "sqlite" else "JSONB"
    run(
        conn,
        f"UPDATE checkpoints SET metadata = CAST(? AS {kind}) WHERE thread_id = ? AND checkpoint_ns = ?"
        " AND checkpoint_id = ?",
        (text, thread_id, *key),
    )
