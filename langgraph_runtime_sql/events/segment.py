"""Segments: consecutive events of one attempt at a run, stored in one row."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import Any
from uuid import UUID

import ormsgpack

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import DamagedEvents
from langgraph_runtime_sql.events.dictionaries import (
    EPOCH,
    LARGE_EVENT,
    CompressedSegment,
    compress,
    expand,
)
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey

# Events of one row: a reader loads whole rows.
SEGMENT_EVENTS = 256
SEGMENT_BYTES = 2**20
# Smaller bodies gain nothing from compression.
COMPRESS_BYTES = 256
# The fastest level: tokens repeat enough for it.
_LEVEL = 1
# What the first byte of a body says of the rest. After `_WITH_DICTIONARY` comes its number.
_PLAIN, _ZLIB, _WITH_DICTIONARY = b"p", b"z", b"d"
_NUMBER = struct.Struct(">q")


class Segment:
    """Events with consecutive numbers of one epoch, run and attempt.

    It is packed once, by the first thread that stores it.

    Args:
        key: The key of the thread.
        events: At least one event.
    """

    def __init__(self, key: StreamKey, events: list[Event]) -> None:
        self.key = key
        self.events = events

    @cached_property
    def row(self) -> Row:
        """The row without its date, compressed alone."""
        body = _packed(self.events)
        return self._row(
            _PLAIN + body if len(body) < COMPRESS_BYTES else _ZLIB + zlib.compress(body, _LEVEL)
        )

    @property
    def is_large(self) -> bool:
        """Whether the segment has an event that is compressed with a dictionary."""
        return len(self._largest) >= LARGE_EVENT

    @cached_property
    def _largest(self) -> bytes:
        return max((each.data for each in self.events), key=len)

    @cached_property
    def compressed(self) -> CompressedSegment | None:
        """The body of a large segment, compressed with a dictionary that it resembles."""
        if not self.is_large:
            return None
        return compress(UUID(self.key.thread_id), _packed(self.events), self._largest)

    @property
    def rows(self) -> list[Row]:
        """The row without its date, and that of a new dictionary, if the segment has one."""
        found = self.compressed
        if found is None:
            return [self.row]
        used = {"dictionary": found.dictionary.chain}
        number = found.dictionary.number
        rows = [self._row(_WITH_DICTIONARY + _NUMBER.pack(number) + found.frame) | used]
        if found.stored_as is not None:
            about = {"epoch": EPOCH, "first": number, "last": number, "run_id": THREAD}
            rows.append(self._row(found.stored_as) | about | used | {"resumable": True})
        return rows

    def _row(self, body: bytes) -> Row:
        first, last = self.events[0], self.events[-1]
        return {
            "thread_id": UUID(self.key.thread_id),
            "epoch": first.order[0],
            "first": first.order[1],
            "last": last.order[1],
            "run_id": first.run_id,
            "attempt": first.attempt,
            "resumable": first.resumable,
            "size": len(body),
            "events": body,
            "tenant": self.key.tenant,
            "dictionary": None,
        }


def _packed(events: Iterable[Event]) -> bytes:
    return ormsgpack.packb([(each.name, each.data, each.at) for each in events])


def unpack(row: Row, conn: Connection) -> list[Event]:
    """Return the events of a stored segment.

    Args:
        row: Its row, whose `events` are not encrypted.
        conn: Where its dictionary is.

    Raises:
        DamagedEvents: the bytes are not those that were stored, or the dictionary is missing.
    """
    epoch, run_id, resumable = row["epoch"], row["run_id"], row["resumable"]
    try:
        return [
            Event((epoch, number), run_id, name, data, resumable, row["attempt"], at)
            for number, (name, data, at) in enumerate(_unpacked(row, conn), row["first"])
        ]
    except (zlib.error, struct.error, ValueError, TypeError) as error:
        raise DamagedEvents(f"the events {epoch}-{row['first']} are damaged: {error}") from error


def _unpacked(row: Row, conn: Connection) -> Any:
    body = bytes(row["events"])
    kind, rest = body[:1], body[1:]
    if kind == _WITH_DICTIONARY:
        (number,) = _NUMBER.unpack_from(rest)
        return ormsgpack.unpackb(expand(conn, row, number, rest[_NUMBER.size :]))
    return ormsgpack.unpackb(zlib.decompress(rest) if kind == _ZLIB else rest)


def cut(key: StreamKey, events: Iterable[Event]) -> Iterator[Segment]:
    """Divide the events of one writer into segments.

    Args:
        key: The key of the thread.
        events: Events in order.
    """
    of_run = groupby(events, lambda each: (each.run_id, each.attempt, each.resumable))
    for _, group in of_run:
        some: list[Event] = []
        size = 0
        for event in group:
            follows = not some or some[-1].order[1] + 1 == event.order[1]
            if some and (
                not follows or len(some) == SEGMENT_EVENTS or size + event.size > SEGMENT_BYTES
            ):
                yield Segment(key, some)
                some, size = [], 0
            some.append(event)
            size += event.size
        yield Segment(key, some)
