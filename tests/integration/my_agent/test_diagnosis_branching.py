"""Branches of a diagnosis in both databases: whole copies, and sessions that go back."""

from uuid import uuid4

import pytest
from sqlalchemy import insert, text

from my_agent.diagnosis.reading.digest import Digest
from my_agent.diagnosis.record import branching, log, texts
from my_agent.diagnosis.record.branching import NoSuchMoment
from my_agent.diagnosis.record.diff import diff
from my_agent.diagnosis.record.events import Event, MessageAdded, New, SessionBranched, new
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.record.log import Conflict, Moment
from my_agent.diagnosis.record.snapshots import EVERY
from my_agent.diagnosis.record.tables import events as table
from my_agent.diagnosis.record.verify import Verdict, verify
from tests.support.diagnosis import TEXT, evidence, note, opened, result, source
from tests.support.products import engine
from threadhold.tables import Engine

pytestmark = pytest.mark.usefixtures("each_database")

TENANT = "acme"
LONG = "a line of a log\n" * 40_000


@pytest.fixture(scope="module")
def store(product_database: str) -> Engine:
    return engine()


@pytest.fixture
def session(store: Engine) -> str:
    """A session of eight events: the last source comes after the result of a test."""
    name = uuid4().hex
    append(store, name, *opened(), evidence(), result(), command="task 1")
    append(store, name, source("s2", LONG), command="task 2")
    return name


def append(store: Engine, session: str, *new: New, command: str | None = None) -> Moment:
    known = {"s1": TEXT, "s2": LONG}
    with store.writing(TENANT) as connection:
        for each in new:
            if each.type == "source_added":
                given = known[each.data["id"]]
                texts.write(connection, TENANT, session, each.data["id"], given)
        return log.append(connection, TENANT, session, new, command=command)


def branch(store: Engine, origin: str, seq: int, tenant: str = TENANT, **more: str) -> str:
    into = uuid4().hex
    with store.writing(tenant) as connection:
        branching.branch(connection, tenant, origin, seq, into, **more)
    return into


def now(store: Engine, session: str, **when: int) -> State:
    with store.reading(TENANT) as connection:
        return log.moment(connection, TENANT, session, **when).state


def events(store: Engine, session: str) -> list[Event]:
    with store.reading(TENANT) as connection:
        return list(log.stream(connection, TENANT, session))


def verdict(store: Engine, session: str) -> Verdict:
    with store.reading(TENANT) as connection:
        return verify(connection, TENANT, session, None)


def resume(
    store: Engine, session: str, known: dict[str, object], task: str | None = None
) -> Moment:
    with store.writing(TENANT) as connection:
        return branching.resume(connection, TENANT, session, known, task)


def place(store: Engine, session: str) -> dict[str, object]:
    with store.reading(TENANT) as connection:
        return branching.place(connection, TENANT, session)


def without_place(state: State) -> State:
    """Return what a branch has in common with its origin."""
    return {name: state[name] for name in state if name not in ("seq", "at", "counts", "timeline")}


# --- copies --------------------------------------------------------------------------------------


def test_branch_has_the_events_until_its_moment_and_its_own_chain(
    store: Engine, session: str
) -> None:
    before = events(store, session)
    into = branch(store, session, 7)
    copied = events(store, into)
    assert [each[:6] for each in copied[:7]] == [each[:6] for each in before[:7]]
    assert {each.hash for each in copied}.isdisjoint(each.hash for each in before)
    assert copied[7].type == "session_branched"
    assert copied[7].data == {"origin": session, "seq": 7, "state": None}
    assert without_place(now(store, into)) == without_place(now(store, session, at_seq=7))
    assert verdict(store, into).equal
    # The origin stays as it was, and both go on for themselves.
    append(store, into, note("in the branch"))
    assert events(store, session) == before
    assert now(store, session)["notes"] == []
    assert verdict(store, into).equal
    assert verdict(store, session).equal


def test_branch_has_the_texts_and_digests_of_its_sources_alone(store: Engine, session: str) -> None:
    with store.writing(TENANT) as connection:
        for name in ("s1", "s2"):
            texts.keep_digest(connection, TENANT, session, name, 1, Digest(lines=7))
    early, late = branch(store, session, 7), branch(store, session, 8)
    with store.reading(TENANT) as connection:
        assert texts.ids(connection, TENANT, early) == ["s1"]
        assert texts.ids(connection, TENANT, late) == ["s1", "s2"]
        assert "".join(texts.stream(connection, TENANT, late, "s2")) == LONG
        assert texts.digest(connection, TENANT, late, "s2", 1) == Digest(lines=7)
        assert texts.digest(connection, TENANT, early, "s2", 1) is None
    assert verdict(store, late).equal


