"""Deltas: channels whose value lies in what tasks have written since an ancestor had it whole."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_runtime_sql.checkpoint import reading, rows
from langgraph_runtime_sql.checkpoint.reading import Key, Reader
from langgraph_runtime_sql.checkpoint.serialization import serializer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row

COUNTERS = "counters_since_delta_snapshot"
"""The entry of the metadata of a checkpoint with such channels."""


def history(
    conn: Connection,
    serde: SerializerProtocol,
    place: tuple[str, str, str | None],
    channels: Collection[str],
) -> Mapping[str, DeltaChannelHistory]:
    """Return what each channel is rebuilt from: the writes of ancestors, and the value before them.

    Args:
        conn: The transaction.
        serde: Reads the values.
        place: The checkpoint; the newest one of the namespace without an id.
        channels: The channels.

    Raises:
        DamagedCheckpoint, KeyErased, CannotDecrypt: as `Reader.find`.
    """
    thread_id, ns, checkpoint_id = place
    reader = Reader(conn, thread_id)
    collected: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    first = reader.find(ns, checkpoint_id) if channels else None
    for row in ancestors(conn, thread_id, ns, first.row["parent_id"] if first else None):
        remaining = collected.keys() - seeds.keys()
        if not remaining:
            break
        onto = conn.fetchall(
            rows.WRITES, {"thread": thread_id, "ns": ns, "id": row["checkpoint_id"]}
        )
        for each in reversed(rows.ordered(onto)):
            if each["channel"] in remaining:
                value = serde.loads_typed(reader.opener.plain(each["type"], bytes(each["value"])))
                collected[each["channel"]].append((each["task_id"], each["channel"], value))
        values = reading.loaded(reader.version(ns, row), serde)[1]["channel_values"]
        seeds.update((channel, values[channel]) for channel in remaining & values.keys())
    return {channel: _history(collected[channel], channel, seeds) for channel in channels}


def _history(
    writes: list[PendingWrite], channel: str, seeds: Mapping[str, Any]
) -> DeltaChannelHistory:
    found: DeltaChannelHistory = {"writes": writes[::-1]}
    if channel in seeds:
        found["seed"] = seeds[channel]
    return found


def ancestors(
    conn: Connection, thread_id: str, ns: str, checkpoint_id: str | None
) -> Iterator[Row]:
    """Yield the rows of a checkpoint and its ancestors, in their order."""
    seen: set[str] = set()
    page: dict[str, Row] = {}
    # A checkpoint stored again under a descendant makes the line a loop.
    while checkpoint_id is not None and checkpoint_id not in seen:
        if checkpoint_id not in page:
            place = {"thread": thread_id, "ns": ns, "id": checkpoint_id}
            page = {each["checkpoint_id"]: each for each in conn.fetchall(rows.ANCESTORS, place)}
        row = page.get(checkpoint_id)
        if row is None:
            return
        seen.add(checkpoint_id)
        yield row
        checkpoint_id = row["parent_id"]


def rebuilt_from(conn: Connection, thread_id: str, places: Iterable[Key]) -> set[Key]:
    """Return the namespaces and ids of the checkpoints that delta channels are rebuilt from.

    Args:
        conn: The transaction.
        thread_id: The thread.
        places: The namespace and id of the checkpoints with these channels.
    """
    # For the structure of checkpoints: values of other types read as None.
    reader, serde = Reader(conn, thread_id), serializer(lambda _code, _data: None)
    return {
        (ns, needed)
        for ns, checkpoint_id in places
        for needed in _rebuilt_from(reader, conn, serde, ns, checkpoint_id)
    }


def _rebuilt_from(
    reader: Reader, conn: Connection, serde: SerializerProtocol, ns: str, checkpoint_id: str
) -> set[str]:
    """Return a checkpoint and the ancestors that its delta channels are rebuilt from."""
    ids: set[str] = set()
    missing: set[str] | None = None
    for row in ancestors(conn, reader.thread_id, ns, checkpoint_id):
        ids.add(row["checkpoint_id"])
        about, checkpoint = reading.loaded(reader.version(ns, row), serde)
        values = checkpoint["channel_values"].keys()
        if missing is None:
            counted = set(about.get(COUNTERS, ()))
            missing = (counted & checkpoint["channel_versions"].keys()) - values
        else:
            missing -= values
        if not missing:
            break
    return ids
