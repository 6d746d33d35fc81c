"""Log: the stored events of threads, in segments.

A thread has one writer at a time: the process that executes its run. Events of other processes (the
end of a run that waits, for instance) get a place at once if no run is in flight. Otherwise they
wait with epoch 0, and the writer places them.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, or_, select
from sqlalchemy.sql import Select

from langgraph_runtime_sql import encryption
from langgraph_runtime_sql.database.connection import Connection, Prefetched
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    event_segments,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.errors import DamagedEvents
from langgraph_runtime_sql.events import dictionaries
from langgraph_runtime_sql.events.event import Event, Order
from langgraph_runtime_sql.events.segment import Segment, cut, unpack
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.usage import usage

logger = logging.getLogger(__name__)

# Rows that one read loads.
PAGE = 32
# Separates these advisory locks from others.
_LOCKS = literal_column("7214880112", BigInteger)
UNPLACED = 0
# The position of a thread without events.
BEGINNING: Order = (0, 0)
_c = event_segments.c
_is_thread = _c.thread_id == bindparam("thread")
_LOCK = Prepared(
    lambda: select(
        func.pg_advisory_xact_lock(func.hashtextextended(bindparam("thread", type_=Text), _LOCKS))
    )
)
_HEAD = Prepared(
    select(_c.epoch, _c.last).where(_is_thread).order_by(_c.epoch.desc(), _c.first.desc()).limit(1)
)
_STORE = Prepared(InsertNew(event_segments))
_held = select(runs.c.run_id).where(
    runs.c.run_id == bindparam("run"),
    runs.c.attempt == bindparam("held_attempt"),
    or_(runs.c.status != RUNNING_LITERAL, runs.c.claimed_by == bindparam("owner")),
)
_HELD = Prepared(_held)
_HELD_LOCKED = Prepared(_held.with_for_update(read=True))
_EXISTS = Prepared(select(threads.c.thread_id).where(threads.c.thread_id == bindparam("thread")))
_RUNNING = Prepared(
    select(runs.c.run_id).where(
        runs.c.thread_id == bindparam("thread"), runs.c.status == RUNNING_LITERAL
    )
)
_WAITING = Prepared(
    select(event_segments).where(_is_thread, _c.epoch == UNPLACED).order_by(_c.created_at, _c.first)
)
_PLACED = Prepared(
    event_segments.delete().where(
        _is_thread, _c.epoch == UNPLACED, _c.first == bindparam("unplaced")
    )
)
_DROP_RUN = Prepared(event_segments.delete().where(_is_thread, _c.run_id == bindparam("run")))
_BEFORE = Prepared(
    select(_c.epoch, _c.last)
    .where(_is_thread, _c.epoch > UNPLACED, _c.created_at < bindparam("before"))
    .order_by(_c.epoch.desc(), _c.first.desc())
    .limit(1)
)


def _after(*, of_run: bool) -> Select[tuple[object, ...]]:
    """Return the statement that reads a page of segments after a position."""
    wanted = (
        _is_thread,
        # The first condition is what the index can use.
        _c.epoch >= bindparam("epoch"),
        _c.epoch > UNPLACED,
        or_(_c.epoch > bindparam("epoch"), _c.last > bindparam("number")),
    )
    statement = select(event_segments).where(*wanted)
    if of_run:
        # A row without events stands for deleted ones of any run.
        statement = statement.where(or_(_c.run_id == bindparam("run"), _c.events.is_(None)))
    return statement.order_by(_c.epoch, _c.first).limit(PAGE)


# Retention deletes no event of a run in flight, and those of ended runs oldest first. So nothing of
# a run in flight is deleted, nor of a run that still has events before the deleted ones of another.
_HAS_ALL = Prepared(
    select(runs.c.run_id).where(
        runs.c.run_id == bindparam("id"),
        or_(
            runs.c.status.in_([PENDING_LITERAL, RUNNING_LITERAL]),
            select(_c.first)
            .where(
                _is_thread,
                _c.run_id == bindparam("run"),
                _c.events.is_not(None),
                _c.epoch > UNPLACED,
                _c.epoch <= bindparam("epoch"),
                or_(_c.epoch < bindparam("epoch"), _c.first < bindparam("number")),
            )
            .exists(),
        ),
    )
)
_AFTER = Prepared(lambda: _after(of_run=False))
_AFTER_OF_RUN = Prepared(lambda: _after(of_run=True))


class Page(NamedTuple):
    """A part of a log.

    Attributes:
        events: The events after the asked position, in order.
        position: The position after the last row that was read.
        dropped: Rows of the run or thread whose events were deleted to free space, or are damaged.
        more: Whether later rows may exist.
    """

    events: list[Event]
    position: Order
    dropped: list[Row]
    more: bool


def lock(conn: Connection, thread_id: UUID) -> None:
    """Keep others from placing events and from beginning a run on the thread until the commit."""
    if conn.locks:
        conn.send(_LOCK, {"thread": str(thread_id)})


def ask_head(conn: Connection, thread_id: UUID) -> Prefetched:
    """Ask for the position of the thread's last event, for `new_head`."""
    lock(conn, thread_id)
    return conn.prefetch(_HEAD, {"thread": thread_id})


