"""Storage: the bytes that a thread's checkpoints take."""

from typing import Any

import ormsgpack

from langgraph_runtime_sql import process
from langgraph_runtime_sql.checkpoint import compression, sealing
from langgraph_runtime_sql.checkpoint.parts import KIND_SUFFIX
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database


async def thread_storage(conn: Any, thread_id: Any) -> dict[str, Any]:
    """Return how many bytes a thread's checkpoints take, by kind and by channel.

    In SQLite a checkpoint's row holds the values of its channels, so each checkpoint stores a short
    value again: `bytes` counts every copy, `versions` the distinct ones. Parts of long values are
    stored once. Their bytes are divided among the channels by the size of the channels' values.

    Args:
        conn: Ignored; this is a transaction of its own.
        thread_id: The thread. An unknown one takes nothing.
    """
    database: Database = process.current().database
    measure = _measure if database.dialect_name == "sqlite" else _measure_postgres
    return await database.read(lambda c: measure(c, str(thread_id)))


def _measure_postgres(conn: Connection, thread: str) -> dict[str, Any]:
    """Measure in Postgres, where checkpoints share the rows of a channel's versions."""

    def all_rows(statement: str) -> list[Any]:
        found: list[Any] = conn.raw.execute(statement, (thread,)).fetchall()
        return found

    [(count, row_bytes)] = all_rows(
        "SELECT count(*), coalesce(sum(octet_length(checkpoint::text)"
        " + octet_length(metadata::text)), 0)::bigint FROM checkpoints WHERE thread_id = %s"
    )
    blobs = all_rows(
        "SELECT channel, count(*), coalesce(sum(octet_length(blob)), 0)::bigint"
        " FROM checkpoint_blobs WHERE thread_id = %s GROUP BY channel"
    )
    # Each checkpoint holds its short values itself.
    inline = all_rows(
        "SELECT short.key, count(DISTINCT checkpoint -> 'channel_versions' ->> short.key),"
        " sum(octet_length(short.value::text))::bigint"
        " FROM checkpoints, jsonb_each(checkpoint -> 'channel_values') AS short"
        " WHERE thread_id = %s GROUP BY short.key"
    )
    long = {
        channel: size
        for channel, size in all_rows(
            "SELECT channel, sum(octet_length(blob))::bigint FROM checkpoint_blobs"
            " WHERE thread_id = %s AND type LIKE '%%+parts%%' GROUP BY channel"
        )
    }
    parts = _divided(part_bytes(conn, thread), long)
    blobs = [(channel, count, size + parts.get(channel, 0)) for channel, count, size in blobs]
    by_channel: dict[str, dict[str, int]] = {}
    for channel, versions, size in sorted([*blobs, *inline]):
        found = by_channel.setdefault(channel, {"versions": 0, "bytes": 0})
        found["versions"] += versions
        found["bytes"] += size
    inline_bytes = sum(size for _, _, size in inline)
    [(writes, write_bytes)] = all_rows(
        "SELECT count(*), coalesce(sum(octet_length(blob)), 0)::bigint"
        " FROM checkpoint_writes WHERE thread_id = %s"
    )
    return _report(
        checkpoints=(count, row_bytes - inline_bytes),
        by_channel=by_channel,
        writes=(writes, write_bytes),
    )


def _measure(conn: Connection, thread: str) -> dict[str, Any]:
    serde = sealing.reading(conn, serializer(ormsgpack.Ext), thread)
    count = row_bytes = frame_bytes = 0
    sizes: dict[str, int] = {}
    versions: dict[str, set[Any]] = {}
    for ns, kind, blob, metadata in conn.raw.execute(
        "SELECT checkpoint_ns, type, checkpoint, metadata FROM checkpoints WHERE thread_id = ?",
        (thread,),
    ):
        count += 1
        row_bytes += len(blob or b"") + len(metadata or b"")
        frame_bytes += len(metadata or b"")
        checkpoint = serde.loads_typed((kind, blob))
        frame = _packed({**checkpoint, "channel_values": {}})
        if KIND_SUFFIX in kind:
            # It is compressed with what is around the parts.
            frame = compression.squeezed(frame) or frame
        frame_bytes += len(frame)
        for channel, value in checkpoint["channel_values"].items():
            sizes[channel] = sizes.get(channel, 0) + len(_packed(value))
            version = checkpoint["channel_versions"].get(channel)
            versions.setdefault(channel, set()).add((ns, version))
    stored = row_bytes + part_bytes(conn, thread)
    sizes = _divided(max(stored - frame_bytes, 0), sizes)
    by_channel = {
        channel: {"versions": len(versions[channel]), "bytes": size}
        for channel, size in sorted(sizes.items())
    }
    channel_bytes = sum(sizes.values())
    writes, write_bytes = conn.raw.execute(
        "SELECT count(*), coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = ?",
        (thread,),
    ).fetchone()
    return _report(
        checkpoints=(count, stored - channel_bytes),
        by_channel=by_channel,
        writes=(writes, write_bytes),
    )


def part_bytes(conn: Connection, thread: str) -> int:
    """Return the bytes of the parts of a thread's checkpoints."""
    statement = (
        "SELECT coalesce(sum(length(id) + length({value})), 0) FROM checkpoint_parts"
        " WHERE thread_id = ?"
    )
    return int(run(conn, statement, (thread,)).fetchone()[0])


def _divided(total: int, sizes: dict[str, int]) -> dict[str, int]:
    """Divide `total` in proportion to `sizes`, without a rest."""
    found: dict[str, int] = {}
    rest, weight = total, sum(sizes.values())
    for name, size in sizes.items():
        found[name] = rest * size // weight if weight else 0
        rest, weight = rest - found[name], weight - size
    return found


def _report(
    *, checkpoints: tuple[int, int], by_channel: dict[str, dict[str, int]], writes: tuple[int, int]
) -> dict[str, Any]:
    """Return the counts and bytes of each kind in the form of the API."""
    channel_bytes = sum(each["bytes"] for each in by_channel.values())
    return {
        "total_bytes": checkpoints[1] + channel_bytes + writes[1],
        "checkpoints": {"count": checkpoints[0], "bytes": checkpoints[1]},
        "channel_values": {
            "count": sum(each["versions"] for each in by_channel.values()),
            "bytes": channel_bytes,
            "by_channel": by_channel,
        },
        "pending_writes": {"count": writes[0], "bytes": writes[1]},
    }


def _packed(value: Any) -> bytes:
    # `tuple` packs the snapshot of a delta channel as a tuple of its value.
    return ormsgpack.packb(value, default=tuple, option=ormsgpack.OPT_NON_STR_KEYS)
