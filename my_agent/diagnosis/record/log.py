"""Log: append events to a session, read them, and compute the state at any moment.

Every function works in the caller's transaction. The events of one append, their effect on the
state, and the snapshot are written together or not at all.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from my_agent.diagnosis.record import snapshots, statements
from my_agent.diagnosis.record.events import CONTENTS, Event, New, checked, dumps
from my_agent.diagnosis.record.fold import State, apply
from my_agent.diagnosis.record.snapshots import BEGINNING, EVERY, GENESIS, NEAR, Snapshot
from my_agent.diagnosis.record.tables import sessions
from my_agent.tables import insert

EVERYTHING = 2**62
PAGE = EVERY
"""Events that one statement reads."""


class Conflict(RuntimeError):
    """The session has other events than the writer expects.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.

    Attributes:
        current: the number of its last event.
        expected: the number that the writer has named.
    """

    def __init__(self, current: int, expected: int) -> None:
        super().__init__(f"The session is at event {current}, not at {expected}")
        self.current = current
        self.expected = expected


class Moment(NamedTuple):
    """A session after one of its events.

    Attributes:
        seq: the number of the last event; 0 if there is none.
        state: the state after it.
        read: how many events were read to compute it.
    """

    seq: int
    state: State
    read: int


class Head(NamedTuple):
    """The last event of a session: number, time and hash."""

    seq: int
    at: int
    hash: str


def append(
    connection: Connection,
    tenant: str,
    session: str,
    new: Sequence[New],
    *,
    expected: int | None = None,
    command: str | None = None,
    snapshot: bool = False,
    now: int | None = None,
) -> Moment:
    """Append events to a session, and return it after them.

    No events change nothing.

    Args:
        connection: a transaction that may write.
        tenant: the tenant.
        session: the id of the session.
        new: the events.
        expected: the number of the session's last event, if the writer depends on it.
        command: names this append. If the session has events of this name, nothing is written: an
            interrupted run repeats its last node.
        snapshot: whether to take a snapshot after the last event in any case.
        now: microseconds since 1970; None: the clock.

    Raises:
        Conflict: the session's last event is not `expected`.
        EventRefused: an event does not fit its type or the state.
        UnknownEvent: the session has an event that this code does not know.
    """
    events = [checked(each) for each in new]
    now = time.time_ns() // 1000 if now is None else now
    # Taken even for no events, so that `expected` is compared with what no one changes meanwhile.
    lock(connection, tenant, session)
    tip = head(connection, tenant, session)
    if expected is not None and expected != tip.seq:
        raise Conflict(tip.seq, expected)
    before = moment(connection, tenant, session)
    if not events or _is_written(connection, tenant, session, command):
        return before
    # A clock that steps back does not take the events with it.
    at = max(now, tip.at)
    state, last = before.state, tip.hash
    rows: list[dict[str, Any]] = []
    taken: list[dict[str, Any]] = []
    snapped, end = before.seq - before.read, tip.seq + len(events)
    for seq, each in enumerate(events, tip.seq + 1):
        event = _follow(session, seq, each, at, command, last)
        state, last = apply(state, event), event.hash
        rows.append(row_of(tenant, session, event))
        is_last = seq == end and (snapshot or seq - snapped > NEAR)
        if seq % EVERY == 0 or is_last:
            taken.append(snapshots.row(tenant, session, Snapshot(seq, state, last), at))
            rows[-1]["state_hash"] = snapshots.state_hash(taken[-1])
            snapped = seq
    connection.execute(statements.ADD_EVENT, rows)
    if taken:
        connection.execute(statements.ADD_SNAPSHOT, taken)
        snapshots.forget_old(connection, tenant, session)
    return Moment(end, state, before.read)


def moment(
    connection: Connection,
    tenant: str,
    session: str,
    *,
    at_seq: int | None = None,
    at: int | None = None,
) -> Moment:
    """Return a session as it is, or as it was.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the id of the session.
        at_seq: after this event, or after the last one if there are fewer.
        at: after all events until this time, in microseconds since 1970.

    Raises:
        UnknownEvent: an event has a type or version that this code does not know.
    """
    to = EVERYTHING if at_seq is None else at_seq
    until = EVERYTHING if at is None else at
    start = snapshots.latest(connection, tenant, session, to=to, at=until)
    state, read = start.state, 0
    for event in stream(connection, tenant, session, after=start.seq, to=to):
        # Times never decrease: no later event can be of that moment.
        if event.at > until:
            break
        state, read = apply(state, event), read + 1
    return Moment(start.seq + read, state, read)


def stream(
    connection: Connection, tenant: str, session: str, *, after: int = 0, to: int = EVERYTHING
) -> Iterator[Event]:
    """Yield the events after the event `after`, until the event `to`."""
    while True:
        found = page(connection, tenant, session, after=after, to=to, count=PAGE)
        yield from found
        if len(found) < PAGE:
            return
        after = found[-1].seq


def page(
    connection: Connection,
    tenant: str,
    session: str,
    *,
    after: int,
    count: int,
    to: int = EVERYTHING,
) -> list[Event]:
    """Return at most `count` events after the event `after`, until the event `to`."""
    values = {"tenant_id": tenant, "session_id": session, "after": after, "to": to, "count": count}
    rows = connection.execute(statements.RANGE, values).all()
    return [event_of(row) for row in rows]


def lock(connection: Connection, tenant: str, session: str, *, opens: bool = True) -> bool:
    """Let no one else write to this session before the transaction ends.

    On SQLite a write transaction locks the whole file already.

    Args:
        connection: a transaction that may write.
        tenant: the tenant.
        session: the session.
        opens: whether a session without events may begin.

    Returns:
        Whether there is such a session now. It is deleted with its thread.
    """
    values = {"tenant_id": tenant, "session_id": session}
    postgres = connection.dialect.name == "postgresql"
    locked = statements.LOCKED if postgres else statements.FIRST
    if connection.execute(locked, values).first() is not None:
        return True
    if not opens:
        return False
    row = snapshots.row(tenant, session, BEGINNING, 0)
    connection.execute(insert(connection, sessions).values(row).on_conflict_do_nothing())
    if postgres:
        connection.execute(locked, values)
    return True


def head(connection: Connection, tenant: str, session: str) -> Head:
    """Return the last event of a session; of one without events, what the first follows."""
    values = {"tenant_id": tenant, "session_id": session}
    found = connection.execute(statements.HEAD, values).first()
    return Head(0, 0, GENESIS) if found is None else Head(*found)


def last_seq(connection: Connection, tenant: str, session: str) -> int:
    """Return the number of a session's last event; 0 if there is none."""
    return head(connection, tenant, session).seq


def row_of(tenant: str, session: str, event: Event) -> dict[str, Any]:
    """Return the row of an event, without the hash of a state."""
    row = {**event._asdict(), "data": dumps(event.data), "state_hash": None}
    return {"tenant_id": tenant, "session_id": session, **row}


def event_of(row: Any) -> Event:
    """Return the event of a row that a statement has read."""
    seq, kind, version, data, at, command, previous, made = row
    return Event(seq, kind, version, json.loads(data), at, command, previous, made)


def event_hash(session: str, event: Event) -> str:
    """Return the hash of an event and of everything before it."""
    content = [session, *event[:6], event.previous]
    return hashlib.sha256(dumps(content).encode()).hexdigest()


def _follow(
    session: str, seq: int, each: New, at: int, command: str | None, previous: str
) -> Event:
    version = CONTENTS[each.type].VERSION
    event = Event(seq, each.type, version, each.data, at, command, previous, "")
    return event._replace(hash=event_hash(session, event))


def _is_written(connection: Connection, tenant: str, session: str, command: str | None) -> bool:
    if command is None:
        return False
    values = {"tenant_id": tenant, "session_id": session, "command": command}
    return connection.execute(statements.WRITTEN, values).first() is not None