def new_head(conn: Connection, asked: Prefetched) -> Order:
    """Return the head of a new epoch, which begins now."""
    epoch, number = _position(asked.one())
    return max(int(conn.now().timestamp() * 1000), epoch + 1), number


def head(conn: Connection, thread_id: UUID) -> Order:
    """Return the position of the thread's last stored event."""
    return _position(conn.fetchone(_HEAD, {"thread": thread_id}))


def before(conn: Connection, thread_id: UUID, moment: object) -> Order:
    """Return the position of the last event that was stored before a moment."""
    return _position(conn.fetchone(_BEFORE, {"thread": thread_id, "before": moment}))


def _position(row: Row | None) -> Order:
    if row is None or row["epoch"] <= UNPLACED:
        return BEGINNING
    return row["epoch"], row["last"]


def has_thread(conn: Connection, thread_id: UUID) -> bool:
    """Return whether the thread still exists, so that its events can be stored."""
    return conn.fetchone(_EXISTS, {"thread": thread_id}) is not None


def ask_held(conn: Connection, run_id: str, attempt: int, owner: str) -> Prefetched:
    """Ask whether no later attempt at a run has begun. On Postgres none begins before the commit."""
    values = {"run": UUID(run_id), "held_attempt": attempt, "owner": owner}
    return conn.prefetch(_HELD_LOCKED if conn.locks else _HELD, values)


def store(conn: Connection, segments: Iterable[Segment]) -> None:
    """Store segments of one thread that may be stored already."""
    now, sizes = conn.now(), []
    for row in _rows(conn, list(segments)):
        body = encryption.seal(row["tenant"], row["events"], dictionaries.place(row), conn)
        sizes.append((row["thread_id"], len(body)))
        conn.send(_STORE, {**row, "events": body, "size": len(body), "created_at": now})
    conn.after_commit(partial(usage.stored, sizes))


def _rows(conn: Connection, segments: list[Segment]) -> list[Row]:
    """Return the rows of segments of one thread, and those of new dictionaries."""
    if not any(each.is_large for each in segments):
        return [each.row for each in segments]
    thread_id = UUID(segments[0].key.thread_id)
    found = [each.compressed for each in segments if each.compressed is not None]
    new = {each.dictionary.number for each in found if each.stored_as is not None}
    needed = {d.number: d for each in found if (d := each.needs) and d.number not in new}
    asked = [(each, dictionaries.ask(conn, thread_id, each)) for each in needed.values()]
    if not all(dictionaries.is_there(each, answer) for each, answer in asked):
        # The transaction with it was rolled back, or the events that needed it were deleted.
        dictionaries.forget(thread_id)
        return [each.row for each in segments]
    return [row for each in segments for row in each.rows]


def _opened(conn: Connection, row: Row) -> list[Event]:
    return unpack({**row, "events": dictionaries.opened(conn, row)}, conn)


class Placed(NamedTuple):
    """What became of events without a writer.

    Attributes:
        events: The events with their places, also those that waited for a place.
        is_gone: Whether the thread is gone, so that nothing was stored.
        waits: Whether a run is in flight: its writer has to place the events.
    """

    events: list[Event]
    is_gone: bool = False
    waits: bool = False


