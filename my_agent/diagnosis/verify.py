"""Verify: rebuild a session from its events, and compare it with what is stored."""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from my_agent.diagnosis import log
from my_agent.diagnosis.events import EventRefused
from my_agent.diagnosis.fold import State, apply, initial
from my_agent.diagnosis.snapshots import GENESIS
from my_agent.diagnosis.upcasting import UnknownEvent


class Verdict(NamedTuple):
    """What a full replay found.

    Attributes:
        seq: the number of the last event that was replayed.
        equal: whether the rebuilt state equals the stored one, and the chain is whole.
        chain: `whole`, or `broken`.
        difference: the first difference: `where`, `stored` and `rebuilt`; None if there is none.
    """

    seq: int
    equal: bool
    chain: str
    difference: dict[str, Any] | None


def verify(connection: Connection, tenant: str, session: str, live: State | None) -> Verdict:
    """Replay all events of a session, check each link of the chain, and compare the states.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the id of the session.
        live: another state to compare with, such as that of the graph. It may be older than the
            last event.
    """
    state, previous, seq, then = initial(), GENESIS, 0, None
    for event in log.stream(connection, tenant, session):
        place = f"event {seq + 1}"
        if event.seq != seq + 1:
            return Verdict(seq, False, "broken", _difference(place, event.seq, "a gap"))
        made = log.event_hash(session, event)
        if event.previous != previous or event.hash != made:
            return Verdict(seq, False, "broken", _difference(place, event.hash, made))
        try:
            state = apply(state, event)
        except (EventRefused, UnknownEvent, KeyError) as error:
            return Verdict(seq, False, "whole", _difference(place, event.type, str(error)))
        previous, seq = event.hash, event.seq
        if live is not None and live.get("seq") == seq:
            then = state
    # A snapshot whose content was replaced together with its checksum shows here.
    stored = log.moment(connection, tenant, session).state
    found = first_difference(stored, state)
    if found is None and live:
        found = first_difference(live, then if then is not None else initial(), "graph")
    return Verdict(seq, found is None, "whole", found)


def first_difference(stored: Any, rebuilt: Any, where: str = "state") -> dict[str, Any] | None:
    """Return the first place where two JSON values differ, or None."""
    if isinstance(stored, dict) and isinstance(rebuilt, dict):
        for key in sorted({*stored, *rebuilt}):
            if key not in stored or key not in rebuilt:
                return _difference(f"{where}.{key}", stored.get(key), rebuilt.get(key))
            if (found := first_difference(stored[key], rebuilt[key], f"{where}.{key}")) is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(rebuilt, list) and len(stored) == len(rebuilt):
        for number, (one, other) in enumerate(zip(stored, rebuilt, strict=True)):
            if (found := first_difference(one, other, f"{where}[{number}]")) is not None:
                return found
        return None
    same = type(stored) is type(rebuilt) and stored == rebuilt
    return None if same else _difference(where, stored, rebuilt)


def _difference(where: str, stored: Any, rebuilt: Any) -> dict[str, Any]:
    return {"where": where, "stored": stored, "rebuilt": rebuilt}
