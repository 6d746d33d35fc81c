"""Log: the stored events of threads, in segments.

A thread has one writer at a time: the process that executes its run. Events of other processes (the
end of a run that waits, for instance) get a place at once if no run is in flight. Otherwise they
wait with epoch 0, and the writer places them.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, or_, select
from sqlalchemy.sql import Select

from langgraph_runtime_sql.database.connection import Asked, Connection
from langgraph_runtime_sql.database.schema import RUNNING_LITERAL, event_segments, runs, threads
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.events.event import Event, Order
from langgraph_runtime_sql.events.segment import Segment, unpack
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.usage import usage

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


_AFTER = Prepared(lambda: _after(of_run=False))
_AFTER_OF_RUN = Prepared(lambda: _after(of_run=True))


class Page(NamedTuple):
    """A part of a log.

    Attributes:
        events: The events after the asked position, in order.
        position: The position after the last row that was read.
        dropped: Rows whose events were deleted, to free space.
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


def ask_head(conn: Connection, thread_id: UUID) -> Asked:
    """Ask for the position of the thread's last event, for `new_head`."""
    lock(conn, thread_id)
    return conn.ask(_HEAD, {"thread": thread_id})


def new_head(conn: Connection, asked: Asked) -> Order:
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
    if row is None or row["epoch"] == UNPLACED:
        return BEGINNING
    return row["epoch"], row["last"]


def ask_held(conn: Connection, run_id: str, attempt: int, owner: str) -> Asked:
    """Ask whether no later attempt at a run has begun. On Postgres none begins before the commit."""
    values = {"run": UUID(run_id), "held_attempt": attempt, "owner": owner}
    return conn.ask(_HELD_LOCKED if conn.locks else _HELD, values)


def store(conn: Connection, segments: Iterable[Segment]) -> None:
    """Store segments that may be stored already."""
    now, rows = conn.now(), [each.row for each in segments]
    for row in rows:
        conn.send(_STORE, {**row, "created_at": now})
    conn.after_commit(partial(usage.stored, [(row["thread_id"], row["size"]) for row in rows]))


def place(
    conn: Connection, key: StreamKey, events: Sequence[Event], *, shared: bool
) -> list[Event]:
    """Store events of a thread that has no writer in this process.

    Args:
        key: The key of the thread.
        events: The events, whose order is replaced.
        shared: Whether other processes may write.

    Returns:
        The events with their places, also those that waited for a place. Empty if the thread is
        gone, or if another process executes a run of the thread: its writer will place the events.
    """
    thread_id = UUID(key.thread_id)
    asked = ask_head(conn, thread_id)
    if conn.fetchone(_EXISTS, {"thread": thread_id}) is None:
        return []
    if shared and conn.fetchone(_RUNNING, {"thread": thread_id}) is not None:
        for event in events:
            # Any number will do: the writer takes them by date.
            unplaced = Segment(key, [event._replace(order=(UNPLACED, uuid4().int >> 66))])
            store(conn, [unplaced])
        return []
    waiting = take_waiting(conn, thread_id) if shared else []
    found = [*waiting, *events]
    if not found:
        return []
    epoch, number = new_head(conn, asked)
    placed = [each._replace(order=(epoch, number + i)) for i, each in enumerate(found, 1)]
    store(conn, [Segment(key, [each]) for each in placed])
    return placed


def take_waiting(conn: Connection, thread_id: UUID) -> list[Event]:
    """Remove the events of a thread that wait for a place, and return them."""
    rows = conn.fetchall(_WAITING, {"thread": thread_id})
    for row in rows:
        conn.send(_PLACED, {"thread": thread_id, "unplaced": row["first"]})
    return [event for row in rows for event in unpack(row)]


def read(conn: Connection, key: StreamKey, after: Order) -> Page:
    """Read a page of a thread's or a run's events after a position."""
    values = {"thread": UUID(key.thread_id), "epoch": after[0], "number": after[1]}
    if key.run_id == THREAD:
        rows = conn.fetchall(_AFTER, values)
    else:
        rows = conn.fetchall(_AFTER_OF_RUN, {**values, "run": key.run_id})
    kept = [row for row in rows if row["events"] is not None]
    events = [each for row in kept for each in unpack(row) if each.order > after]
    position = (rows[-1]["epoch"], rows[-1]["last"]) if rows else after
    return Page(events, position, [r for r in rows if r["events"] is None], len(rows) == PAGE)


def drop_run(conn: Connection, thread_id: UUID, run_id: str) -> None:
    """Delete the events of a run."""
    conn.send(_DROP_RUN, {"thread": thread_id, "run": run_id})
