"""Branching: sessions that go on from an earlier moment, of themselves or of another session.

A new session begins with copies of the events of the other one. A session that goes back to a moment
of its own keeps what came after it, and says so with an event that has the state of that moment.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from my_agent.diagnosis.record import log, snapshots, statements, texts
from my_agent.diagnosis.record.events import Event, SessionBranched, new
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.record.log import Conflict, Moment
from my_agent.diagnosis.record.snapshots import EVERY, GENESIS, Snapshot
from my_agent.diagnosis.record.upcasting import current
from threadhold.tables import Transactions


class NoSuchMoment(RuntimeError):
    """The session has no such event, or is deleted. The message says which.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class Said(NamedTuple):
    """A message that was part of the conversation at a moment, shortened as its event is.

    Attributes:
        id: the id of the message.
        role: `user` or `assistant`.
        text: the words.
    """

    id: str
    role: str
    text: str


def branch(
    connection: Connection,
    tenant: str,
    origin: str,
    seq: int,
    into: str,
    *,
    hash: str | None = None,
) -> Moment:
    """Begin the session `into` with the events of `origin` until the event `seq`, and return it.

    The events keep their numbers, contents, times and commands, and get a chain of their own.
    The last one says where they come from. The texts and digests of their sources are copied.

    Args:
        connection: a transaction that may write.
        tenant: the tenant of both.
        origin: the session to copy, which nothing changes.
        seq: the number of the last event to copy, at least 1.
        into: the new session.
        hash: the hash of that event, if the writer depends on it.

    Raises:
        Conflict: the session `into` has events already.
        NoSuchMoment: `origin` has no such event, or was deleted meanwhile.
        UnknownEvent: an event has a type or version that this code does not know.
    """
    log.lock(connection, tenant, into)
    if (begun := log.last_seq(connection, tenant, into)) > 0:
        raise Conflict(begun, 0)
    last = log.page(connection, tenant, origin, after=seq - 1, to=seq, count=1) if seq > 0 else []
    if not last or (hash is not None and last[0].hash != hash):
        raise NoSuchMoment(f"The session has no such event {seq}")
    state = log.moment(connection, tenant, origin, at_seq=seq).state
    copied = _Copied(connection, tenant, origin, into)
    copied.events(seq, state)
    copied.texts()
    event = new(SessionBranched(origin=origin, seq=seq))
    # At the time of the copy, so that its events stay in order.
    return log.append(connection, tenant, into, [event], expected=seq, snapshot=True)


async def copy_texts(
    transactions: Transactions, tenant: str, origin: str, seq: int, into: str
) -> None:
    """Copy the texts of a session before `branch`, each in a transaction of its own.

    So a large session does not hold up other writers. Until the events name them, the texts belong to
    no source, and they go with the thread of `into`.

    Args:
        transactions: those of the tables.
        tenant, origin, seq, into: as of `branch`.
    """

    def named(connection: Connection) -> list[str]:
        state = log.moment(connection, tenant, origin, at_seq=seq).state
        known = set(texts.ids(connection, tenant, into))
        return [each for each in state["sources"] if each not in known]

    for source in await transactions.run(named, tenant):
        copied = partial(texts.copy, tenant=tenant, origin=origin, into=into, source=source)
        await transactions.run(copied, tenant, write=True)


def place(connection: Connection, tenant: str, session: str) -> dict[str, Any]:
    """Return the last event of a session as a thread's state keeps it: for `resume`."""
    tip = log.head(connection, tenant, session)
    return {"session_id": session, "seq": tip.seq, "hash": tip.hash}