def place(conn: Connection, key: StreamKey, events: Sequence[Event], *, shared: bool) -> Placed:
    """Store events of a thread that has no writer in this process.

    Args:
        key: The key of the thread.
        events: The events, whose order is replaced.
        shared: Whether other processes may write. Then events that have to wait are stored.
    """
    thread_id = UUID(key.thread_id)
    asked = ask_head(conn, thread_id)
    if conn.fetchone(_EXISTS, {"thread": thread_id}) is None:
        return Placed([], is_gone=True)
    if conn.fetchone(_RUNNING, {"thread": thread_id}) is not None:
        for event in events if shared else ():
            # Any number will do: the writer takes them by date.
            unplaced = Segment(key, [event._replace(order=(UNPLACED, uuid4().int >> 66))])
            store(conn, [unplaced])
        return Placed([], waits=True)
    waiting = take_waiting(conn, thread_id) if shared else []
    found = [*waiting, *events]
    if not found:
        return Placed([])
    epoch, number = new_head(conn, asked)
    placed = [each._replace(order=(epoch, number + i)) for i, each in enumerate(found, 1)]
    store(conn, [Segment(key, [each]) for each in placed])
    return Placed(placed)


def close(conn: Connection, key: StreamKey, events: Sequence[Event]) -> bool:
    """Store the last events of a deleted run at their own positions.

    Args:
        key: The key of the thread.
        events: The events with their positions.

    Returns:
        Whether that was possible. Not if the thread has later events, or a run that may publish
        later events.
    """
    thread_id = UUID(key.thread_id)
    asked = ask_head(conn, thread_id)
    if conn.fetchone(_EXISTS, {"thread": thread_id}) is None:
        return True
    if _position(asked.one()) >= events[0].order:
        return False
    if conn.fetchone(_RUNNING, {"thread": thread_id}) is not None:
        return False
    store(conn, cut(key, events))
    return True


def take_waiting(conn: Connection, thread_id: UUID) -> list[Event]:
    """Remove the events of a thread that wait for a place, and return them."""
    return taken(conn, prefetch_waiting(conn, thread_id))


def prefetch_waiting(conn: Connection, thread_id: UUID) -> Prefetched:
    """Find the events of a thread that wait for a place, for `taken`."""
    return conn.prefetch(_WAITING, {"thread": thread_id})


def taken(conn: Connection, waiting: Prefetched) -> list[Event]:
    """Remove the events that `prefetch_waiting` has found, and return them."""
    rows = waiting.all()
    for row in rows:
        conn.send(_PLACED, {"thread": row["thread_id"], "unplaced": row["first"]})
    return [event for row in rows for event in _opened(conn, row)]


def read(conn: Connection, key: StreamKey, after: Order) -> Page:
    """Read a page of a thread's or a run's events after a position."""
    values = {"thread": UUID(key.thread_id), "epoch": after[0], "number": after[1]}
    if key.run_id == THREAD:
        rows = conn.fetchall(_AFTER, values)
    else:
        rows = conn.fetchall(_AFTER_OF_RUN, {**values, "run": key.run_id})
    events, lost = list[Event](), list[Row]()
    for row in rows:
        if row["events"] is None:
            lost.append(row)
            continue
        try:
            events += [each for each in _opened(conn, row) if each.order > after]
        except DamagedEvents as error:
            logger.error("Events of thread %s are lost: %s", key.thread_id, error)
            lost.append(row)
    position = (rows[-1]["epoch"], rows[-1]["last"]) if rows else after
    dropped = [row for row in lost if _concerns(conn, key, row)]
    return Page(events, position, dropped, len(rows) == PAGE)


def _concerns(conn: Connection, key: StreamKey, row: Row) -> bool:
    """Return whether a row without events may stand for events of a run or thread."""
    if key.run_id in (THREAD, row["run_id"]):
        return True
    place = {"thread": row["thread_id"], "epoch": row["epoch"], "number": row["first"]}
    asked = {**place, "id": UUID(key.run_id), "run": key.run_id}
    return conn.fetchone(_HAS_ALL, asked) is None


def drop_run(conn: Connection, thread_id: UUID, run_id: str) -> None:
    """Delete the events of a run."""
    conn.send(_DROP_RUN, {"thread": thread_id, "run": run_id})
    dictionaries.free(conn, thread_id)
