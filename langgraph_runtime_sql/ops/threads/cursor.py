"""Cursor: where in a thread's log a stream of protocol 2 begins."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import takewhile
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    event_segments,
    runs,
)
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.event import START, Order
from langgraph_runtime_sql.ops.threads import rows as thread_rows

# A client that was disconnected for this time asks again without a cursor. It needs the rest of
# runs that have ended meanwhile: its attempts take up to 22 seconds.
RECENT = timedelta(seconds=30)
# The limit of events that are sent again from ended runs beside the newest one.
RECENT_EVENTS = 50
# In which events before its end a run's interrupts are looked for.
_TAIL = 100
# How much earlier than the creation of its run an epoch may begin, because clocks differ.
_BEFORE_MS = 5_000
# How many of a thread's newest runs may have ended recently.
_RUNS = 10
_c = event_segments.c
_is_thread = _c.thread_id == bindparam("thread")
_is_placed = _c.epoch > log.UNPLACED
_is_open = runs.c.status.in_([PENDING_LITERAL, RUNNING_LITERAL])
_of_thread = runs.c.thread_id == bindparam("thread")
_OPEN = Prepared(
    select(runs.c.run_id, runs.c.created_at, runs.c.updated_at)
    .where(_of_thread, _is_open)
    .order_by(runs.c.created_at, runs.c.seq)
)
_OVER = Prepared(
    select(runs.c.run_id, runs.c.created_at, runs.c.updated_at)
    .where(_of_thread, ~_is_open)
    .order_by(runs.c.created_at.desc(), runs.c.seq.desc())
    .limit(_RUNS)
)
_PLACES = Prepared(
    select(
        _c.run_id,
        func.min(_c.epoch).label("epoch"),
        func.min(_c.first).label("first"),
        func.max(_c.last).label("last"),
        func.sum(_c.last - _c.first + 1).label("count"),
    )
    .where(_is_thread, _is_placed, _c.epoch >= bindparam("epoch"), _c.events.is_not(None))
    .group_by(_c.run_id)
)
_columns = select(_c.epoch, _c.first, _c.last, _c.run_id, _c.events.is_(None).label("gone"))
_latest = (_c.epoch.desc(), _c.first.desc())
_AT = Prepared(
    _columns.where(_is_thread, _is_placed, _c.first <= bindparam("number"))
    .order_by(*_latest)
    .limit(1)
)
_AT_OR_BEFORE = Prepared(
    _columns.where(_is_thread, _is_placed, _c.epoch <= bindparam("epoch"))
    .order_by(*_latest)
    .limit(1)
)
_GONE_BEFORE = Prepared(
    _columns.where(_is_thread, _is_placed, _c.first <= bindparam("number"), _c.events.is_(None))
    .order_by(*_latest)
    .limit(1)
)
_FIRST_OF_EPOCH = Prepared(
    select(func.min(_c.first).label("first")).where(_is_thread, _c.epoch == bindparam("epoch"))
)
_FIRST_OF_RUN = Prepared(
    _columns.where(_is_thread, _is_placed, _c.run_id == bindparam("run"), _c.events.is_not(None))
    .order_by(_c.epoch, _c.first)
    .limit(1)
)


class Seen(NamedTuple):
    """The last event that a client has seen.

    Attributes:
        number: Its number in the thread; None if only `run_id` is known.
        epoch: Its epoch, if known.
        epoch_tag: Its epoch modulo `EPOCH_TAGS`, if only that is known.
        run_id: Its run, if the number is unknown.
    """

    number: int | None = None
    epoch: int | None = None
    epoch_tag: int | None = None
    run_id: str | None = None


EPOCH_TAGS = 1021
"""How many epochs a sequence number distinguishes."""


class Begin(NamedTuple):
    """Where a stream begins.

    Attributes:
        after: The position after which it reads the log.
        seen: The position of the last event that the client has, if it has any.
        exact: Whether the client has seen just the event at `seen`, perhaps not all that the
            protocol makes of it.
        over: The runs that had ended, whose answered interrupts are hidden.
        interrupts: The open interrupts by id.
        only_interrupts_of: A run of which only the open interrupts are sent.
        head: The last stored position.
    """

    after: Order
    seen: Order = START
    exact: bool = False
    over: frozenset[str] = frozenset()
    interrupts: Mapping[str, Any] = {}
    only_interrupts_of: str | None = None
    head: Order = START


async def head(thread_id: UUID) -> Order:
    """Return the position of the last stored event of a thread that the caller can see."""
    return await runtime.current().database.read(lambda conn: log.head(conn, thread_id))


async def begin(thread_id: UUID, seen: Seen | None) -> Begin:
    """Return where a stream begins, in the caller's scope.

    Without a cursor it begins at the oldest run that is not over, or at a run that has ended just
    now. Open interrupts are sent too.
    """
    return await runtime.current().database.read(lambda conn: _begin(conn, thread_id, seen))


def _begin(conn: Connection, thread_id: UUID, seen: Seen | None) -> Begin:
    if seen is None:
        return _current(conn, thread_id)
    if seen.number is None:
        run = {"thread": thread_id, "run": seen.run_id}
        row = conn.fetchone(_FIRST_OF_RUN, run)
        last = log.head(conn, thread_id)
        if row is None:
            return Begin(log.BEGINNING, last, head=last)
        return Begin((row["epoch"], row["first"] - 1), exact=True, head=last)
    return _after(conn, thread_id, seen, seen.number)


def _after(conn: Connection, thread_id: UUID, seen: Seen, number: int) -> Begin:
    """Return where the client continues that has seen an event."""
    values = {"thread": thread_id, "number": number}
    last = log.head(conn, thread_id)
    row = conn.fetchone(_AT, values)
    if row is None or number <= 0:
        return Begin(START, head=last)
    epoch = row["epoch"]
    if seen.epoch is not None and seen.epoch > last[0]:
        # Its attempt has stored nothing yet.
        position, exact = (seen.epoch, number), True
    elif seen.epoch is not None and seen.epoch != epoch:
        # An attempt died before it had stored the event. What was stored after it is new.
        before = conn.fetchone(_AT_OR_BEFORE, {**values, "epoch": seen.epoch})
        position = log.BEGINNING if before is None else (before["epoch"], before["last"])
        exact = False
    elif seen.epoch_tag is not None and seen.epoch_tag != epoch % EPOCH_TAGS:
        found = conn.fetchone(_FIRST_OF_EPOCH, {**values, "epoch": epoch})
        first = row["first"] if found is None else found["first"]
        position, exact = (epoch, first - 1), False
    else:
        # The client may have seen it before it is stored. If its attempt dies first, the next one
        # has a later epoch.
        position, exact = (epoch, number), True
    return Begin(_warm(conn, values, row, position), position, exact, head=last)


def _warm(conn: Connection, values: Row, row: Row, position: Order) -> Order:
    """Return the start of the run at a position, because what follows depends on it.

    Deleted events before the position are not missed: the client has seen them.
    """
    if row["gone"]:
        return position
    first = conn.fetchone(_FIRST_OF_RUN, {**values, "run": row["run_id"]})
    after = position if first is None else (first["epoch"], first["first"] - 1)
    gone = conn.fetchone(_GONE_BEFORE, values)
    if gone is not None:
        after = max(after, (gone["epoch"], gone["last"]))
    return min(after, position)


def _current(conn: Connection, thread_id: UUID) -> Begin:
    """Return where a client without a cursor begins."""
    values = {"thread": thread_id}
    thread = thread_rows.find(conn, thread_id)
    last = log.head(conn, thread_id)
    if thread is None:
        return Begin(last, last, head=last)
    unfinished, over = conn.fetchall(_OPEN, values), conn.fetchall(_OVER, values)
    asked = [each for group in (thread["interrupts"] or {}).values() for each in group]
    interrupts = {each["id"]: each for each in asked if "id" in each}
    limit = conn.now() - RECENT
    recent = list(takewhile(lambda row: row["updated_at"] >= limit, over))
    only = str(over[0]["run_id"]) if interrupts and over and not (unfinished or recent) else None
    looked_for = [*unfinished, *recent, *(over[:1] if only else ())]
    if not looked_for:
        return Begin(last, last, head=last)
    since = int(min(each["created_at"] for each in looked_for).timestamp() * 1000) - _BEFORE_MS
    places = {row["run_id"]: row for row in conn.fetchall(_PLACES, {**values, "epoch": since})}
    wanted = [places[run] for run in _ids(unfinished) if run in places]
    wanted += _few(places[run] for run in _ids(recent) if run in places)
    if only in places:
        place = places[only]
        wanted.append({**place, "first": max(place["first"], place["last"] - _TAIL)})
    after = min(((row["epoch"], row["first"] - 1) for row in wanted), default=last)
    return Begin(after, START, False, frozenset(_ids(over)), interrupts, only, last)


def _few(places: Iterable[Row]) -> list[Row]:
    """Return the places of the newest run, and of older ones with few events in all."""
    found: list[Row] = []
    count = 0
    for place in places:
        count += place["count"]
        if found and count > RECENT_EVENTS:
            break
        found.append(place)
    return found


def _ids(found: list[Row]) -> list[str]:
    return [str(row["run_id"]) for row in found]
