"""Large events take the bytes of what is new: they are compressed with earlier ones."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from sqlalchemy import select, update

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import event_segments
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import dictionaries, log, retention
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.segment import Segment
from langgraph_runtime_sql.memo import Memo
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.options import Retention
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.operations import rows
from tests.support.streams import of_run, of_thread

pytestmark = pytest.mark.usefixtures("each_database")
WORDS = ["alpha", "beta", "conversation", "storage", "of", "the", "longer", "turns", "question"]
DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path) -> AsyncIterator[None]:
    with runtime.serving("echo"):
        async with runtime.opened(tmp_path / "dictionaries.db", shared=True):
            await runtime.register(["echo"])
            another_process()
            yield


def another_process() -> None:
    """Forget what this process knows of dictionaries."""
    dictionaries._last.clear()
    dictionaries._read.clear()


async def a_thread() -> UUID:
    thread = uuid4()
    await rows(Threads.put(None, thread, metadata={"graph_id": "echo"}, if_exists="raise"))
    return thread


def said(count: int) -> list[dict[str, Any]]:
    return [
        {"id": str(uuid4()), "content": " ".join(random.choices(WORDS, k=60))} for _ in range(count)
    ]


def state(number: int, data: Any, *, run: str = "run") -> Event:
    """Return a numbered event with a state."""
    return Event((1, number), run, "values", orjson.dumps(data), True, 1, at=number)


async def store(thread: UUID, *events: Event) -> None:
    """Store each event as a segment, all in one transaction."""
    made = [Segment(of_thread(thread), [each]) for each in events]
    await current().database.write(lambda conn: log.store(conn, made))


async def conversation(
    thread: UUID, turns: int, *, first: int = 1, run: str = "run"
) -> list[Event]:
    """Store the state of a conversation after each turn, in a transaction each."""
    messages, found = said(20), []
    for number in range(first, first + turns):
        messages += said(2)
        found.append(state(number, {"turn": number, "messages": messages}, run=run))
        await store(thread, found[-1])
    return found


async def stored(thread: UUID) -> list[Row]:
    """Return the rows of a thread's log, also those of dictionaries."""
    statement = select(event_segments).where(event_segments.c.thread_id == thread)
    return await current().database.read(lambda conn: conn.fetchall(statement))


async def used(thread: UUID) -> list[Row]:
    """Return the dictionaries of a thread."""
    return [row for row in await stored(thread) if row["epoch"] == dictionaries.EPOCH]


async def told(thread: UUID, run: str | None = None) -> list[Event]:
    """Return what a reader in another process finds in the log."""
    another_process()
    key = of_thread(thread) if run is None else of_run(run, thread)
    found, position, more = list[Event](), START, True
    while more:
        page = await current().bus.followers.read_log(key, position)
        found += page.events
        position, more = page.position, page.more
    return found


async def sweep(**kept: Any) -> int:
    return await retention.sweep(current().database, Retention(**kept), ttl_seconds=120.0)


async def test_states_of_a_long_conversation_take_no_more_than_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dictionaries, "_LONGEST", 8)
    thread = await a_thread()
    events = await conversation(thread, 120)
    assert await told(thread) == events
    size = sum(row["size"] for row in await stored(thread))
    assert size < len(events[-1].data)
    chains = [row["dictionary"] for row in await used(thread)]
    assert len(chains) > 2 * len(set(chains)) > 2


async def test_positions_of_a_thread_do_not_count_dictionaries() -> None:
    thread = await a_thread()
    await conversation(thread, 3)
    await current().database.write(lambda conn: log.drop_run(conn, thread, "other"))
    found = await current().database.read(lambda conn: log.head(conn, thread))
    assert found == (1, 3)
    await current().database.write(
        lambda conn: conn.execute(
            event_segments.delete().where(event_segments.c.epoch > log.UNPLACED)
        )
    )
    assert await current().database.read(lambda conn: log.head(conn, thread)) == log.BEGINNING


