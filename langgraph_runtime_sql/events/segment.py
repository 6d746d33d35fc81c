"""Segments: consecutive events of one attempt at a run, stored in one row."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from uuid import UUID

import ormsgpack

from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.stream_key import StreamKey

# Events of one row: a reader loads whole rows.
SEGMENT_EVENTS = 256
SEGMENT_BYTES = 2**20
# Smaller bodies gain nothing from compression.
COMPRESS_BYTES = 256
# The fastest level: tokens repeat enough for it.
_LEVEL = 1
_PLAIN, _ZLIB = b"p", b"z"


class Segment:
    """Events with consecutive numbers of one epoch, run and attempt.

    Args:
        key: The key of the thread.
        events: At least one event.
    """

    def __init__(self, key: StreamKey, events: list[Event]) -> None:
        self.key = key
        self.events = events

    @cached_property
    def row(self) -> Row:
        """The row without its date. It is packed once, by the first thread that stores it."""
        first, last = self.events[0], self.events[-1]
        body = pack(self.events)
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
        }


def pack(events: Iterable[Event]) -> bytes:
    """Return the names, data and dates of events as compressed MessagePack."""
    body = ormsgpack.packb([(each.name, each.data, each.at) for each in events])
    return _PLAIN + body if len(body) < COMPRESS_BYTES else _ZLIB + zlib.compress(body, _LEVEL)


def unpack(row: Row) -> list[Event]:
    """Return the events of a stored segment."""
    body = bytes(row["events"])
    raw = zlib.decompress(body[1:]) if body[:1] == _ZLIB else body[1:]
    epoch, run_id, resumable = row["epoch"], row["run_id"], row["resumable"]
    return [
        Event((epoch, number), run_id, name, data, resumable, row["attempt"], at)
        for number, (name, data, at) in enumerate(ormsgpack.unpackb(raw), row["first"])
    ]


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
