"""Entries: events as they stand in the streams of Redis.

Whoever reaches Redis can write to it: what is not an event is none here.
"""

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from langgraph_runtime_sql.events.event import CONTROL, DONE, Event, Order, parse_order

Place = tuple[int, int]
Fields = dict[bytes, bytes]
Entry = tuple[bytes, Fields]


def pack(event: Event) -> bytes:
    """An event without its data, as it travels."""
    about = event.run_id, event.name, event.resumable, event.attempt
    return orjson.dumps([*event.order, *about])


def unpack(fields: Fields) -> Event | None:
    """The event of an entry; None for one that was refused, or is none of ours."""
    header, data = fields.get(b"h"), fields.get(b"d")
    if header is None or data is None:
        return None
    try:
        milliseconds, sequence, run_id, name, resumable, attempt = orjson.loads(header)
        if name == CONTROL:
            sound = data == DONE
        else:
            orjson.loads(data)
            sound = isinstance(name, str)
    except (ValueError, TypeError):
        return None
    numbers = milliseconds, sequence, resumable, attempt
    sound = sound and all(isinstance(each, int) for each in numbers)
    if not sound or not isinstance(run_id, str):
        return None
    return Event((milliseconds, sequence), run_id, name, data, bool(resumable), attempt)


class Kept(NamedTuple):
    """An event as a stream holds it.

    Attributes:
        place: Where it stands in the stream.
        rank: Its number among all events that were ever sent on the thread, by whomever.
        first: Whether the stream was begun with it.
    """

    place: Place
    rank: Order
    event: Event
    first: bool


def kept_in(entries: Iterable[Entry]) -> list[Kept]:
    """The events of entries."""
    found = ((name, fields, unpack(fields)) for name, fields in entries)
    return [
        Kept(place_of(name), rank_of(fields, event), event, is_first(fields))
        for name, fields, event in found
        if event is not None
    ]


def place_of(name: bytes) -> Place:
    """Where an entry with this name stands."""
    milliseconds, _, sequence = name.partition(b"-")
    return int(milliseconds), int(sequence)


def rank_of(fields: Fields, event: Event) -> Order:
    """What Redis has made of an event's number; for older processes it is the same."""
    return parse_order(fields.get(b"r")) or event.order


def is_first(fields: Fields) -> bool:
    """Whether a stream was begun with this entry."""
    return fields.get(b"b") == b"first"


def is_begun_anew(fields: Fields) -> bool:
    """Whether a stream was begun with this entry, or Redis was told it again."""
    return b"b" in fields


def number_of(fields: Fields) -> tuple[bytes, int] | None:
    """Who has sent an entry, and as which of his; None where it does not say."""
    try:
        return fields[b"o"], int(fields[b"n"])
    except (KeyError, ValueError):
        return None


def held_before(known: Fields, newer: Iterable[Entry]) -> dict[bytes, int]:
    """The number of each origin's last event before the newer ones, of what is known of a stream."""
    held = {
        origin: int(number)
        for origin, number in known.items()
        if origin not in (b"size", b"born")
        and not origin.startswith((b"run:", b"at:"))
        and number.isdigit()
    }
    for _, fields in newer:
        if (numbered := number_of(fields)) is not None:
            origin, number = numbered
            held[origin] = min(held.get(origin, number), number - 1)
    return held