def known(connection: Connection, tenant: str, place: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the session and the event of a `place`, if the event has the hash that it names.

    A client may have written the place: without the hash, it would name any session of the tenant.
    """
    session, seq = place.get("session_id"), place.get("seq")
    if not isinstance(session, str) or not isinstance(seq, int) or not 0 < seq < log.EVERYTHING:
        return None
    found = log.page(connection, tenant, session, after=seq - 1, to=seq, count=1)
    return (session, seq) if found and found[0].hash == place.get("hash") else None


def resume(
    connection: Connection, tenant: str, session: str, place: Mapping[str, Any], task: str | None
) -> Moment:
    """Return a session as a run knows it, and let it go on from there.

    A session without events begins with the events of the session that its thread was copied from.
    A session whose later events another run has written goes back. Notes of people and uploaded
    sources, which no run writes, are no other path.

    Args:
        connection: a transaction that may write.
        tenant: the tenant.
        session: the session of the run's thread.
        place: where the state was that the run starts from. A client may have written it.
        task: the task of the node, which may be repeated after a crash.

    Raises:
        UnknownEvent: an event has a type or version that this code does not know.
    """
    log.lock(connection, tenant, session)
    found, seq = place.get("session_id"), place.get("seq")
    if isinstance(found, str) and isinstance(seq, int) and 0 < seq < log.EVERYTHING:
        if found != session and log.last_seq(connection, tenant, session) == 0:
            return _taken_over(connection, tenant, session, found, seq, str(place.get("hash")))
        if found == session or seq <= _copied(connection, tenant, session, found):
            return _gone_back(connection, tenant, session, seq, task)
    return log.moment(connection, tenant, session)


def _taken_over(
    connection: Connection, tenant: str, session: str, origin: str, seq: int, hash: str
) -> Moment:
    try:
        # A savepoint: of a copy that fails, nothing stays.
        with connection.begin_nested():
            return branch(connection, tenant, origin, seq, session, hash=hash)
    except NoSuchMoment:
        return log.moment(connection, tenant, session)


def _gone_back(
    connection: Connection, tenant: str, session: str, seq: int, task: str | None
) -> Moment:
    """Go back to the event `seq` if another run has written events after it."""
    values = {"tenant_id": tenant, "session_id": session, "after": seq}
    writers = set(connection.execute(statements.WRITERS, values).scalars())
    # A node appends several times, each with the number of the time behind its task.
    own = task is not None and any(task in each.split() for each in writers)
    if not writers or own:
        return log.moment(connection, tenant, session)
    state = log.moment(connection, tenant, session, at_seq=seq).state
    event = new(SessionBranched(origin=session, seq=seq, state=state))
    name = None if task is None else f"branch {task}"
    return log.append(connection, tenant, session, [event], command=name, snapshot=True)


def _copied(connection: Connection, tenant: str, session: str, origin: str) -> int:
    """Return how many events of a session are copies of those of `origin`; 0 if it is no copy."""
    events = _told(connection, tenant, session, log.EVERYTHING)
    copies = [each.data for each in events if each.type == "session_branched"]
    return max(
        (each["seq"] for each in copies if each["state"] is None and each["origin"] == origin),
        default=0,
    )


def conversation(
    connection: Connection, tenant: str, session: str, seq: int, most: int
) -> list[Said]:
    """Return the newest messages of a session until an event, without those of paths it left.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the session.
        seq: the event.
        most: how many messages at most.
    """
    said: list[tuple[int, Said]] = []
    for event in _told(connection, tenant, session, seq):
        data = current(event.type, event.version, event.data)
        if event.type == "message_added":
            said.append((event.seq, Said(data["id"], data["role"], data["text"])))
        elif data["state"] is not None:
            said = [each for each in said if each[0] <= data["seq"]]
    # A message that was sent again replaced the first one.
    found = {each.id: each for _, each in said}
    return list(found.values())[-most:]


def _told(connection: Connection, tenant: str, session: str, seq: int) -> Iterable[Event]:
    values = {"tenant_id": tenant, "session_id": session, "to": seq}
    return [log.event_of(row) for row in connection.execute(statements.TOLD, values).all()]


class _Copied:
    """The copy of a session.

    Args:
        connection: the transaction.
        tenant: the tenant.
        origin: the session to copy.
        into: the new session.
    """

    def __init__(self, connection: Connection, tenant: str, origin: str, into: str) -> None:
        self._connection, self._tenant = connection, tenant
        self._origin, self._into = origin, into
        # A source that was given again on another path counts once.
        self._sources: dict[str, None] = {}

    def events(self, seq: int, state: State) -> None:
        """Copy the events until `seq`, whose state is given, and the snapshots that stay."""
        previous, copied = GENESIS, 0
        while copied < seq:
            found = log.page(
                self._connection, self._tenant, self._origin, after=copied, to=seq, count=log.PAGE
            )
            if [each.seq for each in found] != list(range(copied + 1, copied + 1 + len(found))):
                raise NoSuchMoment(f"The session has a gap after event {copied}")
            if not found:
                raise NoSuchMoment("The session was deleted")
            rows, taken = [], []
            for each in found:
                event = each._replace(previous=previous, hash="")
                event = event._replace(hash=log.event_hash(self._into, event))
                rows.append(log.row_of(self._tenant, self._into, event))
                previous, copied = event.hash, event.seq
                self._note(event)
                if (known := self._state(event.seq, seq, state)) is not None:
                    kept = Snapshot(event.seq, known, event.hash)
                    taken.append(snapshots.row(self._tenant, self._into, kept, event.at))
                    rows[-1]["state_hash"] = snapshots.state_hash(taken[-1])
            self._connection.execute(statements.ADD_EVENT, rows)
            if taken:
                self._connection.execute(statements.ADD_SNAPSHOT, taken)

    def texts(self) -> None:
        """Copy the texts and digests of the sources."""
        for source in self._sources:
            if not texts.copy(self._connection, self._tenant, self._origin, self._into, source):
                raise NoSuchMoment(f"The text of the source {source} is gone")

    def _note(self, event: Event) -> None:
        data: dict[str, Any] = event.data
        # Older events have their text themselves.
        if event.type == "source_added" and "text" in data and not data["text"]:
            self._sources[data["id"]] = None

    def _state(self, seq: int, last: int, state: State) -> State | None:
        """Return the state after an event if it is to have a snapshot and is known."""
        if seq == last:
            return state
        if seq % EVERY:
            return None
        found = snapshots.latest(
            self._connection, self._tenant, self._origin, to=seq, at=log.EVERYTHING
        )
        return found.state if found.seq == seq else None
