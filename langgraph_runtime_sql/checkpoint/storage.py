"""Storage: the bytes that a thread's checkpoints take."""

from typing import Any

import ormsgpack
from sqlalchemy import bindparam, func, select

from langgraph_runtime_sql import process
from langgraph_runtime_sql.checkpoint import reading
from langgraph_runtime_sql.checkpoint.listing import Wanted, stored_rows
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import thread_writes
from langgraph_runtime_sql.database.statements import Prepared

_WRITES = Prepared(
    select(
        func.count().label("count"),
        func.coalesce(func.sum(func.length(thread_writes.c.value)), 0).label("bytes"),
    ).where(thread_writes.c.thread_id == bindparam("thread"))
)


async def thread_storage(conn: Any, thread_id: Any) -> dict[str, Any]:
    """Return how many bytes a thread's checkpoints take, by kind and by channel.

    A checkpoint is stored in one value with those of its channels. Their bytes are divided by the
    size of the plain ones, of which `versions` counts the distinct ones.

    Args:
        conn: Ignored; this is a transaction of its own.
        thread_id: The thread. An unknown one takes nothing.
    """
    database: Database = process.current().database
    return await database.read(lambda c: _measure(c, str(thread_id)))


def _measure(conn: Connection, thread: str) -> dict[str, Any]:
    serde, reader = serializer(ormsgpack.Ext), reading.Reader(conn, thread)
    count = stored = frames = 0
    sizes: dict[str, int] = {}
    versions: dict[str, set[Any]] = {}
    for row in stored_rows(conn, thread, Wanted(thread, None, None, None, {}), None):
        ns = row["checkpoint_ns"]
        about, checkpoint = reading.loaded(reader.version(ns, row), serde)
        count, stored = count + 1, stored + len(row["value"])
        frames += len(_packed([about, {**checkpoint, "channel_values": {}}]))
        for channel, value in checkpoint["channel_values"].items():
            sizes[channel] = sizes.get(channel, 0) + len(_packed(value))
            version = checkpoint["channel_versions"].get(channel)
            versions.setdefault(channel, set()).add((ns, version))
    # The empty name is the frame's.
    shares = _divided(stored, {"": frames, **dict(sorted(sizes.items()))})
    frame = shares.pop("")
    by_channel = {
        channel: {"versions": len(versions[channel]), "bytes": size}
        for channel, size in shares.items()
    }
    onto = conn.fetchall(_WRITES, {"thread": thread})[0]
    return {
        "total_bytes": stored + onto["bytes"],
        "checkpoints": {"count": count, "bytes": frame},
        "channel_values": {
            "count": sum(each["versions"] for each in by_channel.values()),
            "bytes": stored - frame,
            "by_channel": by_channel,
        },
        "pending_writes": {"count": onto["count"], "bytes": onto["bytes"]},
    }


def _divided(total: int, sizes: dict[str, int]) -> dict[str, int]:
    """Divide `total` in proportion to `sizes`, without a rest."""
    found: dict[str, int] = {}
    rest, weight = total, sum(sizes.values())
    for name, size in sizes.items():
        found[name] = rest * size // weight if weight else 0
        rest, weight = rest - found[name], weight - size
    return found


def _packed(value: Any) -> bytes:
    # `tuple` packs the snapshot of a delta channel as a tuple of its value.
    return ormsgpack.packb(value, default=tuple, option=ormsgpack.OPT_NON_STR_KEYS)
