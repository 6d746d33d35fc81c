"""Streams of threads over several processes: each follower gets every event once and in order.

Each bus here stands for a process: the buses share only the database, and Redis in some tests.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import insert, update

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import event_segments, runs, threads
from langgraph_runtime_sql.database.url import postgres_dsn
from langgraph_runtime_sql.events import subscription, wires
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.postgres_wire import PostgresWire
from langgraph_runtime_sql.events.redis.signing_key import signing_key
from langgraph_runtime_sql.events.redis.wire import RedisWire
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.events.wires import Wires
from tests.support import databases
from tests.support.redis import Valkey, started
from tests.support.streams import of_run, of_thread

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

PATIENCE = 60.0


@dataclass
class Process:
    """A process that executes runs.

    Attributes:
        said: The data of all events that it has published, in order.
    """

    bus: Bus
    database: Database
    said: list[bytes] = field(default_factory=list)

    async def claim(
        self, thread: UUID, run: UUID | None = None, attempt: int = 1, *, resumable: bool = True
    ) -> StreamKey:
        """Begin a new run, or another attempt at a run."""
        run_id, now = run or uuid4(), datetime.now(UTC)
        key = of_run(run_id, thread)
        values = {"status": "running", "attempt": attempt, "claimed_by": self.bus.name}
        row = {"thread_id": thread, "attempt": attempt, "kwargs": {"resumable": resumable}}

        def fn(conn: Connection) -> None:
            if run is None:
                conn.execute(insert(runs).values(**new_run(run_id, thread, now), **values))
            else:
                conn.execute(update(runs).where(runs.c.run_id == run).values(**values))
            self.bus.writers.claimed(conn, key, row)

        await self.database.write(fn)
        return key

    def say(self, key: StreamKey, count: int = 1, attempt: int = 1) -> None:
        """Publish events of a run."""
        for _ in range(count):
            data = b'"%s-%d"' % (self.bus.name.encode(), len(self.said))
            self.said.append(data)
            self.bus.publisher.publish(key, "values", data, resumable=True, attempt=attempt)

    async def end(self, key: StreamKey) -> None:
        """End a run that this process executes, or that waits."""
        statement = update(runs).where(runs.c.run_id == UUID(key.run_id)).values(status="success")

        def fn(conn: Connection) -> None:
            conn.execute(statement)
            self.bus.writers.end(conn, key, resumable=True)

        await self.database.write(fn)


def new_run(run_id: UUID, thread: UUID, now: datetime) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "thread_id": thread,
        "assistant_id": uuid4(),
        "metadata": {},
        "kwargs": {"resumable": True},
        "multitask_strategy": "enqueue",
        "created_at": now,
        "updated_at": now,
    }


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="module")
async def database(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Database]:
    path = tmp_path_factory.mktemp("streams") / "streams.db"
    opened = migrations.open_database(databases.url(path), shared=True)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
async def thread(database: Database) -> UUID:
    """Create a thread for one test."""
    made, now = uuid4(), datetime.now(UTC)
    values = {"metadata": {}, "config": {}, "status": "busy", "interrupts": {}}
    dates = {"created_at": now, "updated_at": now, "state_updated_at": now}
    statement = insert(threads).values(thread_id=made, **values, **dates)
    await database.write(lambda conn: conn.execute(statement))
    return made


@asynccontextmanager
async def processes(
    database: Database, count: int = 2, redis_url: str | None = None
) -> AsyncIterator[list[Process]]:
    """Start processes, which hear of each other when the block begins."""
    dsn, prefix = postgres_dsn(database.url), f"streams:{uuid4().hex}"
    key = await database.write(signing_key)

    def connect(bus: Bus) -> Wires:
        postgres = PostgresWire(dsn, bus.name, bus.receive, bus.look_again)
        if redis_url is None:
            return Wires(postgres)
        hears = (bus.receive, bus.receive_events, bus.look_again)
        redis = RedisWire(redis_url, bus.name, key, *hears, prefix=prefix, answer_seconds=1.0)
        return Wires(postgres, redis)

    made = [
        Process(Bus(database, f"{name}-{uuid4().hex}", connect), database) for name in "abc"[:count]
    ]
    try:
        for each in made:
            await each.bus.start()
        for each in made:
            for wire in (each.bus.wires.postgres, each.bus.wires.redis):
                await until(lambda wire=wire: wire is None or wire.well)  # type: ignore[misc]
        yield made
    finally:
        for each in made:
            await each.bus.stop()


@pytest.fixture(params=["postgres", "redis"])
async def three(
    request: pytest.FixtureRequest,
    database: Database,
    valkey: Valkey,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[list[Process]]:
    """Three processes, with and without Redis, which look at the log by themselves only rarely."""
    monkeypatch.setattr(wires, "WELL_RECHECK_SECONDS", 30.0)
    url = valkey.url if request.param == "redis" else None
    async with processes(database, 3, url) as made:
        yield made


def wire_of(process: Process) -> PostgresWire:
    """Return the wire of a process over Postgres."""
    wire = process.bus.wires.postgres
    assert isinstance(wire, PostgresWire)
    return wire


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def read(reader: Subscription, count: int, seconds: float = PATIENCE) -> list[Event]:
    """Return so many events."""
    found: list[Event] = []
    async with asyncio.timeout(seconds):
        while len(found) < count:
            event = await reader.get()
            assert event is not None
            found.append(event)
    assert not reader.broken
    return found


async def is_whole(made: list[Process], thread: UUID, said: list[bytes]) -> list[Event]:
    """Check that the stream of a thread is the same in each process, after each event.

    Args:
        said: The data of all events.
    """
    tapes = []
    for process in made:
        async with await process.bus.followers.follow_thread(of_thread(thread), START) as reader:
            tapes.append(await read(reader, len(said)))
    assert all([e.id for e in tape] == [e.id for e in tapes[0]] for tape in tapes)
    tape = tapes[0]
    assert [each.data for each in tape] == said
    assert [each.order for each in tape] == sorted({each.order for each in tape})
    assert [each.order[1] for each in tape] == list(range(1, len(said) + 1))
    for place in range(0, len(tape), max(1, len(tape) // 8)):
        for process in made:
            after = tape[place].order
            async with await process.bus.followers.follow_thread(
                of_thread(thread), after
            ) as reader:
                assert await read(reader, len(tape) - place - 1) == tape[place + 1 :]
                assert await reader.get(0.02) is None
    return tape


# --- several processes


async def test_followers_in_each_process_get_the_runs_of_all(
    three: list[Process], thread: UUID
) -> None:
    said: list[bytes] = []
    readers = [await each.bus.followers.follow_thread(of_thread(thread)) for each in three]
    for turn in range(6):
        process = three[turn % 3]
        key = await process.claim(thread)
        follower = await three[(turn + 1) % 3].bus.followers.follow_run(key)
        before = len(process.said)
        for _ in range(5):
            process.say(key, 4)
            await asyncio.sleep(0.01)
        await process.end(key)
        mine = [*process.said[before:], b"done"]
        assert [each.data for each in await read(follower, 21)] == mine
        follower.close()
        said += mine
    tapes = [await read(each, len(said)) for each in readers]
    assert [each.data for each in tapes[0]] == said
    assert tapes[1] == tapes[0]
    assert tapes[2] == tapes[0]
    for each in readers:
        assert await each.get(0.05) is None
        each.close()
    assert await is_whole(three, thread, said) == tapes[0]


async def test_run_taken_over_by_another_process_continues(
    three: list[Process], thread: UUID
) -> None:
    a, b, c = three
    reader = await c.bus.followers.follow_thread(of_thread(thread))
    key = await a.claim(thread)
    a.say(key, 3)
    seen = await read(reader, 3)
    await a.bus.publisher.flush()
    await b.claim(thread, UUID(key.run_id), 2)
    b.say(key, 2, attempt=2)
    seen += await read(reader, 2)
    # The first process does not know yet. Nothing of it is stored.
    a.say(key, 2)
    refused = a.said[3:]
    await a.bus.publisher.flush()
    b.say(key, 2, attempt=2)
    await b.end(key)
    while not seen[-1].is_end:
        seen += await read(reader, 1)
    reader.close()
    said = [*a.said[:3], *b.said, b"done"]
    assert [each.data for each in seen if each.data not in refused] == said
    await is_whole([b, c], thread, said)


async def test_end_of_a_pending_run_reaches_followers_while_another_run_is_executed(
    three: list[Process], database: Database, thread: UUID
) -> None:
    """Another process than the thread's writer cancels it, and none of both follows it."""
    a, b, _ = three
    key = await a.claim(thread)
    waiting = of_run(uuid4(), thread)
    values = new_run(UUID(waiting.run_id), thread, datetime.now(UTC))
    statement = insert(runs).values(**values, status="pending", attempt=0)
    await database.write(lambda conn: conn.execute(statement))
    readers = [await each.bus.followers.follow_run(waiting) for each in three]
    whole = [await each.bus.followers.follow_thread(of_thread(thread)) for each in three]
    a.say(key, 2)
    await b.end(waiting)
    for reader in readers:
        # At once, and not at the next look at the log.
        [end] = await read(reader, 1, wires.WELL_RECHECK_SECONDS - 1)
        assert (end.is_end, end.run_id) == (True, waiting.run_id)
        reader.close()
    a.say(key, 2)
    await a.end(key)
    tapes = [await read(each, 6) for each in whole]
    assert tapes[1] == tapes[0]
    assert tapes[2] == tapes[0]
    for each in whole:
        each.close()
    said = [*a.said[:2], b"done", *a.said[2:], b"done"]
    assert await is_whole(three, thread, said) == tapes[0]


