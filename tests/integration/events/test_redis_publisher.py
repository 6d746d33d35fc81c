"""What one process tells Redis: of how many threads it may be, and however slow the way is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from langgraph_runtime_sql.events.event import START
from langgraph_runtime_sql.events.redis import bus as redis_bus
from langgraph_runtime_sql.events.redis import publisher as redis_publisher
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.events.subscription import Subscription
from tests.support.proxy import proxied
from tests.support.redis import Valkey, started
from tests.support.streams import of_run

PATIENCE = 60.0
THREADS = 500
PAGE = 20


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(autouse=True)
def empty(valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is there, and it is looked at more often than it would be."""
    valkey.flush()
    monkeypatch.setattr(redis_publisher, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(redis_publisher, "ASK_QUEUES", PAGE)


@asynccontextmanager
async def bus(
    url: str, *, keep: float = 60, answer_seconds: float = 30.0
) -> AsyncIterator[RedisBus]:
    made = RedisBus(url, keep_seconds=keep, answer_seconds=answer_seconds)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.05)


async def data(reader: Subscription) -> bytes:
    async with asyncio.timeout(PATIENCE):
        event = await reader.get()
    assert event is not None
    assert not event.is_loss
    return event.data


async def used(here: RedisBus) -> None:
    """Have something published on many threads."""
    for number in range(THREADS):
        here.publish(of_run(f"run-{number}", f"thread-{number}"), "values", b"1", resumable=True)
    assert await here._publisher.flush(PATIENCE)


async def looked(here: RedisBus, times: int) -> None:
    """Wait until Redis was looked at so often, from now on."""
    looks = here._publisher._looks + times
    await until(lambda: here._publisher._looks >= looks)


def streams(valkey: Valkey) -> int:
    return len(valkey.do("KEYS", "*:events"))


def asked(valkey: Valkey) -> int:
    """How often the script was called since the statistics were reset."""
    found = valkey.do("INFO", "commandstats").get("cmdstat_evalsha", {"calls": 0})
    return int(found["calls"])


async def test_threads_that_were_used_cost_a_look_no_more_than_a_page(valkey: Valkey) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        # What an earlier failure has begun is over.
        await until(lambda: not here._publisher._hurry)
        failures = here.link.failures
        await looked(here, 1)
        before = here._publisher._looks
        valkey.do("CONFIG", "RESETSTAT")
        await looked(here, 5)
        calls = asked(valkey)
        assert here.link.failures == failures
        assert 0 < calls <= (here._publisher._looks - before + 1) * PAGE


async def test_a_redis_that_was_emptied_is_told_of_all_threads_and_of_what_is_new_meanwhile(
    valkey: Valkey,
) -> None:
    async with bus(valkey.url) as here, bus(valkey.url) as there:
        await used(here)
        reader = await there.follow_run(of_run("run-new", "thread-new"))
        await asyncio.to_thread(valkey.flush)
        # Nothing more comes to those threads.
        await until(lambda: streams(valkey) >= THREADS)
        here.publish(of_run("run-new", "thread-new"), "values", b"2", resumable=True)
        assert await data(reader) == b"2"
        late = await there.follow_run(of_run("run-7", "thread-7"), START)
        assert await data(late) == b"1"


async def test_a_redis_that_begins_with_what_it_had_before_is_told_the_rest(
    valkey: Valkey,
) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        await looked(here, 2)
        name = here.link.name(f"alive:{here._publisher._process}")
        known = here.link.stream("thread-7"), here.link.meta("thread-7")
        hurried: list[bool] = []
        real = here._publisher._ask

        async def ask(redis: object) -> None:
            hurried.append(here._publisher._hurry)
            await real(redis)  # type: ignore[arg-type]

        here._publisher._ask = ask  # type: ignore[method-assign, assignment]
        valkey.do("SET", name, "1")
        valkey.do("DEL", *known)
        await until(lambda: any(hurried))
        await until(lambda: bool(valkey.do("EXISTS", known[0])))


async def test_a_single_stream_that_is_gone_is_told_again_in_its_turn(valkey: Valkey) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        known = here.link.stream("thread-7"), here.link.meta("thread-7")
        valkey.do("DEL", *known)
        await until(lambda: bool(valkey.do("EXISTS", known[0])))


async def test_what_is_put_in_the_place_of_the_key_that_tells_harms_nobody(
    valkey: Valkey,
) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        name = here.link.name(f"alive:{here._publisher._process}")
        script = "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'garbage')"
        valkey.do("EVAL", script, 1, name)
        await until(lambda: valkey.do("TYPE", name) == b"string")
        await until(lambda: here.link.well)


async def test_the_stream_of_a_silent_run_in_flight_outlives_those_of_ended_ones(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_bus, "LEAST_TTL_SECONDS", 3.0)
    async with bus(valkey.url, keep=3.0) as here:
        here.run_started(of_run("silent"), resumable=True)
        for run in ("silent", "ended"):
            here.publish(of_run(run, f"thread-{run}"), "values", b"1", resumable=True)
        here.run_ended(of_run("ended", "thread-ended"), resumable=True)
        stream, other = (here.link.stream(f"thread-{run}") for run in ("silent", "ended"))
        await here.flush()
        await until(lambda: "thread-ended" not in here._publisher._queues)
        await until(lambda: not valkey.do("EXISTS", other))
        await until(lambda: bool(valkey.do("EXISTS", stream)))
        assert "thread-silent" in here._publisher._queues


async def test_a_backlog_goes_through_a_narrow_way(valkey: Valkey) -> None:
    """All of it at a time would take longer than an answer may, and so would one event."""
    with proxied(valkey.port, rate=4 * 2**20) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        async with bus(url, answer_seconds=1.0) as here, bus(valkey.url) as there:
            readers = [await there.follow_run(of_run(f"r{n}", f"t{n}"), START) for n in range(12)]
            for number in range(12):
                payload = b'"%s"' % (b"x" * 2**20)
                here.publish(of_run(f"r{number}", f"t{number}"), "values", payload, resumable=True)
            large = b'"%s"' % (b"y" * 6 * 2**20)
            here.publish(of_run("r0", "t0"), "values", large, resumable=True)
            assert [len(await data(reader)) for reader in readers] == [2**20 + 2] * 12
            assert await data(readers[0]) == large


async def test_room_is_made_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_publisher, "ALL_QUEUES_BYTES", 100_000)
    here = RedisBus("redis://127.0.0.1:1/0")
    freed = 0
    for number in range(300):
        before = here._publisher._size
        here.publish(of_run(f"r{number}", f"t{number}"), "values", b"x" * 1_000)
        assert here._publisher._size <= 100_000
        freed += here._publisher._size < before
    # Each time for several more.
    assert 0 < freed <= 200 / 8
    assert not here._publisher._queues["t0"].events
    assert here._publisher._queues["t299"].events