def test_branch_of_a_branch_is_whole(store: Engine, session: str) -> None:
    first = branch(store, session, 8)
    append(store, first, note("one"), note("two"))
    second = branch(store, first, 10)
    assert [each.type for each in events(store, second)[7:]] == [
        "source_added",
        "session_branched",
        "note_added",
        "session_branched",
    ]
    assert [each["text"] for each in now(store, second)["notes"]] == ["one"]
    assert verdict(store, second).equal
    with store.reading(TENANT) as connection:
        assert "".join(texts.stream(connection, TENANT, second, "s2")) == LONG


def test_past_of_a_long_branch_is_near_a_snapshot(store: Engine) -> None:
    long = uuid4().hex
    append(store, long, *opened(), *[note(str(each)) for each in range(1000)])
    into = branch(store, long, 999)
    for seq in (1, 250, 600, 999):
        with store.reading(TENANT) as connection:
            found = log.moment(connection, TENANT, into, at_seq=seq)
        assert found.read <= EVERY
        assert found.state == now(store, long, at_seq=seq)
    with store.reading(TENANT) as connection:
        assert log.moment(connection, TENANT, into).read == 0
    assert verdict(store, into).equal


@pytest.mark.parametrize("seq", [-1, 0, 9, 10**12])
def test_moment_that_does_not_exist_is_refused(store: Engine, session: str, seq: int) -> None:
    with pytest.raises(NoSuchMoment, match=str(seq)):
        branch(store, session, seq)


def test_other_hash_another_tenant_and_a_session_with_events_are_refused(
    store: Engine, session: str
) -> None:
    right = events(store, session)[6].hash
    with pytest.raises(NoSuchMoment):
        branch(store, session, 7, hash="0" * 64)
    assert events(store, branch(store, session, 7, hash=right))
    with pytest.raises(NoSuchMoment):
        branch(store, session, 7, tenant="globex", hash=right)
    with pytest.raises(Conflict), store.writing(TENANT) as connection:
        branching.branch(connection, TENANT, session, 7, session)


def test_failed_copy_leaves_nothing(store: Engine) -> None:
    # An event that names a text which is gone.
    broken = uuid4().hex
    with store.writing(TENANT) as connection:
        log.append(connection, TENANT, broken, opened())
    into = uuid4().hex
    with pytest.raises(NoSuchMoment, match="s1"), store.writing(TENANT) as connection:
        branching.branch(connection, TENANT, broken, 5, into)
    assert events(store, into) == []
    # In a run, too, which goes on with an empty session.
    assert resume(store, into, place(store, broken)).seq == 0
    assert events(store, into) == []
    assert append(store, into, note()).seq == 1


# --- copied threads, and runs from earlier checkpoints -------------------------------------------


def test_copied_thread_takes_over_the_session_once(store: Engine, session: str) -> None:
    known, into = place(store, session), uuid4().hex
    assert known == {"session_id": session, "seq": 8, "hash": events(store, session)[-1].hash}
    found = resume(store, into, known, "task 9")
    assert found.seq == 9
    assert without_place(found.state) == without_place(now(store, session))
    assert resume(store, into, known, "task 9") == found._replace(read=0)
    append(store, into, note(), command="task 9")
    assert resume(store, into, place(store, into), "task 10").seq == 10
    assert verdict(store, into).equal


@pytest.mark.parametrize(
    "wrong",
    [
        {"hash": "0" * 64},
        {"seq": 99},
        {"seq": -1},
        {"seq": 2**70},
        {"seq": "8"},
        {"session_id": "nowhere"},
        {"session_id": 5},
        {"hash": None},
    ],
    ids=str,
)
def test_place_that_a_client_has_made_up_copies_nothing(
    store: Engine, session: str, wrong: dict[str, object]
) -> None:
    assert resume(store, uuid4().hex, {**place(store, session), **wrong}).seq == 0


def test_another_tenants_session_is_not_taken_over(store: Engine, session: str) -> None:
    with store.writing("globex") as connection:
        known = place(store, session)
        assert branching.resume(connection, "globex", "theirs", known, None).seq == 0