@pytest.mark.parametrize("by", [0, 1], ids=["by the writer", "by another process"])
async def test_update_of_a_state_reaches_followers_while_a_run_is_executed(
    three: list[Process], thread: UUID, by: int
) -> None:
    a, _, c = three
    readers = [await each.bus.followers.follow_thread(of_thread(thread)) for each in three]
    key = await a.claim(thread)
    a.say(key, 1)
    three[by].bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")
    for reader in readers:
        found = await read(reader, 2, wires.WELL_RECHECK_SECONDS - 1)
        assert sorted(each.name for each in found) == ["state_update", "values"]
        reader.close()
    await a.end(key)
    await c.bus.publisher.flush()
    async with await c.bus.followers.follow_thread(of_thread(thread), START) as reader:
        assert [each.order[1] for each in await read(reader, 3)] == [1, 2, 3]


@pytest.mark.parametrize("by", [0, 1], ids=["by the writer", "by another process"])
async def test_update_of_a_state_at_the_begin_of_a_run_hides_no_event(
    three: list[Process], thread: UUID, by: int
) -> None:
    """The update waits to be stored when the run is claimed."""
    a, *_ = three
    readers = [await each.bus.followers.follow_thread(of_thread(thread)) for each in three]
    three[by].bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")
    key = await a.claim(thread)
    a.say(key, 3)
    await a.end(key)
    for reader in readers:
        found = await read(reader, 5, wires.WELL_RECHECK_SECONDS - 1)
        data = [each.data for each in found if each.name == "values"]
        assert data == a.said
        reader.close()


