"""Storage: the bytes that a thread's checkpoints take."""

from typing import Any

import ormsgpack

from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.database import current


async def thread_storage(conn: Any, thread_id: Any) -> dict[str, Any]:
    """How much a thread's checkpoints take, in bytes, by kind and by channel.

    A checkpoint's row holds the values of its channels, so a value that does not
    change is stored again with each checkpoint: `bytes` counts every copy,
    `versions` the distinct ones.

    Args:
        conn: Ignored; this is a transaction of its own.
        thread_id: The thread. An unknown one takes nothing.
    """
    return await current().read(lambda c: _measure(c, str(thread_id)))


def _measure(conn: Connection, thread: str) -> dict[str, Any]:
    serde = serializer(ormsgpack.Ext)
    count = row_bytes = 0
    sizes: dict[str, int] = {}
    versions: dict[str, set[Any]] = {}
    for ns, kind, blob, metadata in conn.raw.execute(
        "SELECT checkpoint_ns, type, checkpoint, metadata FROM checkpoints WHERE thread_id = ?",
        (thread,),
    ):
        count += 1
        row_bytes += len(blob or b"") + len(metadata or b"")
        checkpoint = serde.loads_typed((kind, blob))
        for channel, value in checkpoint["channel_values"].items():
            sizes[channel] = sizes.get(channel, 0) + _packed_size(value)
            version = checkpoint["channel_versions"].get(channel)
            versions.setdefault(channel, set()).add((ns, version))
    by_channel = {
        channel: {"versions": len(versions[channel]), "bytes": size}
        for channel, size in sorted(sizes.items())
    }
    channel_bytes = sum(sizes.values())
    writes, write_bytes = conn.raw.execute(
        "SELECT count(*), coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = ?",
        (thread,),
    ).fetchone()
    return {
        "total_bytes": row_bytes + write_bytes,
        "checkpoints": {"count": count, "bytes": row_bytes - channel_bytes},
        "channel_values": {
            "count": sum(each["versions"] for each in by_channel.values()),
            "bytes": channel_bytes,
            "by_channel": by_channel,
        },
        "pending_writes": {"count": writes, "bytes": write_bytes},
    }


def _packed_size(value: Any) -> int:
    # `tuple`: the snapshot of a delta channel, one of its value.
    return len(ormsgpack.packb(value, default=tuple, option=ormsgpack.OPT_NON_STR_KEYS))
