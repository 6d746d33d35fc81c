"""The events of the diagnosis in both databases: immutable, gapless, and never lost or doubled."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import DBAPIError

from my_agent.diagnosis.record import following, log, snapshots, texts
from my_agent.diagnosis.record.events import Event, EventRefused, New, dumps
from my_agent.diagnosis.record.fold import FOLD, replay
from my_agent.diagnosis.record.log import Conflict, Moment, moment
from my_agent.diagnosis.record.snapshots import EVERY, KEPT, Snapshot
from my_agent.diagnosis.record.tables import events as table
from my_agent.diagnosis.record.tables import sessions
from my_agent.diagnosis.record.upcasting import UnknownEvent
from my_agent.diagnosis.record.verify import verify
from tests.support import databases
from tests.support.diagnosis import TEXT, chained, evidence, note, opened, result
from tests.support.processes import ROOT
from tests.support.products import engine
from threadhold.tables import Engine

pytestmark = pytest.mark.usefixtures("each_database")

TENANT = "acme"
DAY = 86_400_000_000


@pytest.fixture(scope="module")
def store(product_database: str) -> Engine:
    return engine()


@pytest.fixture
def session() -> str:
    return uuid4().hex


@pytest.fixture
def append(store: Engine, session: str) -> Callable[..., Moment]:
    def write(*new: New, **options: object) -> Moment:
        with store.writing(TENANT) as connection:
            texts.write(connection, TENANT, session, "s1", TEXT)
            return log.append(connection, TENANT, session, new, **options)  # type: ignore[arg-type]

    return write


def now(store: Engine, session: str, **when: int) -> Moment:
    with store.reading(TENANT) as connection:
        return moment(connection, TENANT, session, **when)


def stored(store: Engine, session: str) -> list[Event]:
    with store.reading(TENANT) as connection:
        return list(log.stream(connection, TENANT, session))


def snapshot_numbers(store: Engine, session: str) -> list[int]:
    with store.reading(TENANT) as connection:
        query = text("SELECT seq FROM diagnosis_sessions WHERE session_id = :s ORDER BY seq")
        return list(connection.execute(query, {"s": session}).scalars())


def change(store: Engine, statement: str, session: str, tenant: str = TENANT) -> int:
    with store.writing(tenant) as connection:
        return connection.execute(text(statement), {"s": session}).rowcount


# --- what the database refuses ---------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE diagnosis_events SET data = '{}' WHERE session_id = :s AND seq = 2",
        "UPDATE diagnosis_events SET at = at + 1 WHERE session_id = :s",
        "DELETE FROM diagnosis_events WHERE session_id = :s AND seq = 5",
        "DELETE FROM diagnosis_events WHERE session_id = :s",
    ],
)
def test_events_are_never_changed(
    store: Engine, append: Callable[..., Moment], session: str, statement: str
) -> None:
    append(*opened())
    before = stored(store, session)
    with pytest.raises(DBAPIError):
        change(store, statement, session)
    assert stored(store, session) == before


@pytest.mark.only("sqlite")
def test_replacing_an_event_is_refused(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    # Only SQLite has INSERT OR REPLACE, which deletes without a trigger.
    append(*opened())
    columns = "tenant_id, session_id, seq, type, version, '{}', at, command, previous, hash"
    columns += ", state_hash"
    with pytest.raises(DBAPIError, match="must follow"):
        change(
            store,
            f"INSERT OR REPLACE INTO diagnosis_events SELECT {columns} FROM diagnosis_events"
            " WHERE session_id = :s AND seq = 5",
            session,
        )


@pytest.mark.only("postgresql")
def test_truncating_events_is_refused(store: Engine) -> None:
    with pytest.raises(DBAPIError, match="never changed"):
        change(store, "TRUNCATE diagnosis_events", "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seq": 7},
        {"seq": 5},
        {"seq": 0},
        {"at": 1},
        {"previous": "0" * 64},
    ],
    ids=["gap", "double", "zero", "earlier", "other chain"],
)
def test_event_that_does_not_follow_is_refused_by_the_database(
    store: Engine,
    append: Callable[..., Moment],
    session: str,
    wrong: dict[str, object],
) -> None:
    append(*opened())
    last = stored(store, session)[-1]
    row = {**last._asdict(), "data": "{}", "seq": 6, "previous": last.hash, "hash": "x"}
    row |= {"tenant_id": TENANT, "session_id": session, **wrong}
    with pytest.raises(DBAPIError), store.writing(TENANT) as connection:
        connection.execute(insert(table).values(row))
    assert now(store, session).seq == 5


# --- appending ---------------------------------------------------------------------------------


def test_bug_failed_append_leaves_a_permanent_gap(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened())
    # The second event does not fit, so that the first is not stored either.
    with pytest.raises(EventRefused):
        append(note(), evidence(name="o9"))

    def fail(connection: Connection) -> None:
        log.append(connection, TENANT, session, [note("lost")])
        raise InterruptedError

    with pytest.raises(InterruptedError), store.writing(TENANT) as connection:
        fail(connection)
    append(note("kept"))
    assert [each.seq for each in stored(store, session)] == [1, 2, 3, 4, 5, 6]
    assert now(store, session).state["notes"][-1]["text"] == "kept"


def test_bug_append_of_zero_events_wedges_a_session(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    assert append().seq == 0
    assert append(expected=0, snapshot=True).seq == 0
    append(*opened(), snapshot=True)
    for _ in range(3):
        assert append(expected=5, snapshot=True, command="nothing").seq == 5
    assert append(note(), expected=5).seq == 6
    with pytest.raises(Conflict):
        append(expected=5)
    assert snapshot_numbers(store, session) == [0, 5]


def test_bug_follower_skips_events_in_flight(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened())
    began, commit = threading.Event(), threading.Event()

    def slow() -> None:
        with store.writing(TENANT) as connection:
            log.append(connection, TENANT, session, [note("slow")])
            began.set()
            assert commit.wait(30)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(slow)
        assert began.wait(30)
        second = pool.submit(append, note("fast"))
        # The fast one has no number that the follower could see before the slow one's.
        assert [each.seq for each in stored(store, session)] == [1, 2, 3, 4, 5]
        assert not second.done()
        commit.set()
        first.result(60)
        second.result(60)
    assert [each["text"] for each in now(store, session).state["notes"]] == ["slow", "fast"]


def test_conflict_names_both_numbers(append: Callable[..., Moment]) -> None:
    append(*opened())
    with pytest.raises(Conflict) as refused:
        append(note(), expected=3)
    assert (refused.value.current, refused.value.expected) == (5, 3)


def test_repeated_command_writes_nothing(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), command="intake 1")
    done = append(note("again"), command="intake 1")
    assert done.seq == 5
    assert done.state == now(store, session).state


def test_time_never_decreases(store: Engine, append: Callable[..., Moment], session: str) -> None:
    append(*opened(), now=2 * DAY)
    append(note("the clock stepped back"), now=DAY)
    append(note(), now=3 * DAY)
    assert [each.at for each in stored(store, session)] == [2 * DAY] * 6 + [3 * DAY]


async def test_followers_under_concurrent_writers_see_each_event_once(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    writers, each_writes = 8, 20
    append(*opened())

    def write(number: int) -> None:
        for count in range(each_writes):
            append(*[note(f"{number} {count}")] * (1 + count % 3))
            following.wake(TENANT, session)

    total = 5 + writers * sum(1 + count % 3 for count in range(each_writes))

    async def follow() -> list[int]:
        seen: list[int] = []
        pages = following.follow(store, TENANT, session, 0)
        try:
            async for page in pages:
                seen += [event.seq for event in page]
                if len(seen) >= total:
                    return seen
        finally:
            await pages.aclose()
        raise AssertionError("unreachable: follow never ends")

    followers = [asyncio.create_task(follow()) for _ in range(3)]
    with ThreadPoolExecutor(writers) as pool:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(pool, write, n) for n in range(writers)))
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, total + 1))
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, None).equal


# --- snapshots and recovery --------------------------------------------------------------------


def test_two_snapshots_are_kept_besides_those_of_each_250th_event(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), snapshot=True)
    for _ in range(8):
        append(*[note()] * 80, snapshot=True)
    found = snapshot_numbers(store, session)
    assert [each for each in found if each % EVERY == 0] == [0, 250, 500]
    assert [each for each in found if each % EVERY] == [565, 645]
    assert len([each for each in found if each % EVERY]) == KEPT
    assert now(store, session).read == 0
    append(note())
    assert now(store, session).read == 1


def test_damaged_or_foreign_snapshot_is_skipped(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), snapshot=True)
    append(note(), snapshot=True)
    whole = now(store, session).state
    forged = "UPDATE diagnosis_sessions SET state = replace(state, 'payments', 'nobody')"
    assert change(store, f"{forged} WHERE session_id = :s AND seq = 6", session) == 1
    assert now(store, session) == Moment(6, whole, 1)
    # A snapshot of another fold is no damage, and is not used either.
    older = f"UPDATE diagnosis_sessions SET fold = {FOLD + 1} WHERE session_id = :s AND seq = 5"
    assert change(store, older, session) == 1
    assert now(store, session) == Moment(6, whole, 6)
    assert change(store, "DELETE FROM diagnosis_sessions WHERE session_id = :s", session) == 3
    assert now(store, session) == Moment(6, whole, 6)
    assert append(note()).seq == 7


@pytest.fixture(scope="module")
def long(store: Engine) -> list[Event]:
    """A session of 1,100 events in batches of all sizes, some with equal times."""
    rng = random.Random(5)
    name, at, left = "long", DAY, 1095
    with store.writing(TENANT) as connection:
        log.append(connection, TENANT, name, opened(), now=at)
    while left:
        size = min(left, rng.randrange(1, 120))
        left -= size
        at += rng.choice([0, 1_000_000])
        extra = [evidence(), result()] if size == 2 else [note(f"{left}")] * size
        with store.writing(TENANT) as connection:
            log.append(connection, TENANT, name, extra, now=at, snapshot=rng.random() < 0.5)
    return stored(store, name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(seq=st.integers(0, 1100))
def test_state_at_an_event_equals_the_replay_of_the_events_until_then(
    store: Engine, long: list[Event], seq: int
) -> None:
    found = now(store, "long", at_seq=seq)
    assert found.state == replay(long[:seq])
    assert found.seq == seq
    assert found.read <= EVERY


def test_state_at_a_time_includes_all_events_of_that_time(store: Engine, long: list[Event]) -> None:
    for at in {each.at for each in long}:
        until = [each for each in long if each.at <= at]
        assert now(store, "long", at=at) == now(store, "long", at_seq=len(until))
        assert now(store, "long", at=at).seq == until[-1].seq
    assert now(store, "long", at=long[0].at - 1).seq == 0
    assert now(store, "long", at_seq=5000).seq == 1100


KILLED = """
import os, signal, sys
from my_agent.diagnosis.record import log, snapshots
from my_agent.tables import tables
from tests.support.diagnosis import note, opened

