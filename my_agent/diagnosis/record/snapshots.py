"""Snapshots: the state of a session after an event, so that reading it needs few events.

A snapshot is taken after each node, after each `EVERY`th event, and where many events follow the
last one. Those of each `EVERY`th event stay: a state of any moment is near one of them. Of the
others, the newest `KEPT` stay. A snapshot is never the truth: a damaged one is skipped, and so is a
forged one. The event, which never changes, has the hash of the state after it.
"""

import hashlib
import json
import logging
from typing import Any, NamedTuple

from sqlalchemy import Connection

from my_agent.diagnosis.record import signing, statements
from my_agent.diagnosis.record.fold import FOLD, State, initial

logger = logging.getLogger(__name__)

EVERY = 250
NEAR = 50
"""A snapshot is taken if more events than this follow the last one."""
KEPT = 2
GENESIS = "0" * 64
"""Hash of the event before the first."""


class Snapshot(NamedTuple):
    """The state after the event `seq`, whose hash is `event_hash`."""

    seq: int
    state: State
    event_hash: str


BEGINNING = Snapshot(0, initial(), GENESIS)


def latest(connection: Connection, tenant: str, session: str, *, to: int, at: int) -> Snapshot:
    """Return the newest good snapshot at or before an event and a time, or `BEGINNING`.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the session.
        to: the number of the event.
        at: the time, in microseconds since 1970.
    """
    below = to + 1
    while True:
        values = {"tenant_id": tenant, "session_id": session, "below": below, "at": at}
        row = connection.execute(statements.SNAPSHOT, {**values, "fold": FOLD}).first()
        if row is None or row.seq == 0:
            return BEGINNING
        if _is_good(session, row):
            return Snapshot(row.seq, json.loads(row.state), row.event_hash)
        # The events are read instead: such a snapshot costs time and no data.
        logger.warning("Snapshot damaged or forged", extra={"session": session, "seq": row.seq})
        below = row.seq


def row(tenant: str, session: str, taken: Snapshot, at: int) -> dict[str, Any]:
    """Return the row of a snapshot.

    Args:
        tenant: the tenant.
        session: the session.
        taken: what to store.
        at: the time of its event, in microseconds since 1970.
    """
    # In the order of the state, which decides between equals. Events are sorted, states are not.
    text = json.dumps(taken.state, separators=(",", ":"))
    return {
        "tenant_id": tenant,
        "session_id": session,
        "seq": taken.seq,
        "fold": FOLD,
        "state": text,
        "event_hash": taken.event_hash,
        "checksum": checksum(session, taken.seq, FOLD, taken.event_hash, text),
        "at": at,
    }


def forget_old(connection: Connection, tenant: str, session: str) -> None:
    """Delete the snapshots between those of each `EVERY`th event, except the newest `KEPT`."""
    values = {"tenant_id": tenant, "session_id": session}
    found = connection.execute(statements.KEPT, {**values, "every": EVERY}).scalars().all()
    for seq in found[KEPT:]:
        connection.execute(statements.FORGET, {**values, "gone": seq})


def numbers(connection: Connection, tenant: str, session: str) -> list[int]:
    """Return the events after which there are snapshots of this fold, good or not."""
    values = {"tenant_id": tenant, "session_id": session, "fold": FOLD}
    return list(connection.execute(statements.SNAPSHOTS, values).scalars())


def stored(connection: Connection, tenant: str, session: str, seq: int) -> State | None:
    """Return the state that the snapshot after an event has, good or not; None: it is no JSON."""
    values = {"tenant_id": tenant, "session_id": session, "fold": FOLD, "at_seq": seq}
    row = connection.execute(statements.SNAPSHOT_AT, values).first()
    try:
        found: State | None = None if row is None else json.loads(row.state)
    except ValueError:
        return None
    return found


def checksum(session: str, seq: int, fold: int, event_hash: str, state: str) -> str:
    """Return the checksum of a snapshot's row."""
    return signing.signed(_content(session, seq, fold, event_hash, state))


def state_hash(made: dict[str, Any]) -> str:
    """Return the hash of the state in a snapshot's row, which its event keeps."""
    return _state_hash(made["fold"], made["state"])


def _is_good(session: str, row: Any) -> bool:
    content = _content(session, row.seq, row.fold, row.event_hash, row.state)
    is_known = row.state_hash == _state_hash(row.fold, row.state) and row.hash == row.event_hash
    return is_known and signing.is_signed(content, row.checksum)


def _content(session: str, seq: int, fold: int, event_hash: str, state: str) -> str:
    return f"{session} {seq} {fold} {event_hash} {state}"


def _state_hash(fold: int, state: str) -> str:
    return hashlib.sha256(f"{fold} {state}".encode()).hexdigest()
