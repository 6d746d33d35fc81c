"""The publisher of a process: many threads, a Redis that loses data, and a slow connection."""

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
    """Start with an empty Redis and check it more often than by default."""
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
    """Publish an event on each of many threads."""
    for number in range(THREADS):
        here.publish(of_run(f"run-{number}", f"thread-{number}"), "values", b"1", resumable=True)
    assert await here._publisher.flush(PATIENCE)


async def looked(here: RedisBus, times: int) -> None:
    """Wait until the publisher has checked Redis so many times from now on."""
    looks = here._publisher._looks + times
    await until(lambda: here._publisher._looks >= looks)


def streams(valkey: Valkey) -> int:
    return len(valkey.do("KEYS", "*:events"))


def asked(valkey: Valkey) -> int:
    """Return the number of calls of the script since the statistics were reset."""
    found = valkey.do("INFO", "commandstats").get("cmdstat_evalsha", {"calls": 0})
    return int(found["calls"])


async def test_check_of_used_threads_costs_one_page(valkey: Valkey) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        # The republish after an earlier failure is complete.
        await until(lambda: not here._publisher._hurry)
        failures = here.link.failures
        await looked(here, 1)
        before = here._publisher._looks
        valkey.do("CONFIG", "RESETSTAT")
        await looked(here, 5)
        calls = asked(valkey)
        assert here.link.failures == failures
        assert 0 < calls <= (here._publisher._looks - before + 1) * PAGE


async def test_emptied_redis_gets_every_thread_and_new_events(
    valkey: Valkey,
) -> None:
    async with bus(valkey.url) as here, bus(valkey.url) as there:
        await used(here)
        reader = await there.follow_run(of_run("run-new", "thread-new"))
        await asyncio.to_thread(valkey.flush)
        # Those threads get no more events.
        await until(lambda: streams(valkey) >= THREADS)
        here.publish(of_run("run-new", "thread-new"), "values", b"2", resumable=True)
        assert await data(reader) == b"2"
        late = await there.follow_run(of_run("run-7", "thread-7"), START)
        assert await data(late) == b"1"


async def test_restored_redis_gets_the_missing_rest(
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


async def test_single_lost_stream_is_republished(valkey: Valkey) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        known = here.link.stream("thread-7"), here.link.meta("thread-7")
        valkey.do("DEL", *known)
        await until(lambda: bool(valkey.do("EXISTS", known[0])))


async def test_foreign_value_in_the_marker_key_does_no_harm(
    valkey: Valkey,
) -> None:
    async with bus(valkey.url) as here:
        await used(here)
        name = here.link.name(f"alive:{here._publisher._process}")
        script = "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'garbage')"
        valkey.do("EVAL", script, 1, name)
        await until(lambda: valkey.do("TYPE", name) == b"string")
        await until(lambda: here.link.well)


async def test_stream_of_a_silent_active_run_outlives_those_of_ended_runs(
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


async def test_backlog_is_published_over_a_slow_connection(valkey: Valkey) -> None:
    """The whole backlog, or one large event, would exceed the timeout of an answer."""
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


async def test_eviction_frees_room_for_several_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_publisher, "ALL_QUEUES_BYTES", 100_000)
    here = RedisBus("redis://127.0.0.1:1/0")
    freed = 0
    for number in range(300):
        before = here._publisher._size
        here.publish(of_run(f"r{number}", f"t{number}"), "values", b"x" * 1_000)
        assert here._publisher._size <= 100_000
        freed += here._publisher._size < before
    # Each eviction frees room for several entries.
    assert 0 < freed <= 200 / 8
    assert not here._publisher._queues["t0"].events
    assert here._publisher._queues["t299"].events
