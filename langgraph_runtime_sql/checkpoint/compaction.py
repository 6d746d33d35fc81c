"""Compaction: store the values of older checkpoints as today's saver does, inside a transaction.

A value's bytes are cut and compressed without decoding them, so reading gives the same bytes.
"""

from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_runtime_sql.checkpoint import parts, sealing, storage
from langgraph_runtime_sql.checkpoint.compression import SUFFIX
from langgraph_runtime_sql.checkpoint.parts import KIND_SUFFIX
from langgraph_runtime_sql.checkpoint.resealing import VALUES, Values
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database import formats
from langgraph_runtime_sql.database.connection import Connection

# Values of one transaction.
PAGE = 16
# The tables of what tasks have written. The others hold values of checkpoints.
_OF_TASKS = ("writes", "checkpoint_writes", "run_writes")
# Any checkpoint that refers to a version of a channel: errors name it.
_REFERRING = """
    SELECT min(checkpoint_id) FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint -> 'channel_versions' ->> ? = ?
"""


class Cursor(NamedTuple):
    """A place in a thread's values: a table, and the key of the last value before."""

    table: int = 0
    after: tuple[Any, ...] = ()


class Compacted(NamedTuple):
    """What was stored again: the number of values, and the bytes before and after with parts."""

    values: int = 0
    before: int = 0
    after: int = 0

    def plus(self, other: "Compacted") -> "Compacted":
        """Return the sum."""
        return Compacted(*(a + b for a, b in zip(self, other, strict=True)))


def enable(conn: Connection) -> None:
    """Let all processes on a database write the newest formats. None may be of an older version."""
    if conn.dialect_name != "sqlite":
        run(conn, formats.ALLOW)


def compact(conn: Connection, thread_id: str, cursor: Cursor) -> tuple[Compacted, Cursor | None]:
    """Compact the next values of a thread.

    Args:
        conn: A transaction that writes. Runs of the thread may go on.
        thread_id: The thread.
        cursor: Where to begin.

    Returns:
        What was compacted, and the place after it, or None at the end of the thread.
    """
    # From here on no process frees the parts that the new rows will refer to.
    parts.lock_for_writing(conn, thread_id)
    tables = VALUES[conn.dialect_name]
    found = _page(conn, tables[cursor.table], thread_id, cursor.after)
    before, after, count = 0, -storage.part_bytes(conn, thread_id), 0
    for *key, kind, data in found:
        old = bytes(data)
        new = _again(conn, tables[cursor.table], thread_id, tuple(key), (kind, old))
        if len(new[1]) < len(old):
            _replace(conn, tables[cursor.table], (thread_id, *key), new)
            before, after, count = before + len(old), after + len(new[1]), count + 1
    after += storage.part_bytes(conn, thread_id)
    done = Compacted(count, before, after)
    if len(found) == PAGE:
        return done, Cursor(cursor.table, tuple(found[-1][:-2]))
    following = cursor.table + 1
    return done, Cursor(following) if following < len(tables) else None


def _page(
    conn: Connection, values: Values, thread_id: str, after: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    """Return the next values that may be stored in less space: their keys, types and bytes."""
    if values.table == "checkpoint_parts":
        return []
    mark, room = (SUFFIX, sealing.PLAIN) if values.table in _OF_TASKS else (KIND_SUFFIX, parts.LONG)
    keys = ", ".join(values.key)
    beyond = f"AND ({keys}) > ({', '.join('?' * len(after))})" if after else ""
    found = run(
        conn,
        f"SELECT {keys}, type, {values.value} FROM {values.table} WHERE thread_id = ? {beyond}"
        f" AND type LIKE ? AND type NOT LIKE ? AND length({values.value}) > ?"
        f" ORDER BY {keys} LIMIT ?",
        (thread_id, *after, "msgpack%", f"%{mark}%", room, PAGE),
    )
    rows: list[tuple[Any, ...]] = found.fetchall()
    return rows


def _again(
    conn: Connection,
    values: Values,
    thread_id: str,
    key: tuple[Any, ...],
    typed: tuple[str, bytes],
) -> tuple[str, bytes]:
    """Return a value as it is stored today, with its parts stored."""
    plain = sealing.Opener(SERIALIZED, conn, thread_id).plain(*typed)
    if values.table in _OF_TASKS:
        writer: SerializerProtocol = sealing.writing_tasks(conn, thread_id)
    else:
        ns, checkpoint_id = key[0], key[1]
        if conn.dialect_name != "sqlite":
            _, channel, version = key
            place = (thread_id, ns, channel, version)
            checkpoint_id = run(conn, _REFERRING, place).fetchone()[0] or ""
        writer = sealing.storing(conn, thread_id, ns, checkpoint_id)
    return writer.dumps_typed({"typed": plain})


def _replace(
    conn: Connection, values: Values, key: tuple[Any, ...], typed: tuple[str, bytes]
) -> None:
    same = " AND ".join(f"{name} = ?" for name in ("thread_id", *values.key))
    run(
        conn,
        f"UPDATE {values.table} SET type = ?, {values.value} = ? WHERE {same}",
        (*typed, *key),
    )