def test_run_from_an_earlier_checkpoint_goes_back(store: Engine, session: str) -> None:
    known = {"session_id": session, "seq": 7, "hash": events(store, session)[6].hash}
    found = resume(store, session, known, "task 3")
    assert found.seq == 9
    assert list(found.state["sources"]) == ["s1"]
    last = events(store, session)[-1]
    assert (last.data["origin"], last.data["seq"]) == (session, 7)
    # A repeated node finds that it has gone back, and the path that was left can be taken again.
    assert resume(store, session, known, "task 3").seq == 9
    append(store, session, source("s2", LONG), command="task 3")
    again = {"session_id": session, "seq": 8, "hash": ""}
    assert list(resume(store, session, again, "task 4").state["sources"]) == ["s1", "s2"]
    assert verdict(store, session).equal
    # A branch of it has the same path, and so has the copy of a thread.
    into = branch(store, session, 10)
    assert verdict(store, into).equal
    back = resume(store, into, {"session_id": session, "seq": 7, "hash": ""}, "task 5")
    assert list(back.state["sources"]) == ["s1"]
    assert verdict(store, into).equal


def test_notes_and_uploads_of_people_are_no_other_path(store: Engine, session: str) -> None:
    known = place(store, session)
    append(store, session, note("I restarted it"))
    assert resume(store, session, known, "task 3").seq == 9


def test_state_that_a_branch_did_not_have_is_named(store: Engine, session: str) -> None:
    state = {**now(store, session, at_seq=7), "confidence": 0.99}
    append(store, session, new(SessionBranched(origin=session, seq=7, state=state)))
    found = verdict(store, session)
    assert (found.equal, found.chain, found.seq) == (False, "whole", 8)
    assert found.difference is not None
    assert found.difference["where"] == "event 9.confidence"


def test_copy_that_does_not_begin_at_its_moment_is_named(store: Engine, session: str) -> None:
    append(store, session, new(SessionBranched(origin="other", seq=5)))
    found = verdict(store, session)
    assert found.difference == {"where": "event 9.seq", "stored": 5, "rebuilt": 8}


# --- conversations and differences ---------------------------------------------------------------


def message(name: str, said: str, role: str = "user") -> New:
    return New("message_added", MessageAdded(id=name, role=role, text=said).model_dump())  # type: ignore[arg-type]


def test_conversation_at_a_moment_leaves_out_other_paths(store: Engine) -> None:
    name = uuid4().hex
    append(store, name, message("m1", "hello"), message("a1", "hi", "assistant"), command="1")
    append(store, name, message("m2", "left"), command="2")
    resume(store, name, {"session_id": name, "seq": 2, "hash": ""}, "3")
    append(store, name, message("m3", "taken"), command="3")

    def said(seq: int, most: int = 10) -> list[str]:
        with store.reading(TENANT) as connection:
            found = branching.conversation(connection, TENANT, name, seq, most)
        return [each.text for each in found]

    assert said(3) == ["hello", "hi", "left"]
    assert said(5) == ["hello", "hi", "taken"]
    assert said(1) == ["hello"]
    assert said(5, most=1) == ["taken"]


def test_difference_of_two_moments(store: Engine, session: str) -> None:
    append(store, session, note("I restarted it"))
    early, late = now(store, session, at_seq=5), now(store, session)
    found = diff(early, late)
    assert found["events"] == {
        "evidence_recorded": 1,
        "note_added": 1,
        "source_added": 1,
        "test_recorded": 1,
    }
    assert list(found["sources"]["added"]) == ["s2"]
    assert found["observations"] == {"added": {}, "removed": {}, "changed": {}}
    [changed] = found["hypotheses"]["changed"].values()
    assert changed["tests"]["signature"]["before"] is None
    assert changed["tests"]["signature"]["after"]["outcome"] == "passed"
    assert changed["confidence"]["before"] < changed["confidence"]["after"]
    assert [each["text"] for each in found["notes"]] == ["I restarted it"]
    assert "title" not in found
    back = diff(late, early)
    assert list(back["sources"]["removed"]) == ["s2"]
    assert back["events"]["note_added"] == -1
    assert diff(late, late)["events"] == {}


# --- events of older versions --------------------------------------------------------------------


def test_source_of_an_earlier_version_is_copied_with_its_event(store: Engine) -> None:
    name = uuid4().hex
    older = {"id": "s1", "kind": "log", "format": "plain", "name": "", "lines": 1, "text": TEXT}
    event = Event(1, "source_added", 3, older, 1, None, "0" * 64, "")
    event = event._replace(hash=log.event_hash(name, event))
    with store.writing(TENANT) as connection:
        connection.execute(insert(table).values(log.row_of(TENANT, name, event)))
    into = branch(store, name, 1)
    with store.reading(TENANT) as connection:
        assert texts.read(connection, TENANT, into, "s1", 0, 400) == TEXT
        count = text("SELECT count(*) FROM diagnosis_texts WHERE session_id = :s")
        assert connection.execute(count, {"s": into}).scalar() == 0
    assert verdict(store, into).equal