store, session, left = tables.open(sys.argv[1]), sys.argv[2], int(sys.argv[3])
forget = snapshots.forget_old

def killed(*arguments):
    # The events are inserted, and the snapshot is not committed.
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    forget(*arguments)

log.snapshots.forget_old = killed
number = 0
while True:
    with store.writing("acme") as connection:
        first = [] if number else opened()
        log.append(connection, "acme", session, [*first, note(), note()], snapshot=True,
                   command=f"step {number}")
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("step", [1, 4])
def test_kill_between_event_and_snapshot_loses_nothing_that_was_committed(
    store: Engine,
    append: Callable[..., Moment],
    session: str,
    product_database: str,
    step: int,
) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KILLED, product_database, session, str(step)]
    ended = subprocess.run(command, capture_output=True, env=env, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    committed = len(ended.stdout.split())
    assert committed == step - 1
    expected = 0 if step == 1 else 5 + 2 * committed
    assert now(store, session).seq == expected
    # A new process repeats the step that was interrupted, and the one before it.
    first = opened() if step == 1 else []
    append(*first, note(), note(), command=f"step {step - 1}", snapshot=True)
    append(note("never"), command=f"step {step - 1}")
    found = now(store, session)
    assert found.seq == 5 + 2 * step
    assert found.state == replay(stored(store, session))
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, found.state).equal


