"""The bus of several processes: order, replay, wake-ups and control, also during faults of Redis.

Each bus here stands for a process: the buses share only Redis.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis

from langgraph_runtime_sql.errors import BadRedis
from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.bus import Control
from langgraph_runtime_sql.events.event import DONE, START, Event, Order
from langgraph_runtime_sql.events.redis import append as redis_append
from langgraph_runtime_sql.events.redis import reader as redis_reader
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from tests.support.processes import free_port
from tests.support.redis import Valkey, started
from tests.support.streams import of_run, of_thread
from threadhold.admin import doctor_redis

PATIENCE = 60.0
FIFTH, SIXTH = (f"00000000-0000-0000-0000-00000000000{n}" for n in (5, 6))


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@asynccontextmanager
async def buses(
    server: Valkey, count: int = 2, *, answer_seconds: float = 30.0
) -> AsyncIterator[list[RedisBus]]:
    """Start the buses of several processes, and stop them at the end of the block.

    Args:
        answer_seconds: The timeout of answers from Redis. On a busy machine, a working Redis may
            take seconds. Tests in which Redis does not answer use a shorter timeout.
    """
    made = [
        RedisBus(server.url, keep_seconds=60, answer_seconds=answer_seconds) for _ in range(count)
    ]
    try:
        for each in made:
            await each.start()
        yield made
    finally:
        for each in made:
            await each.stop()


async def read(reader: Subscription, count: int) -> list[Event]:
    """Return the next events."""
    async with asyncio.timeout(PATIENCE):
        found = [await reader.get() for _ in range(count)]
    return [event for event in found if event is not None]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def moment(*here: RedisBus) -> None:
    """Wait for longer than any process's clock here deviates from that of Redis."""
    for each in here:
        await each.link.commands()
    await asyncio.sleep(0.01 + max(each.link._clock_error for each in here) / 10**9)


def payloads(events: list[Event]) -> list[bytes]:
    return [event.data for event in events]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def publish(here: RedisBus, name: str, first: int, last: int, *, resumable: bool = True) -> None:
    for data in numbered(first, last):
        here.publish(of_run(f"run-{name}", f"thread-{name}"), "values", data, resumable=resumable)


async def test_bus_connects_to_redis_by_unix_socket(tmp_path: Path) -> None:
    # The path of a socket may have 107 characters; the test's folder is longer.
    with TemporaryDirectory() as folder, started(tmp_path, unixsocket=f"{folder}/s") as server:
        for url in (f"unix://{folder}/s?db=1", f"unix://{folder}/none"):
            here = RedisBus(url, keep_seconds=60)
            await here.start()
            live = here.subscribe_run(of_run("run", "thread"))
            here.publish(of_run("run", "thread"), "values", b"1", resumable=False, attempt=0)
            assert payloads(await read(live, 1)) == [b"1"]
            await here.stop()
        with redis.Redis.from_url(f"unix://{folder}/s?db=1") as client:
            assert client.dbsize()
        assert not server.do("DBSIZE")


