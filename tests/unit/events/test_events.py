"""Positions of events, segments, and the writer that numbers events."""

from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.events import segment
from langgraph_runtime_sql.events.event import START, Event, parse_order
from langgraph_runtime_sql.events.segment import Segment, cut, unpack
from langgraph_runtime_sql.events.writer import Writer
from tests.support.streams import of_run, of_thread

THREAD = "0190a000-0000-7000-8000-000000000000"
KEY = of_thread(THREAD)


def event(number: int, data: bytes = b"", **more: object) -> Event:
    fields = {"run_id": "run", "name": "values", "resumable": True, "attempt": 1, "at": 5}
    return Event((7, number), data=data, **{**fields, **more})  # type: ignore[arg-type]


# --- positions


@pytest.mark.parametrize("name", ["", "-", "-1", b"-"])
def test_beginning_has_several_names(name: str | bytes) -> None:
    assert parse_order(name) == START


@pytest.mark.parametrize("garbage", ["abc", "1-x", "\u0661-x", "--", "1-2-3", "0x1", b"\xff"])
def test_invalid_event_id_means_now(garbage: str | bytes) -> None:
    assert parse_order(garbage) is None
    assert parse_order(None) is None


def test_number_alone_is_before_the_first_event_of_its_millisecond() -> None:
    assert START < (5, -1) == parse_order("5") == parse_order(b"5-*") < (5, 0)


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_id_of_an_event_is_parsed_as_its_position(epoch: int, number: int) -> None:
    found = event(0)._replace(order=(epoch, number))
    assert parse_order(found.id) == parse_order(found.id.decode()) == (epoch, number)


def test_id_of_an_older_version_is_before_all_later_attempts() -> None:
    """Older versions counted the events of a millisecond: `<ms>-<seq>`."""
    old = parse_order("1700000000000-3")
    assert old is not None
    # The log of a thread begins with number 1 in a later epoch.
    assert old < (1700000000001, 1)


# --- segments

# Segments without a dictionary need none.
NO_DATABASE = cast(Connection, None)
events = st.lists(
    st.tuples(
        st.text(max_size=20),
        st.binary(max_size=600),
        st.integers(0, 2**45),
        st.sampled_from(["one", "two"]),
        st.integers(0, 2),
        st.booleans(),
        # How many numbers are missing before this event.
        st.sampled_from([0, 0, 0, 1, 5]),
    ),
    max_size=40,
)


def built(fields: list[tuple[str, bytes, int, str, int, bool, int]]) -> list[Event]:
    found, number = [], 0
    for name, data, at, run, attempt, resumable, missing in fields:
        number += 1 + missing
        found.append(Event((7, number), run, name, data, resumable, attempt, at))
    return found


@given(events)
def test_cut_and_packed_events_are_the_same_after_they_are_read(fields: list[object]) -> None:
    given_events = built(fields)  # type: ignore[arg-type]
    segments = list(cut(KEY, given_events))
    assert [each for found in segments for each in unpack(found.row, NO_DATABASE)] == given_events
    for found in segments:
        assert len({(e.run_id, e.attempt, e.resumable) for e in found.events}) == 1
        numbers = [e.order[1] for e in found.events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert (found.row["first"], found.row["last"]) == (numbers[0], numbers[-1])
        assert found.row["size"] == len(found.row["events"])


def test_segment_is_cut_by_the_number_of_its_events() -> None:
    given_events = [event(n) for n in range(2 * segment.SEGMENT_EVENTS + 1)]
    assert [len(each.events) for each in cut(KEY, given_events)] == [256, 256, 1]


def test_segment_is_cut_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    small = event(0, b"x")
    monkeypatch.setattr(segment, "SEGMENT_BYTES", 3 * small.size)
    given_events = [event(n, b"x") for n in range(7)]
    assert [len(each.events) for each in cut(KEY, given_events)] == [3, 3, 1]
    # One event may be larger.
    given_events = [event(0, b"x"), event(1, b"x" * 10_000), event(2, b"x")]
    assert [len(each.events) for each in cut(KEY, given_events)] == [1, 1, 1]


def test_large_segment_is_compressed() -> None:
    token = b'{"content":"some words of a model","id":"run-1"}'
    row = Segment(KEY, [event(n, token) for n in range(200)]).row
    assert row["size"] < 200 * len(token) / 10
    assert str(row["thread_id"]) == THREAD
    assert row["tenant"] is None


def test_segment_belongs_to_the_tenant_of_its_thread() -> None:
    row = Segment(KEY._replace(tenant="acme"), [event(1)]).row
    assert row["tenant"] == "acme"
    assert unpack({**row, "events": memoryview(row["events"])}, NO_DATABASE) == [event(1)]


# --- the writer


def writer(number: int = 0) -> Writer:
    return Writer(of_run("run", THREAD), 1, (7, number), resumable=True)


def said(by: Writer, count: int = 1) -> list[Event]:
    found = []
    for _ in range(count):
        found.append(by.next("run", "values", b"", resumable=True, attempt=1, at=5))
        by.add(found[-1])
    return found


def test_writer_continues_the_numbers_of_the_thread() -> None:
    by = writer(41)
    orders = [each.order for each in said(by, 1_000)]
    assert orders[0] == (7, 42)
    assert all(b == (7, a[1] + 1) for a, b in pairwise(orders))


def test_writer_holds_events_until_they_are_stored() -> None:
    by = writer()
    assert by.is_stored
    first = said(by, 3)
    stored = by.cut()
    later = said(by, 2)
    assert not by.is_stored
    assert by.unstored() == first + later
    by.stored(stored)
    assert by.unstored() == later
    # Storing them again changes nothing.
    by.stored(stored)
    assert by.unstored() == later
    by.stored(by.cut())
    assert by.is_stored
    assert by.unstored() == []


def test_segment_of_a_failed_transaction_is_stored_by_the_next() -> None:
    by = writer()
    said(by, 2)
    failed = by.cut()
    said(by, 1)
    again = by.cut()
    assert again[:1] == failed
    assert [len(each.events) for each in again] == [2, 1]
    by.stored(again)
    assert by.is_stored


def test_event_that_was_published_but_not_held_uses_a_number() -> None:
    """An event of a stream that is not stored leaves a gap in the log, and no segment spans it."""
    by = writer()
    said(by, 1)
    by.next("run", "values", b"", resumable=False, attempt=1, at=5)
    said(by, 1)
    assert [each.events[0].order[1] for each in by.cut()] == [1, 3]