def test_session_of_an_earlier_version_is_read_and_continued(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    file = ROOT / "tests/unit/my_agent/diagnosis/sessions.json"
    older = json.loads(file.read_text("utf-8"))[0]
    rows = chained([tuple(each) for each in older["events"]], session)
    with store.writing(TENANT) as connection:
        for each in rows:
            values = {**each._asdict(), "data": dumps(each.data)}
            connection.execute(insert(table).values(tenant_id=TENANT, session_id=session, **values))
    assert append(note()).state["leading"] == "h1"
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, None).equal


def test_event_of_a_newer_version_stops_with_its_name(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened())
    last = stored(store, session)[-1]
    event = Event(6, "cause_decided", 1, {}, last.at, None, last.hash, "")
    event = event._replace(hash=log.event_hash(session, event))
    with store.writing(TENANT) as connection:
        values = {**event._asdict(), "data": "{}"}
        connection.execute(insert(table).values(tenant_id=TENANT, session_id=session, **values))
    with pytest.raises(UnknownEvent, match="cause_decided"):
        now(store, session)
    with pytest.raises(UnknownEvent, match="cause_decided"):
        append(note())
    assert now(store, session, at_seq=5).seq == 5


# --- verification ------------------------------------------------------------------------------


@pytest.fixture
def unguarded(store: Engine, each_database: str) -> Iterator[None]:
    yield from unguarded_table(store, each_database, "diagnosis_events")