@pytest.mark.parametrize("seed", range(4))
async def test_what_several_processes_store_in_any_order_is_read_back(seed: int) -> None:
    """Processes alternate, transactions fail, runs are deleted, contents change and return."""
    source = random.Random(seed)
    print(f"seed {seed}")
    thread = await a_thread()
    contents = [source.randbytes(size).hex() for size in (3_000, 8_000, 40_000)]
    processes = [(Memo[Any, Any](2**20), Memo[Any, Any](2**20)) for _ in range(2)]
    kept: dict[int, Event] = {}
    number = 0
    for _ in range(60):
        dictionaries._last, dictionaries._read = source.choice(processes)
        action = source.random()
        if action < 0.1 and kept:
            run = source.choice(list(kept.values())).run_id
            await current().database.write(lambda conn, r=run: log.drop_run(conn, thread, r))
            kept = {n: each for n, each in kept.items() if each.run_id != run}
            continue
        made = []
        for _ in range(source.randint(1, 4)):
            number += 1
            at = source.randrange(len(contents))
            if source.random() < 0.5:
                place = source.randrange(len(contents[at]))
                news = source.randbytes(source.choice([2, 500, 5_000])).hex()
                contents[at] = contents[at][:place] + news + contents[at][place:]
            made.append(state(number, contents[at], run=f"run-{number // 7}"))
        segments = [Segment(of_thread(thread), [each]) for each in made]

        def failing(conn: Connection, segments: list[Segment] = segments) -> None:
            log.store(conn, segments)
            raise ZeroDivisionError

        if source.random() < 0.2:
            with pytest.raises(ZeroDivisionError):
                await current().database.write(failing)
            if source.random() < 0.5:
                continue
        # The same segments may be stored later, and twice.
        for _ in range(source.randint(1, 2)):
            await current().database.write(lambda conn, s=segments: log.store(conn, s))
        kept |= {each.order[1]: each for each in made}
    assert await told(thread) == list(kept.values())
    assert any(row["dictionary"] is not None for row in await stored(thread))
    for run in {each.run_id for each in kept.values()}:
        assert await told(thread, run) == [each for each in kept.values() if each.run_id == run]


async def test_chain_is_deleted_with_the_last_events_that_need_it() -> None:
    thread = await a_thread()
    await conversation(thread, 10, run="one")
    later = await conversation(thread, 10, first=11, run="two")
    await current().database.write(lambda conn: log.drop_run(conn, thread, "one"))
    assert await told(thread) == later
    assert await used(thread)
    await current().database.write(lambda conn: log.drop_run(conn, thread, "two"))
    assert await stored(thread) == []
    # What this process remembers is gone, so the next events begin a chain.
    again = await conversation(thread, 3, first=21)
    assert await told(thread) == again


async def test_retention_deletes_dictionaries_with_their_events() -> None:
    thread = await a_thread()
    await conversation(thread, 40)
    assert await used(thread)
    assert await sweep(events_seconds=DAY) == 0
    assert await sweep(events_seconds=0.0) == 40
    assert [row["events"] for row in await stored(thread)] == [None]


async def test_deleted_thread_begins_anew() -> None:
    thread = await a_thread()
    await conversation(thread, 5)
    await rows(Threads.delete(None, thread))
    assert await stored(thread) == []
    await rows(Threads.put(None, thread, metadata={"graph_id": "echo"}, if_exists="raise"))
    events = await conversation(thread, 5)
    assert await told(thread) == events


@pytest.mark.parametrize("what", ["missing", "changed", "segment"])
async def test_damaged_events_are_reported_as_lost(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    thread = await a_thread()
    before = state(1, {"small": True})
    await store(thread, before)
    await conversation(thread, 3, first=2)
    after = state(5, {"small": True})
    await store(thread, after)
    c = event_segments.c
    of_dictionary = c.epoch == dictionaries.EPOCH
    damage: Any = update(event_segments).where(of_dictionary).values(events=b"\x00" + b"x" * 99)
    if what == "missing":
        damage = event_segments.delete().where(of_dictionary)
    elif what == "segment":
        damage = update(event_segments).where(c.first.in_([2, 3, 4])).values(events=b"\x00dxyz")
    await current().database.write(lambda conn: conn.execute(damage))
    assert await told(thread) == [before, after]
    page = await current().bus.followers.read_log(of_thread(thread), START)
    assert sorted(row["first"] for row in page.dropped) == [2, 3, 4]
    assert f"Events of thread {thread} are lost" in caplog.text
    # What this process remembers is gone or cannot be used, and the log goes on.
    await store(thread, state(6, {"small": False}))
    assert (await told(thread))[-1].order == (1, 6)


async def test_events_that_resemble_nothing_are_stored_alone() -> None:
    thread, count = await a_thread(), 3 * dictionaries._MAX_MISSES
    events = [state(n, random.randbytes(6_000).hex()) for n in range(1, count + 1)]
    for each in events:
        await store(thread, each)
    assert await told(thread) == events
    # Now and then an event is tried as the next dictionary.
    assert len(await used(thread)) == 3


async def test_chain_that_is_about_to_be_used_is_not_deleted(each_database: str) -> None:
    """Retention meets a transaction that has found a dictionary and is not committed yet."""
    thread = await a_thread()
    last = (await conversation(thread, 2, run="old"))[-1]
    event = state(9, {**orjson.loads(last.data), "turn": 9}, run="new")
    found, may_end = threading.Event(), threading.Event()

    def slowly(conn: Connection) -> None:
        log.store(conn, [Segment(of_thread(thread), [event])])
        found.set()
        assert may_end.wait(runtime.PATIENCE)

    database = current().database
    writing = asyncio.create_task(database.write(slowly))
    await asyncio.to_thread(found.wait, runtime.PATIENCE)
    deleting = asyncio.create_task(database.write(lambda conn: log.drop_run(conn, thread, "old")))
    if each_database == "postgresql":
        await deleting
    may_end.set()
    await asyncio.gather(writing, deleting)
    assert await told(thread) == [event]
