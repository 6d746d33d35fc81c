"""Entries: events as they are stored in the streams of Redis.

Anyone with access to Redis can write there, so everything is checked.
"""

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from langgraph_runtime_sql.events.event import CONTROL, DONE, Event, Order, parse_order

Place = tuple[int, int]
Fields = dict[bytes, bytes]
Entry = tuple[bytes, Fields]


def pack(event: Event) -> bytes:
    """Return the header of an event: everything but its data."""
    about = event.run_id, event.name, event.resumable, event.attempt
    return orjson.dumps([*event.order, *about])


def unpack(fields: Fields) -> Event | None:
    """Return the event of an entry, or None for a refused event or foreign data."""
    header, data = fields.get(b"h"), fields.get(b"d")
    if header is None or data is None:
        return None
    try:
        milliseconds, sequence, run_id, name, resumable, attempt = orjson.loads(header)
        if name == CONTROL:
            is_valid = data == DONE
        else:
            orjson.loads(data)
            is_valid = isinstance(name, str)
    except (ValueError, TypeError):
        return None
    numbers = milliseconds, sequence, resumable, attempt
    is_valid = is_valid and all(isinstance(each, int) for each in numbers)
    if not is_valid or not isinstance(run_id, str):
        return None
    return Event((milliseconds, sequence), run_id, name, data, bool(resumable), attempt)


class StoredEvent(NamedTuple):
    """An event in a stream.

    Attributes:
        place: The place of its entry in the stream.
        rank: Its number among all events that any process has ever sent on the thread.
        first: Whether the stream began with it.
    """

    place: Place
    rank: Order
    event: Event
    first: bool


def stored_events(entries: Iterable[Entry]) -> list[StoredEvent]:
    """Return the valid events of entries."""
    found = ((entry_id, fields, unpack(fields)) for entry_id, fields in entries)
    return [
        StoredEvent(place_of(entry_id), rank_of(fields, event), event, is_first(fields))
        for entry_id, fields, event in found
        if event is not None
    ]


def place_of(entry_id: bytes) -> Place:
    """Return the place of an entry."""
    milliseconds, _, sequence = entry_id.partition(b"-")
    return int(milliseconds), int(sequence)


def rank_of(fields: Fields, event: Event) -> Order:
    """Return an event's rank. Entries of older processes have none; their order is the rank."""
    return parse_order(fields.get(b"r")) or event.order


def is_first(fields: Fields) -> bool:
    """Return whether the stream began with this entry."""
    return fields.get(b"b") == b"first"


def is_restart(fields: Fields) -> bool:
    """Return whether the stream began with this entry, or processes sent it again."""
    return b"b" in fields


def number_of(fields: Fields) -> tuple[bytes, int] | None:
    """Return the origin of an entry and its number there, or None for foreign data."""
    try:
        return fields[b"o"], int(fields[b"n"])
    except (KeyError, ValueError):
        return None


def last_numbers(meta: Fields, newer: Iterable[Entry]) -> dict[bytes, int]:
    """Return each origin's last number before the `newer` entries.

    Args:
        meta: The stream's metadata.
        newer: Entries that are already included in `meta`.
    """
    last = {
        origin: int(number)
        for origin, number in meta.items()
        if origin not in (b"size", b"born")
        and not origin.startswith((b"run:", b"at:"))
        and number.isdigit()
    }
    for _, fields in newer:
        if (numbered := number_of(fields)) is not None:
            origin, number = numbered
            last[origin] = min(last.get(origin, number), number - 1)
    return last