def unguarded_table(store: Engine, kind: str, name: str) -> Iterator[None]:
    """Switch the trigger of a table off, as an owner of the database can."""
    if kind == "sqlite":
        query = f"SELECT sql FROM sqlite_master WHERE name = '{name}_update'"
        with store.reading(TENANT) as connection:
            again = connection.execute(text(query)).scalar_one()
        off = f"DROP TRIGGER {name}_update"
    else:
        alter = f"ALTER TABLE {name} {{}} TRIGGER {name}_change"
        off, again = alter.format("DISABLE"), alter.format("ENABLE")
    with store.writing(TENANT) as connection:
        connection.exec_driver_sql(off)
    yield
    with store.writing(TENANT) as connection:
        if kind == "sqlite":
            # A connection with an older schema would say that the trigger exists.
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
        connection.exec_driver_sql(again)


@pytest.mark.usefixtures("unguarded")
def test_changed_event_breaks_the_chain(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), evidence(), result(), snapshot=True)
    forged = "UPDATE diagnosis_events SET data = replace(data, 'passed', 'failed')"
    assert change(store, f"{forged} WHERE session_id = :s AND seq = 7", session) == 1
    with store.reading(TENANT) as connection:
        found = verify(connection, TENANT, session, None)
    assert (found.equal, found.chain, found.seq) == (False, "broken", 6)
    assert found.difference is not None
    assert found.difference["where"] == "event 7"


def test_other_live_state_is_named(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    state = append(*opened(), evidence(), result(), snapshot=True).state
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, state).equal
        other = verify(connection, TENANT, session, {**state, "confidence": 0.99})
    assert other.difference == {
        "where": "graph.confidence",
        "stored": 0.99,
        "rebuilt": state["confidence"],
    }


def forge(store: Engine, session: str, seq: int, state: dict[str, object], event: Event) -> None:
    """Replace a snapshot together with its checksum, or insert it."""
    made = snapshots.row(TENANT, session, Snapshot(seq, state, event.hash), event.at)
    with store.writing(TENANT) as connection:
        gone = text("DELETE FROM diagnosis_sessions WHERE session_id = :s AND seq = :n")
        connection.execute(gone, {"s": session, "n": seq})
        connection.execute(insert(sessions).values(made))