async def test_own_event_hides_no_earlier_one_of_another_process(
    three: list[Process], thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = three
    reader = await b.bus.followers.follow_thread(of_thread(thread))
    # The other process looks at the log later than its own event is stored.
    due, later = b.bus._topics._due, asyncio.Event()
    with monkeypatch.context() as waiting:
        waiting.setattr(b.bus._topics, "_due", later)
        waiting.setattr(b.bus.reader, "receive_events", lambda *_: None)
        key = await a.claim(thread)
        a.say(key, 3)
        await a.end(key)
        b.bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")
        await b.bus.publisher.flush()
    due.set()
    found = await read(reader, 5)
    assert [each.data for each in found if each.name == "values"] == a.said
    assert [each.order[1] for each in found] == [1, 2, 3, 4, 5]
    reader.close()


async def test_follower_of_a_deleted_run_is_told_in_each_process(
    three: list[Process], thread: UUID
) -> None:
    a, *others = three
    key = await a.claim(thread)
    readers = [await each.bus.followers.follow_run(key) for each in others]
    stays = await others[0].bus.followers.follow_thread(of_thread(thread))
    a.bus.followers.drop(key)
    for reader in readers:
        async with asyncio.timeout(wires.WELL_RECHECK_SECONDS - 1):
            assert await reader.get() is None
        assert reader.dropped
        reader.close()
    assert not stays.dropped
    stays.close()


async def test_control_messages_and_new_runs_are_told_to_the_others(three: list[Process]) -> None:
    a, b, c = three
    received: list[Control] = []
    woken = asyncio.Event()
    run = str(uuid4())
    forget = b.bus.controls.listen(run, received.append)
    stop = c.bus.controls.on_queued(woken.set)
    a.bus.controls.send(run, Control("rollback", "reason"))
    a.bus.controls.wake()
    async with asyncio.timeout(PATIENCE):
        await woken.wait()
    await until(lambda: bool(received))
    await asyncio.sleep(0.1)
    # Both wires may carry it.
    assert set(received) == {Control("rollback", "reason")}
    forget()
    stop()


async def test_follower_that_comes_in_the_middle_gets_only_later_events(
    three: list[Process], thread: UUID
) -> None:
    a, b, _ = three
    key = await a.claim(thread)
    a.say(key, 10)
    await a.bus.publisher.flush()
    async with await b.bus.followers.follow_run(key) as reader:
        a.say(key, 10)
        assert [each.data for each in await read(reader, 10)] == a.said[10:]


async def test_slow_follower_in_another_process_gets_everything(
    three: list[Process], thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "WAITING_BYTES", 5_000)
    a, b, _ = three
    key = await a.claim(thread)
    slow, fast = await b.bus.followers.follow_run(key), await b.bus.followers.follow_run(key)
    for _ in range(50):
        a.say(key, 10)
        await asyncio.sleep(0.005)
    await a.end(key)
    assert [each.data for each in await read(fast, 501)] == [*a.said, b"done"]
    assert [each.data for each in await read(slow, 501)] == [*a.said, b"done"]
    for each in (slow, fast):
        each.close()


async def test_deleted_events_are_reported_only_to_those_that_ask_for_them(
    three: list[Process], database: Database, thread: UUID
) -> None:
    a, b, _ = three
    key = await a.claim(thread)
    a.say(key, 3)
    await a.end(key)
    [first] = await rest_of(a, key, 1)
    emptied = event_segments.update().where(event_segments.c.thread_id == thread)
    await database.write(lambda conn: conn.execute(emptied.values(events=None)))
    later = await b.claim(thread)
    b.say(later, 2)
    await b.end(later)
    async with await b.bus.followers.follow_thread(of_thread(thread), START) as reader:
        assert [each.data for each in await read(reader, 3)] == [*b.said, b"done"]
    for process in (a, b):
        async with await process.bus.followers.follow_thread(
            of_thread(thread), first.order
        ) as reader:
            event = await reader.get(PATIENCE)
            assert event is not None
            assert event.is_loss
    # The later run is whole.
    since = datetime.now(UTC)
    async with await a.bus.followers.follow_run(later, START, whole_since=since) as reader:
        assert [each.data for each in await read(reader, 3)] == [*b.said, b"done"]


async def rest_of(process: Process, key: StreamKey, count: int) -> list[Event]:
    async with await process.bus.followers.follow_run(key, START) as reader:
        return await read(reader, count)


# --- faults of the wires


async def tells(a: Process, b: Process, thread: UUID, trouble: Callable[[], Any]) -> None:
    """Let one process tell a run while the other follows; trouble comes in its middle."""
    key = await a.claim(thread)
    run, whole = (
        await b.bus.followers.follow_run(key),
        await b.bus.followers.follow_thread(of_thread(thread)),
    )
    before = len(a.said)
    done = None
    for number in range(30):
        a.say(key, 3)
        await asyncio.sleep(0.02)
        if number == 10:
            done = asyncio.create_task(asyncio.to_thread(trouble))
    assert done is not None
    await done
    await a.end(key)
    said = [*a.said[before:], b"done"]
    for reader in (run, whole):
        assert [each.data for each in await read(reader, 91)] == said
        assert await reader.get(0.05) is None
        reader.close()


def listeners(database: Database) -> list[int]:
    """Return the server processes of the connections that listen."""
    statement = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND application_name = 'threadhold' "
    )
    with psycopg.connect(postgres_dsn(database.url)) as raw:
        return [pid for (pid,) in raw.execute(statement)]