async def test_events_reach_followers_in_another_process_in_order(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        run = await b.follow_run(of_run("run-1", "thread-1"))
        thread = await b.follow_thread(of_thread("thread-1"))
        publish(a, "1", 0, 2_000, resumable=False)
        a.run_ended(of_run("run-1", "thread-1"), resumable=False)
        for reader in (run, thread):
            events = await read(reader, 2_001)
            assert payloads(events) == [*numbered(0, 2_000), DONE]
            assert [event.order for event in events] == sorted({event.order for event in events})
            reader.close()


async def test_local_events_arrive_once_without_waiting_for_redis(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        reader = await a.follow_run(of_run("run-2", "thread-2"))
        publish(a, "2", 0, 3)
        assert payloads(reader.waiting()) == numbered(0, 3)
        publish(b, "2", 3, 4)
        assert payloads(await read(reader, 4)) == numbered(0, 4)
        assert await a.settle(reader)
        assert not reader.waiting()


async def test_resuming_on_any_process_has_no_gap_and_no_repeat(valkey: Valkey) -> None:
    async with buses(valkey, 3) as (a, b, c):
        reader = await b.follow_run(of_run("run-3", "thread-3"), START)
        publish(a, "3", 0, 50)
        seen = await read(reader, 20)
        reader.close()
        for here in (a, b, c):
            resumed = await here.follow_run(of_run("run-3", "thread-3"), seen[-1].order)
            assert payloads(await read(resumed, 30)) == numbered(20, 50)
            assert await here.settle(resumed)
            assert not resumed.waiting()
            resumed.close()
        later = [
            await here.follow_run(of_run("run-3", "thread-3"), seen[-1].order) for here in (a, b, c)
        ]
        publish(a, "3", 50, 51)
        for resumed in later:
            assert payloads(await read(resumed, 31)) == numbered(20, 51)
        for each in [await here.follow_thread(of_thread("thread-3"), START) for here in (b, c)]:
            assert payloads(await read(each, 51)) == numbered(0, 51)


async def test_only_resumable_events_are_replayed(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        publish(a, "4", 0, 5, resumable=False)
        await a.flush()
        await moment(b)
        reader = await b.follow_run(of_run("run-4", "thread-4"), START)
        assert not reader.waiting()
        publish(a, "4", 5, 6, resumable=False)
        assert payloads(await read(reader, 1)) == numbered(5, 6)


async def test_wake_ups_and_control_reach_other_processes(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        woken: list[None] = []
        heard: list[Control] = []
        # A subscription begins with a wake-up, because earlier messages were not received.
        b.on_queued(lambda: woken.append(None))
        await until(lambda: bool(woken))
        woken.clear()
        a.wake()
        await until(lambda: bool(woken))
        forget = b.listen(FIFTH, heard.append)
        a.send_control(FIFTH, Control("rollback", "why"))
        await until(lambda: bool(heard))
        assert heard == [Control("rollback", "why")]
        forget()
        a.send_control(SIXTH, Control("interrupt", None))
        a.wake()
        woken.clear()
        await until(lambda: bool(woken) or SIXTH in b._controls)
        await until(lambda: SIXTH in b._controls)
        b.listen(SIXTH, heard.append)
        assert heard[1:] == [Control("interrupt", None)]


async def test_events_of_a_superseded_attempt_reach_no_other_process(valkey: Valkey) -> None:
    async with buses(valkey, 3) as (a, b, c):
        reader = await c.follow_run(of_run("run-7", "thread-7"), START)
        a.publish(of_run("run-7", "thread-7"), "values", b'"first"', resumable=True, attempt=1)
        assert payloads(await read(reader, 1)) == [b'"first"']
        b.publish(of_run("run-7", "thread-7"), "values", b'"second"', resumable=True, attempt=2)
        assert payloads(await read(reader, 1)) == [b'"second"']
        a.publish(of_run("run-7", "thread-7"), "values", b'"late"', resumable=True, attempt=1)
        await a.flush()
        b.publish(of_run("run-7", "thread-7"), "values", b'"third"', resumable=True, attempt=2)
        assert payloads(await read(reader, 1)) == [b'"third"']
        assert not reader.broken
        resumed = await b.follow_run(of_run("run-7", "thread-7"), START)
        assert [e for e in payloads(resumed.waiting()) if e == b'"late"'] == []


async def test_attempt_stays_superseded_after_many_other_runs_of_its_thread(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_runtime_sql.events.redis import append as redis_append

    monkeypatch.setattr(redis_append, "RUNS", 10)
    async with buses(valkey, 3) as (a, b, c):
        redis, known = await a.link.commands(), a.link.meta("thread-21")

        async def fields(*kinds: str) -> list[str]:
            names = [name.decode() for name in await redis.hkeys(known)]
            return [name for name in names if name.startswith(kinds)]

        reader = await c.follow_run(of_run("run-21", "thread-21"), START)
        b.publish(of_run("run-21", "thread-21"), "values", b'"second"', resumable=True, attempt=2)
        await b.flush()
        # Entries of processes that are long gone.
        old = {f"gone-{n}": 5 for n in range(30)}
        await redis.hset(known, mapping=old)
        for number in range(50):
            run, ends = f"run-21-{number}", number % 10
            a.publish(of_run(run, "thread-21"), "values", b"1", resumable=True, attempt=1)
            if ends:
                a.run_ended(of_run(run, "thread-21"), resumable=True)
            await a.flush()
        a.publish(of_run("run-21", "thread-21"), "values", b'"late"', resumable=True, attempt=1)
        await a.flush()
        b.publish(of_run("run-21", "thread-21"), "values", b'"third"', resumable=True, attempt=2)
        assert payloads(await read(reader, 2)) == [b'"second"', b'"third"']
        assert not reader.broken
        assert "run:run-21" in await fields("run:")
        assert len(await fields("run:")) <= 10
        assert await fields("gone") == []
        # Two processes, the runs, when each was last seen, the size, the creation and the last rank.
        assert len(await fields("")) <= 2 * (10 + 2) + 3


async def test_state_about_unfinished_runs_is_bounded(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_runtime_sql.events.redis import append as redis_append

    monkeypatch.setattr(redis_append, "RUNS", 10)
    async with buses(valkey) as (a, b):
        reader = await b.follow_thread(of_thread("thread-22"))
        for number in range(50):
            a.publish(of_run(f"run-22-{number}", "thread-22"), "values", b"%d" % number, attempt=1)
        assert payloads(await read(reader, 50)) == numbered(0, 50)
        redis = await a.link.commands()
        names = await redis.hkeys(a.link.meta("thread-22"))
        assert len([name for name in names if name.startswith(b"run:")]) <= 10
        assert len(names) <= 2 * (10 + 1) + 3


async def test_keys_are_prefixed_and_expire_and_streams_are_bounded(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_runtime_sql.events.redis import append as redis_append

    monkeypatch.setattr(redis_append, "STREAM_BYTES", 100_000)
    async with buses(valkey, 1) as (a,):
        for _ in range(100):
            a.publish(
                of_run("run-8", "thread-8"), "values", b'"%s"' % (b"x" * 10_000), resumable=True
            )
        await a.flush()
        redis = await a.link.commands()
        assert 2 <= await redis.xlen(a.link.stream("thread-8")) <= 10
        keys = [key async for key in redis.scan_iter("*")]
        assert all(key.startswith(b"threadhold:") for key in keys)
        for key in keys:
            # -1 means that the key never expires; a key of an earlier test may just have expired.
            left = await redis.ttl(key)
            assert left != -1 and left <= 60, (key, left)


async def test_events_are_republished_after_redis_restarts_or_loses_data(valkey: Valkey) -> None:
    async with buses(valkey, answer_seconds=1.0) as (a, b):
        reader = await b.follow_run(of_run("run-9", "thread-9"))
        publish(a, "9", 0, 10)
        assert payloads(await read(reader, 10)) == numbered(0, 10)
        await asyncio.to_thread(valkey.flush)
        publish(a, "9", 10, 20)
        assert payloads(await read(reader, 10)) == numbered(10, 20)
        resumed = await b.follow_run(of_run("run-9", "thread-9"), START)
        assert payloads(await read(resumed, 20)) == numbered(0, 20)
        await asyncio.to_thread(valkey.stop)
        publish(a, "9", 20, 30)
        await until(lambda: not a.link.well)
        assert a.recheck_seconds < bus.RECHECK_SECONDS
        await asyncio.to_thread(valkey.start)
        for each in (reader, resumed):
            assert payloads(await read(each, 10)) == numbered(20, 30)
            assert not each.broken
        await until(lambda: a.link.well)


async def test_resuming_during_a_republish_repeats_no_event(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        reader = await b.follow_run(of_run("run-15", "thread-15"), START)
        publish(a, "15", 0, 5)
        seen = await read(reader, 5)
        reader.close()
        await asyncio.to_thread(valkey.flush)
        resumed = await b.follow_run(of_run("run-15", "thread-15"), seen[2].order)
        publish(a, "15", 5, 6)
        assert payloads(await read(resumed, 3)) == numbered(3, 6)
        assert await b.settle(resumed)
        assert not resumed.waiting()


async def test_new_subscriber_does_not_wait_for_the_next_poll(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_reader, "BLOCK_MILLISECONDS", int(10 * PATIENCE * 1_000))
    async with buses(valkey) as (a, b):
        for name in ("18", "19"):
            reader = await b.follow_run(of_run(f"run-{name}", f"thread-{name}"))
            publish(a, name, 0, 1)
            assert payloads(await read(reader, 1)) == numbered(0, 1)


async def test_thread_subscription_starts_at_the_request(valkey: Valkey) -> None:
    async with buses(valkey) as (a, b):
        publish(a, "17", 0, 3)
        await a.flush()
        await moment(b)
        asked_at = time.time_ns()
        await moment(b)
        publish(a, "17", 3, 5)
        await a.flush()
        reader = await b.follow_thread(of_thread("thread-17"), None, asked_at)
        publish(a, "17", 5, 6)
        assert payloads(await read(reader, 3)) == numbered(3, 6)
        assert not reader.broken


async def test_events_of_a_superseded_attempt_do_not_follow_those_of_the_next(
    valkey: Valkey,
) -> None:
    """Its events wait for Redis, while local subscribers get those of the next attempt at once."""

    def say(here: RedisBus, number: int, attempt: int) -> Event:
        data = b"%d" % number
        return here.publish(
            of_run("run-29", "thread-29"), "values", data, resumable=True, attempt=attempt
        )

    async with buses(valkey) as (a, b):
        reader = await b.follow_run(of_run("run-29", "thread-29"))
        # All in one step of the loop: Redis has none of it when the other attempt's event arrives.
        say(b, 0, 2)
        late = say(a, 1, 1)
        b._receive("thread-29", late, late.order, False)
        say(b, 2, 2)
        assert payloads(await read(reader, 2)) == [b"0", b"2"]
        late = say(a, 3, 1)
        b._receive("thread-29", late, late.order, False)
        b.run_ended(of_run("run-29", "thread-29"), resumable=True)
        assert [event.is_end for event in await read(reader, 1)] == [True]


async def test_live_thread_subscriber_gets_no_old_events_after_a_republish(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with buses(valkey) as (a, b):
        with monkeypatch.context() as patch:
            real = time.time_ns
            patch.setattr(bus.time, "time_ns", lambda: real() - 60 * 10**9)
            publish(a, "28", 0, 5)
        await a.flush()
        await asyncio.to_thread(valkey.flush)
        reader = await b.follow_thread(of_thread("thread-28"))
        publish(a, "28", 5, 7)
        assert payloads(await read(reader, 2)) == numbered(5, 7)
        # The old events are still there for a subscriber that asks for them.
        whole = await b.follow_thread(of_thread("thread-28"), START)
        assert payloads(await read(whole, 7)) == numbered(0, 7)


async def test_events_follow_those_of_other_processes_despite_wrong_clocks(
    valkey: Valkey,
) -> None:
    async with buses(valkey, 3) as (a, b, c):
        for here, ahead in ((a, 0), (b, -3), (c, -6)):
            await here.flush()
            here.link.skew = ahead * 10**9
        publish(a, "16", 0, 3)
        await a.flush()
        # A subscriber has seen the earlier events; the next attempt has asked for them.
        reader = await b.follow_run(of_run("run-16", "thread-16"), START)
        publish(b, "16", 3, 5)
        await b.flush()
        await c.catch_up(of_thread("thread-16"))
        publish(c, "16", 5, 8)
        events = await read(reader, 8)
        assert payloads(events) == numbered(0, 8)
        assert [event.order for event in events] == sorted({event.order for event in events})
        resumed = await a.follow_run(of_run("run-16", "thread-16"), events[3].order)
        assert payloads(await read(resumed, 4)) == numbered(4, 8)


async def test_reading_a_run_whose_beginning_is_lost_reports_a_gap(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_append, "STREAM_BYTES", 2_000)
    async with buses(valkey) as (a, b):
        earlier = [
            a.publish(of_run("run-30", "thread-30"), "metadata", b"{}", resumable=True, attempt=1),
            a.publish(of_run("run-30", "thread-30"), "values", b"1", resumable=True, attempt=1),
        ]
        await a.flush()
        # A subscriber that resumes after another run, or before all, misses nothing of this one.
        for after in (START, (5, 0)):
            reader = await b.follow_run(of_run("run-30", "thread-30"), after, whole=True)
            assert await read(reader, 2) == earlier
        for _ in range(50):
            a.publish(
                of_run("run-30", "thread-30"), "values", b"1" * 100, resumable=True, attempt=1
            )
        await a.flush()

        async def first_two(after: Order) -> list[bool]:
            reader = await b.follow_run(of_run("run-30", "thread-30"), after, whole=True)
            return [each.is_loss for each in await read(reader, 2)]

        # Each subscriber waits some seconds for a republish; they wait at the same time.
        found = await asyncio.gather(*map(first_two, (START, (5, 0), earlier[0].order)))
        assert found == [[True, False]] * 3


async def test_paused_redis_delays_events_and_loses_none(valkey: Valkey) -> None:
    async with buses(valkey, answer_seconds=1.0) as (a, b):
        reader = await b.follow_run(of_run("run-10", "thread-10"))
        publish(a, "10", 0, 5)
        assert payloads(await read(reader, 5)) == numbered(0, 5)
        with valkey.paused():
            publish(a, "10", 5, 10)
            await until(lambda: not a.link.well)
            # No publisher waits for Redis for long.
            async with asyncio.timeout(PATIENCE):
                other = await b.follow_run(of_run("run-11", "thread-11"))
        publish(a, "10", 10, 15)
        publish(a, "11", 0, 5)
        assert payloads(await read(reader, 10)) == numbered(5, 15)
        assert payloads(await read(other, 5)) == numbered(0, 5)


async def test_subscribers_get_an_error_for_lost_events(valkey: Valkey) -> None:
    async with buses(valkey, 3) as (a, b, c):
        reader = await c.follow_run(of_run("run-12", "thread-12"), START)
        publish(a, "12", 0, 5)
        seen = await read(reader, 5)
        # First the process that published is gone, then the data of Redis.
        await a.stop()
        await asyncio.to_thread(valkey.flush)
        publish(b, "12", 5, 6)
        assert payloads(await read(reader, 1)) == numbered(5, 6)
        resumed = await c.follow_run(of_run("run-12", "thread-12"), seen[2].order)
        [first] = await read(resumed, 1)
        assert first.is_loss
        assert resumed.broken


async def test_buffer_for_republishing_is_bounded(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_runtime_sql.events.redis import publisher as redis_publisher

    monkeypatch.setattr(redis_publisher, "QUEUE_BYTES", 50_000)
    async with buses(valkey, answer_seconds=1.0) as (a, b):
        reader = await b.follow_run(of_run("run-13", "thread-13"))
        publish(a, "13", 0, 1)
        await read(reader, 1)
        with valkey.paused():
            for _ in range(100):
                a.publish(of_run("run-13", "thread-13"), "values", b'"%s"' % (b"x" * 10_000))
            assert a._publisher._size < 100_000
        events = await read(reader, 1)
        async with asyncio.timeout(PATIENCE):
            while not events[-1].is_loss:
                events += await read(reader, 1)
        assert len(events) < 100


async def test_bus_starts_without_redis(valkey: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.to_thread(valkey.stop)
    with ExitStack() as stack:
        stack.callback(valkey.start)
        async with buses(valkey, answer_seconds=1.0) as (a, b):
            reader = await a.follow_run(of_run("run-14", "thread-14"))
            publish(a, "14", 0, 5)
            assert payloads(await read(reader, 5)) == numbered(0, 5)
            await until(lambda: not a.link.well)
            await until(lambda: a.link.failures > 3)
            told = [r for r in caplog.records if "does not answer" in r.message]
            assert len(told) <= 2
            stack.close()
            late = await b.follow_run(of_run("run-14", "thread-14"), START)
            assert payloads(await read(late, 5)) == numbered(0, 5)


async def test_deployments_on_one_redis_are_isolated(valkey: Valkey) -> None:
    blue, green = (
        RedisBus(valkey.url, keep_seconds=60, prefix=f"deployment:{name}", answer_seconds=30.0)
        for name in ("blue", "green")
    )
    woken: list[str] = []
    green.on_queued(lambda: woken.append("green"))
    async with buses(valkey) as (a, b):
        b.on_queued(lambda: woken.append("b"))
        for each in (blue, green):
            await each.start()
        try:
            # A subscription begins with a wake-up.
            await until(lambda: "green" in woken)
            woken.clear()
            readers = [
                await each.follow_run(of_run("run-19", "thread-19"), START) for each in (green, b)
            ]
            blue.wake()
            blue.send_control(FIFTH, Control("interrupt", None))
            publish(blue, "19", 0, 3)
            await blue.flush()
            a.wake()
            publish(a, "19", 3, 4)
            assert payloads(await read(readers[1], 1)) == numbered(3, 4)
            await until(lambda: "b" in woken)
            assert "green" not in woken
            assert not readers[0].waiting()
            assert FIFTH not in green._controls
            assert await green.follow_run(of_run("run-19", "thread-19"), START) is not None
        finally:
            for each in (blue, green):
                await each.stop()


GARBAGE: list[dict[str, str | bytes | int]] = [
    {"x": "y"},
    {"o": "somebody"},
    {"o": "somebody", "n": "many"},
    {"o": "somebody", "n": 1},
    {"o": "somebody", "n": 2, "h": "not json", "d": "1"},
    {"o": "somebody", "n": 3, "h": "{}", "d": "1"},
    {"o": "somebody", "n": 4, "h": '[1,2,"run-16","values"]', "d": "1"},
    {"o": "somebody", "n": 5, "h": '["1",2,"run-16","values",true]', "d": "1"},
    {"o": "somebody", "n": 6, "h": '[1,2,16,"values",true]', "d": "1"},
    {"o": "somebody", "n": 7, "h": '[1,2,"run-16",["values"],true]', "d": "1"},
    {"o": "somebody", "n": 8, "h": '[1,2,"run-16","values",true]', "d": "not\n\nevent: json"},
    {"o": "somebody", "n": 9, "h": '[1,2,"run-16","values",true]'},
    {"o": "somebody", "n": 10, "h": '[1,2,"run-16","control",true]', "d": "explode"},
    {"o": "somebody", "n": 11, "h": b"\x80\x04cos\nsystem\n", "d": b"\x80\x04."},
    {"o": "somebody", "n": 12, "h": '[1,2,"run-16","values",true]', "d": b"\xff" * 5_000_000},
]


async def test_foreign_entries_in_redis_are_ignored(
    valkey: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    async with buses(valkey) as (a, b):
        reader = await b.follow_run(of_run("run-16", "thread-16"), START)
        publish(a, "16", 0, 2)
        seen = await read(reader, 2)
        redis = await a.link.commands()
        for fields in GARBAGE:
            await redis.xadd(a.link.stream("thread-16"), fields)  # type: ignore[arg-type]
        channels = ("wake", "control", "drop")
        for said in (b"", b"{}", b"null", b"[1]", b"\xff", b'["x","run","interrupt",null]'):
            for channel in channels:
                await redis.publish(a.link.name(channel), said)
        for rest in ('"explode",null', '"interrupt",1', '"interrupt",{}', "[],null"):
            await redis.publish(a.link.name("control"), f'["x","{FIFTH}",{rest}]')
        for rest in ("1,2", '"thread-16",null', '"thread-16"', "{},[]"):
            await redis.publish(a.link.name("drop"), f'["x",{rest}]')
        publish(a, "16", 2, 4)
        assert payloads(await read(reader, 2)) == numbered(2, 4)
        a.send_control(SIXTH, Control("interrupt", None))
        await until(lambda: SIXTH in b._controls)
        assert FIFTH not in b._controls
        resumed = await b.follow_run(of_run("run-16", "thread-16"), seen[0].order)
        assert payloads(await read(resumed, 3)) == numbered(1, 4)
        assert not reader.broken
        assert not resumed.broken
        assert "Dropped a foreign" in caplog.text


@pytest.mark.parametrize("spoil", ["stream", "meta", "numbers"])
async def test_foreign_key_in_place_of_a_stream_is_removed(valkey: Valkey, spoil: str) -> None:
    key = f"thread-17-{spoil}"
    async with buses(valkey) as (a, b):
        reader = await b.follow_run(of_run("run-17", key))
        other = await b.follow_run(of_run("run-18", "thread-18"))
        a.publish(of_run("run-17", key), "values", b"0", resumable=True)
        assert payloads(await read(reader, 1)) == numbered(0, 1)
        redis = await a.link.commands()
        if spoil == "numbers":
            await redis.hset(a.link.meta(key), mapping={"size": "x", "run:run-17": "y"})
        else:
            name = a.link.stream(key) if spoil == "stream" else a.link.meta(key)
            await redis.set(name, "garbage")
        # Events of other threads do not wait for it, and the stream is restored soon.
        a.publish(of_run("run-17", key), "values", b"1", resumable=True, attempt=1)
        a.publish(of_run("run-18", "thread-18"), "values", b"2")
        assert payloads(await read(other, 1)) == numbered(2, 3)
        late = await b.follow_run(of_run("run-17", key), START)
        async with asyncio.timeout(PATIENCE):
            while payloads(late.waiting()) != numbered(0, 2):
                late.close()
                await asyncio.sleep(0.1)
                late = await b.follow_run(of_run("run-17", key), START)
        await until(lambda: a.link.well and b.link.well)


async def test_stream_removed_by_a_subscriber_is_republished(valkey: Valkey) -> None:
    """The subscriber finds it before the publisher sends anything more."""
    async with buses(valkey) as (a, b):
        reader = await b.follow_run(of_run("run-20", "thread-20"))
        publish(a, "20", 0, 1)
        assert payloads(await read(reader, 1)) == numbered(0, 1)
        redis = await a.link.commands()
        await redis.set(a.link.stream("thread-20"), "garbage")
        await until(lambda: reader.broken)
        publish(a, "20", 1, 2)
        await a.flush()
        late = await b.follow_run(of_run("run-20", "thread-20"), START)
        assert payloads(await read(late, 2)) == numbered(0, 2)


async def test_doctor_reports_what_is_wrong_with_redis(valkey: Valkey) -> None:
    async def examine(url: str) -> str:
        found = await asyncio.to_thread(doctor_redis.examine, url, None)
        assert all(each.what == "redis" and "secret" not in each.id for each in found)
        return " ".join(each.why for each in found)

    assert await examine(valkey.url) == ""
    address = valkey.url.partition("://")[2]
    assert "user and password" in await examine(f"redis://somebody:secret@{address}")
    await asyncio.to_thread(valkey.do, "CONFIG", "SET", "maxmemory", 1)
    try:
        assert "does not take" in await examine(valkey.url)
    finally:
        await asyncio.to_thread(valkey.do, "CONFIG", "SET", "maxmemory", 0)
    assert "does not answer" in await examine(f"redis://127.0.0.1:{free_port()}/0")
    with valkey.paused():
        assert "does not answer" in await examine(valkey.url)
    left = await asyncio.to_thread(valkey.do, "KEYS", "*:doctor:*")
    for key in left:
        assert await asyncio.to_thread(valkey.do, "PTTL", key) <= 1_000


async def test_unsuitable_redis_is_refused(valkey: Valkey) -> None:
    address = valkey.url.partition("://")[2]
    wrong = RedisBus(f"redis://somebody:secret@{address}", answer_seconds=1.0)
    with pytest.raises(BadRedis, match="user and password") as refused:
        await wrong.start()
    assert "secret" not in str(refused.value)
    await wrong.stop()
    none = RedisBus(valkey.url.replace("/0", "/9999"), answer_seconds=1.0)
    with pytest.raises(BadRedis, match="out of range"):
        await none.start()
    await none.stop()


async def test_unreachable_redis_is_reported_without_its_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = RedisBus(f"redis://somebody:secret@127.0.0.1:{free_port()}/0", answer_seconds=1.0)
    await here.start()
    try:
        await until(lambda: not here.link.well)
        assert here.health() == {"redis": "away"}
    finally:
        await here.stop()
    assert "does not answer" in caplog.text
    assert "secret" not in caplog.text


async def test_events_of_a_deleted_thread_are_deleted_in_every_process(valkey: Valkey) -> None:
    key = of_run("run-40", "thread-40")
    async with buses(valkey) as (a, b):
        followers = [await each.follow_run(key, START) for each in (a, b)]
        followers += [await each.follow_thread(key.thread, START) for each in (a, b)]
        # Both processes have events to republish.
        a.publish(key, "values", b"1", resumable=True)
        b.publish(of_run("run-41", "thread-40"), "values", b"2", resumable=True)
        publish(a, "42", 0, 1)
        for reader in followers:
            await read(reader, 1 if reader.key == key else 2)
        assert valkey.do("EXISTS", a.link.stream(key.topic), a.link.meta(key.topic)) == 2
        a.drop(key.thread)
        await a.flush()
        assert valkey.do("EXISTS", a.link.stream(key.topic), a.link.meta(key.topic)) == 0
        for reader in followers:
            async with asyncio.timeout(PATIENCE):
                assert await reader.get() is None
            assert reader.dropped
            reader.close()
        await until(lambda: not any(each._publisher._queues.get(key.topic) for each in (a, b)))
        # A new thread with the same id starts without events, and works.
        again = await b.follow_thread(key.thread, START)
        assert not again.waiting()
        sent = b.publish(of_run("run-43", "thread-40"), "values", b"3", resumable=True)
        assert payloads(await read(again, 1)) == [sent.data]
        again.close()
        others = await b.follow_run(of_run("run-42", "thread-42"), START)
        assert payloads(await read(others, 1)) == numbered(0, 1)
        others.close()


async def test_events_of_a_deleted_run_are_deleted_in_every_process(valkey: Valkey) -> None:
    gone, stays = of_run("run-50", "thread-50"), of_run("run-51", "thread-50")
    async with buses(valkey) as (a, b):
        for number in range(3):
            for key in (gone, stays):
                a.publish(key, "values", b"%d" % number, resumable=True)
        follower = await b.follow_run(gone, START)
        assert payloads(await read(follower, 3)) == numbered(0, 3)
        b.drop(gone)
        await b.flush()
        assert await follower.get() is None
        follower.close()
        entries = str(valkey.do("XRANGE", a.link.stream(gone.topic), "-", "+"))
        assert gone.run_id not in entries
        assert stays.run_id in entries
        await until(lambda: not a._logs.of_run(gone))
        # A republish after a data loss of Redis does not contain the run either.
        valkey.do("DEL", a.link.stream(gone.topic), a.link.meta(gone.topic))
        a.publish(stays, "values", b"3", resumable=True)
        async with await b.follow_run(stays, START) as reader:
            assert payloads(await read(reader, 4)) == numbered(0, 4)
        assert gone.run_id not in str(valkey.do("XRANGE", a.link.stream(gone.topic), "-", "+"))


async def test_deletion_during_an_outage_of_redis_is_repeated_after_it(tmp_path: Path) -> None:
    key = of_run("run", "thread")
    with started(tmp_path) as own:
        async with buses(own, 1, answer_seconds=1.0) as (here,):
            here.publish(key, "values", b"1", resumable=True)
            await here.flush()
            with own.paused():
                here.drop(key.thread)
            async with asyncio.timeout(PATIENCE):
                while own.do("EXISTS", here.link.stream(key.topic), here.link.meta(key.topic)):
                    await asyncio.sleep(0.05)


async def test_tenants_share_no_stream_even_with_equal_ids(valkey: Valkey) -> None:
    mine, theirs = (StreamKey(tenant, "thread-60", "run-60") for tenant in ("a/b}", "c"))
    async with buses(valkey) as (a, b):
        readers = [await each.follow_run(theirs, START) for each in (a, b)]
        readers += [await each.follow_thread(theirs.thread, START) for each in (a, b)]
        a.publish(mine, "values", b"1", resumable=True)
        async with await b.follow_run(mine, START) as reader:
            assert payloads(await read(reader, 1)) == [b"1"]
        for reader in readers:
            assert reader.waiting() == []
            reader.close()