def test_forged_snapshot_is_not_served_and_is_named(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    state = append(*opened(), evidence(), result(), snapshot=True).state
    events = stored(store, session)
    forge(store, session, 7, {**state, "confidence": 0.99}, events[-1])
    assert now(store, session) == Moment(7, state, 7)
    with store.reading(TENANT) as connection:
        found = verify(connection, TENANT, session, None)
    assert (found.equal, found.chain, found.seq) == (False, "whole", 6)
    assert found.difference is not None
    assert found.difference["where"] == "snapshot 7.confidence"
    # Nor one after an event that has none.
    change(store, "DELETE FROM diagnosis_sessions WHERE session_id = :s AND seq = 7", session)
    early = now(store, session, at_seq=6).state
    forge(store, session, 6, {**early, "title": "forged"}, events[5])
    assert now(store, session).state == state
    assert now(store, session, at_seq=6).state == early
    # The next append goes on from the events, and its snapshot is good.
    append(note(), snapshot=True)
    assert now(store, session).read == 0
    assert now(store, session).state["title"] == state["title"]


def test_snapshot_by_another_key_is_not_served(
    store: Engine,
    append: Callable[..., Moment],
    session: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = append(*opened(), snapshot=True).state
    monkeypatch.setenv("AUDIT_KEY", "a" * 32)
    assert now(store, session) == Moment(5, state, 5), "it is not signed"
    append(note(), snapshot=True)
    assert now(store, session).read == 0
    # A new key signs, and the old one still verifies.
    monkeypatch.setenv("AUDIT_KEY", f"{'b' * 32}, {'a' * 32}")
    assert now(store, session).read == 0
    monkeypatch.setenv("AUDIT_KEY", "b" * 32)
    assert now(store, session).read == 6
    monkeypatch.delenv("AUDIT_KEY")
    assert now(store, session).read == 1, "the unsigned one before it is good again"
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, None).equal


@pytest.fixture
def unguarded_texts(store: Engine, each_database: str) -> Iterator[None]:
    yield from unguarded_table(store, each_database, "diagnosis_texts")


@pytest.mark.usefixtures("unguarded_texts")
def test_changed_text_is_named(store: Engine, append: Callable[..., Moment], session: str) -> None:
    append(*opened())
    with store.reading(TENANT) as connection:
        assert verify(connection, TENANT, session, None).equal
    forged = "UPDATE diagnosis_texts SET text = replace(text, 'ERROR', 'INFO')"
    assert change(store, f"{forged} WHERE session_id = :s", session) == 1
    with store.reading(TENANT) as connection:
        found = verify(connection, TENANT, session, None)
    assert (found.equal, found.chain) == (False, "whole")
    assert found.difference is not None
    assert found.difference["where"] == "text s1"


def test_missing_text_is_named(store: Engine, session: str) -> None:
    with store.writing(TENANT) as connection:
        log.append(connection, TENANT, session, opened())
    with store.reading(TENANT) as connection:
        found = verify(connection, TENANT, session, None)
    assert found.difference is not None
    assert found.difference["where"] == "text s1"


# --- tenants -----------------------------------------------------------------------------------


def test_statements_see_the_tenants_own_session_alone(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened())
    with store.writing("globex") as connection:
        assert moment(connection, "globex", session).seq == 0
        log.append(connection, "globex", session, [note("theirs")])
    assert now(store, session).seq == 5


@pytest.mark.only("postgresql")
def test_row_level_security_hides_other_tenants_rows(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), snapshot=True)
    for name in ("diagnosis_events", "diagnosis_sessions"):
        count = text(f"SELECT count(*) FROM {name} WHERE session_id = :s")
        for tenant, expected in ((TENANT, True), ("globex", False), (None, False)):
            with store.reading(tenant) as connection:
                assert bool(connection.execute(count, {"s": session}).scalar()) is expected
    with (
        pytest.raises(DBAPIError, match="row-level security"),
        store.writing("globex") as connection,
    ):
        log.append(connection, TENANT, f"{session} 2", [note()])


@pytest.mark.only("postgresql")
def test_event_before_is_found_by_the_primary_key_without_statistics(
    store: Engine, append: Callable[..., Moment], session: str
) -> None:
    append(*opened(), *[note()] * 300)
    query = "EXPLAIN SELECT at FROM diagnosis_events WHERE tenant_id = 'acme' AND session_id = :s"
    with store.reading(TENANT) as connection:
        found = connection.execute(text(f"{query} AND seq = 200"), {"s": session}).scalars().all()
    assert "diagnosis_events_pkey" in "\n".join(found)


def test_tables_are_in_the_database_of_this_kind(
    store: Engine, product_database: str, each_database: str
) -> None:
    assert store.read(lambda connection: connection.dialect.name) == each_database
    if each_database == "postgresql":
        with psycopg.connect(product_database, options=databases.EVERYTHING) as raw:
            query = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'diagnosis_events_%'"
            assert raw.execute(query).fetchone() == (3,)