async def test_follower_gets_everything_although_the_notifying_connections_are_killed(
    database: Database, thread: UUID
) -> None:
    def kill() -> None:
        for _ in range(3):
            with psycopg.connect(postgres_dsn(database.url), autocommit=True) as raw:
                for pid in listeners(database):
                    raw.execute("SELECT pg_terminate_backend(%s)", (pid,))
            time.sleep(0.1)

    async with processes(database) as (a, b):
        assert listeners(database)
        await tells(a, b, thread, kill)
        await until(lambda: wire_of(a).well and wire_of(b).well)
        await tells(b, a, thread, lambda: None)


async def test_follower_gets_everything_although_no_notification_arrives(
    database: Database, thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is looked at from time to time."""
    monkeypatch.setattr(wires, "WELL_RECHECK_SECONDS", 0.2)
    async with processes(database) as (a, b):
        for each in (a, b):
            monkeypatch.setattr(wire_of(each), "_handle", lambda _: None)
        await tells(a, b, thread, lambda: None)


async def test_follower_gets_everything_although_nothing_listens(
    database: Database, thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some poolers of connections do not support LISTEN."""
    monkeypatch.setattr(wires, "AWAY_RECHECK_SECONDS", 0.2)
    async with processes(database) as (a, b):
        for each in (a, b):
            wire_of(each).well = False
            monkeypatch.setattr(wire_of(each), "_handle", lambda _: None)
        await tells(a, b, thread, lambda: None)


def stopped(valkey: Valkey) -> None:
    valkey.stop()


def restarted(valkey: Valkey) -> None:
    valkey.stop()
    valkey.start()


def emptied(valkey: Valkey) -> None:
    valkey.flush()


def paused(valkey: Valkey) -> None:
    with valkey.paused():
        time.sleep(1.5)


def disconnected(valkey: Valkey) -> None:
    for _ in range(3):
        valkey.do("CLIENT", "KILL", "TYPE", "pubsub")
        valkey.do("CLIENT", "KILL", "TYPE", "normal")
        time.sleep(0.05)


def refusing(valkey: Valkey) -> None:
    valkey.do("CONFIG", "SET", "maxmemory", "1")


@pytest.mark.parametrize("trouble", [stopped, restarted, emptied, paused, disconnected, refusing])
async def test_follower_gets_everything_whatever_becomes_of_redis(
    database: Database, thread: UUID, tmp_path: Path, trouble: Callable[[Valkey], None]
) -> None:
    with started(tmp_path) as valkey:
        async with processes(database, 2, valkey.url) as (a, b):
            await tells(a, b, thread, lambda: trouble(valkey))
            # Also the next run.
            await tells(b, a, thread, lambda: None)


async def test_redis_stores_nothing(database: Database, valkey: Valkey, thread: UUID) -> None:
    async with processes(database, 2, valkey.url) as (a, b):
        await tells(a, b, thread, lambda: None)
        assert valkey.do("DBSIZE") == 0


async def test_forged_messages_in_redis_reach_no_follower(
    database: Database, valkey: Valkey, thread: UUID
) -> None:
    async with processes(database, 2, valkey.url) as (a, b):
        key = await a.claim(thread)
        async with await b.bus.followers.follow_run(key) as reader:
            channels = [each.decode() for each in valkey.do("PUBSUB", "CHANNELS", "*")]
            assert any(str(thread) in each for each in channels)
            for channel in channels:
                for message in ("", "x" * 99, f'{"x" * 16}["forger",[["drop","{thread}","*"]]]'):
                    assert valkey.do("PUBLISH", channel, message) >= 1
            a.say(key, 2)
            await a.end(key)
            assert [each.data for each in await read(reader, 3)] == [*a.said, b"done"]
        assert not reader.dropped
