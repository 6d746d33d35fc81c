"""Verify: rebuild a session from its events, and compare it with what is stored."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from my_agent.diagnosis.record import log, snapshots, statements, texts
from my_agent.diagnosis.record.events import Event, EventRefused
from my_agent.diagnosis.record.fold import State, apply, initial
from my_agent.diagnosis.record.snapshots import GENESIS
from my_agent.diagnosis.record.upcasting import UnknownEvent, current


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
    """Replay all events of a session, check each link of the chain, and compare what is stored.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the id of the session.
        live: another state to compare with, such as that of the graph. It may be older than the
            last event.
    """
    return _Replay(connection, tenant, session, live).verdict()


class _Replay:
    """The replay of one session. The arguments are those of `verify`."""

    def __init__(
        self, connection: Connection, tenant: str, session: str, live: State | None
    ) -> None:
        self._connection, self._tenant, self._session = connection, tenant, session
        self._live = live
        self._state, self._previous, self._seq = initial(), GENESIS, 0
        self._sources: list[Mapping[str, Any]] = []
        # States that something else is compared with, by their events.
        self._kept: dict[int, State] = {}

    def verdict(self) -> Verdict:
        """Replay the events, and then compare the snapshots, the texts and the live state."""
        values = {"tenant_id": self._tenant, "session_id": self._session, "to": log.EVERYTHING}
        told = map(log.event_of, self._connection.execute(statements.TOLD, values).all())
        wanted = {each.data.get("seq") for each in told if each.type == "session_branched"}
        wanted.add((self._live or {}).get("seq"))
        numbers = set(snapshots.numbers(self._connection, self._tenant, self._session))
        for event in log.stream(self._connection, self._tenant, self._session):
            if (broken := self._broken(event)) is not None:
                return Verdict(self._seq, False, "broken", broken)
            try:
                wrong = self._apply(event)
            except (EventRefused, UnknownEvent, KeyError) as error:
                wrong = _difference(f"event {event.seq}", event.type, str(error))
            if wrong is None and event.seq in numbers:
                wrong = self._other_snapshot(event.seq)
            if wrong is not None:
                return Verdict(self._seq, False, "whole", wrong)
            self._previous, self._seq = event.hash, event.seq
            if event.seq in wanted:
                self._kept[event.seq] = self._state
        found = self._other_state() or self._other_text()
        return Verdict(self._seq, found is None, "whole", found)

    def _broken(self, event: Event) -> dict[str, Any] | None:
        place = f"event {self._seq + 1}"
        if event.seq != self._seq + 1:
            return _difference(place, event.seq, "a gap")
        made = log.event_hash(self._session, event)
        if event.previous != self._previous or event.hash != made:
            return _difference(place, event.hash, made)
        return None

    def _apply(self, event: Event) -> dict[str, Any] | None:
        """Apply an event, and return a difference of what it says from what was before it."""
        data = current(event.type, event.version, event.data)
        self._state = apply(self._state, event)
        if event.type == "source_added":
            self._sources.append(data)
        if event.type != "session_branched":
            return None
        place = f"event {event.seq}"
        if data["state"] is not None:
            return first_difference(data["state"], self._kept.get(data["seq"], initial()), place)
        # The events before it are copies of those until that event.
        before = event.seq - 1
        return None if data["seq"] == before else _difference(f"{place}.seq", data["seq"], before)

    def _other_snapshot(self, seq: int) -> dict[str, Any] | None:
        stored = snapshots.stored(self._connection, self._tenant, self._session, seq)
        return first_difference(stored, self._state, f"snapshot {seq}")

    def _other_state(self) -> dict[str, Any] | None:
        stored = log.moment(self._connection, self._tenant, self._session).state
        if (found := first_difference(stored, self._state)) is not None or not self._live:
            return found
        then = self._kept.get(self._live.get("seq", 0), initial())
        return first_difference(self._live, then, "graph")

    def _other_text(self) -> dict[str, Any] | None:
        """Return the first source whose text is not the one that its event names."""
        for data in self._sources:
            # The text of an older event is in the chain itself.
            if data["text"]:
                continue
            parts = texts.stream(self._connection, self._tenant, self._session, data["id"])
            found = texts.measure(parts)
            if found.sha256 != data["sha256"]:
                return _difference(f"text {data['id']}", found.sha256, data["sha256"])
        return None


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
