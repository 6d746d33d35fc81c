"""Streams of threads over several processes have one order, at every sender and every reader.

Each bus here stands for a process: the buses share only Redis.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.redis import (
    append as redis_append,
)
from langgraph_runtime_sql.events.redis import (
    bus as redis_bus,
)
from langgraph_runtime_sql.events.redis import (
    publisher as redis_publisher,
)
from langgraph_runtime_sql.events.redis import (
    reader as redis_reader,
)
from langgraph_runtime_sql.events.redis.append import Append
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.events.redis.subscription import ThreadSubscription
from langgraph_runtime_sql.events.subscription import Subscription
from tests.integration.events.test_redis_bus import buses, read, until
from tests.support.redis import Valkey, started
from tests.support.streams import of_run, of_thread

PATIENCE = 60.0


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with started(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """Create a thread for one test."""
    return f"thread-of-{request.node.name}"


class Again:
    """Controls how long readers wait for a republish after a data loss of Redis.

    Readers wait until `told`, independently of the clock. After it, no reader waits any more.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._wait(10 * PATIENCE)
        patch.setattr(redis_publisher, "LOOK_SECONDS", 0.2)

    def _wait(self, seconds: float) -> None:
        for module in (redis_bus, redis_reader):
            self._patch.setattr(module, "RESEND_SECONDS", seconds)

    async def silent(self, here: list[RedisBus]) -> list[Any]:
        """Stop the checks for lost data. Return the replaced functions."""

        async def ask(_: Redis) -> None:
            await asyncio.sleep(0.01)

        asks = [each._publisher._ask for each in here]
        for each in here:
            each._publisher._ask = ask  # type: ignore[method-assign]
        # Anything in progress ends with the next check.
        looks = [each._publisher._looks + 2 for each in here]
        await until(lambda: all(e._publisher._looks >= n for e, n in zip(here, looks, strict=True)))
        return asks

    async def told(self, thread: str, here: list[RedisBus]) -> None:
        """Wait until all processes have republished, and end the wait of the readers."""
        looks = [each._publisher._looks + 2 for each in here]

        def is_told(each: RedisBus, least: int) -> bool:
            behind = each._publisher._hurry or each.is_behind(of_thread(thread))
            return each._publisher._looks >= least and not behind

        await until(lambda: all(map(is_told, here, looks)))
        for each in here:
            for reader in list(each._by_thread.get(thread, ())):
                assert isinstance(reader, ThreadSubscription)
                while not await each.settle(reader):
                    await asyncio.sleep(0.01)
                reader._release()
        self._wait(0.0)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Again:
    return Again(monkeypatch)


class Sender:
    """Publishes events of one run of a thread, each with different data."""

    def __init__(self, here: RedisBus, thread: str, run: str, attempt: int = 1) -> None:
        self.here, self.thread, self.run, self.attempt = here, thread, run, attempt
        self.said = 0

    def say(self, count: int = 1) -> list[bytes]:
        """Publish events. Return their data."""
        data = [
            b'"%s-%d-%d"' % (self.run.encode(), self.attempt, n)
            for n in range(self.said, self.said + count)
        ]
        self.said += count
        for each in data:
            self.here.publish(
                of_run(self.run, self.thread), "values", each, resumable=True, attempt=self.attempt
            )
        return data

    def end(self) -> bytes:
        """Publish the end of the run."""
        self.here.run_ended(of_run(self.run, self.thread), resumable=True)
        return b"done"


def data(events: list[Event]) -> list[bytes]:
    return [event.data for event in events]


async def sent(thread: str, *here: RedisBus) -> None:
    """Wait until Redis has every event published so far on a thread."""
    await until(lambda: not any(each.is_behind(of_thread(thread)) for each in here))


async def waiting(reader: Subscription, last: bytes) -> list[Event]:
    """Return the events up to a given one."""
    found: list[Event] = []
    while not found or found[-1].data != last:
        found += await read(reader, 1)
    return found


async def whole(here: list[RedisBus], thread: str, last: bytes) -> list[Event]:
    """Return the stream of a thread from its beginning; it must be equal at each process."""
    tapes = []
    for each in here:
        async with await each.follow_thread(of_thread(thread), START) as reader:
            tapes.append(await waiting(reader, last))
    ids = [[event.id for event in tape] for tape in tapes]
    assert all(each == ids[0] for each in ids)
    assert [event.order for event in tapes[0]] == sorted({event.order for event in tapes[0]})
    return tapes[0]


async def is_whole_after_each(here: list[RedisBus], thread: str, tape: list[Event]) -> None:
    """Check that resuming after any event, at any process, gives every later event once."""
    for place, seen in enumerate(tape[:-1]):
        for each in here:
            async with await each.follow_thread(of_thread(thread), seen.order) as reader:
                rest = [event.id for event in await read(reader, len(tape) - place - 1)]
                assert rest == [event.id for event in tape[place + 1 :]]
                assert not reader.waiting()
                assert not reader.broken


async def rest(here: RedisBus, thread: str, seen: Event, count: int) -> list[Event]:
    """Return so many events after a given one."""
    async with await here.follow_thread(of_thread(thread), seen.order) as reader:
        found = await read(reader, count)
        assert not reader.broken
    return found


async def test_late_end_of_a_run_is_delivered_after_the_next_has_begun(
    valkey: Valkey, thread: str
) -> None:
    """The end is sent after its commit; another process may start the next run before that."""
    async with buses(valkey, 3) as (a, b, c):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        expected = first.say(3)
        async with await c.follow_thread(of_thread(thread), START) as reader:
            seen = await read(reader, 3)
            tail = a.publish(
                of_run("first", thread), "values", b'"tail"', resumable=True, attempt=1
            )
            await sent(thread, a)
            # The order must not depend on which clock is ahead.
            b.link.skew = a.link.skew + 5 * 10**9
            expected += [b'"tail"', *second.say(2)]
            await sent(thread, b)
            expected.append(first.end())
            await sent(thread, a)
            expected += second.say(2)
            expected.append(second.end())
            seen += await read(reader, len(expected) - 3)
        assert data(seen) == expected
        assert seen[3].order == tail.order
        assert [event.order for event in seen] == sorted({event.order for event in seen})
        tape = await whole([a, b, c], thread, b"done")
        assert data(tape) == expected[: len(tape)]
        await is_whole_after_each([a, b, c], thread, seen)


async def test_local_events_of_the_next_run_follow_the_end_of_the_last(
    valkey: Valkey, thread: str
) -> None:
    """Local events wait for the position that Redis assigns."""
    async with buses(valkey) as (a, b):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        first.say(1)
        async with await b.follow_thread(of_thread(thread), START) as reader:
            [begun] = await read(reader, 1)
            # Each process publishes before the other's events have reached Redis.
            first.say(2)
            first.end()
            second.say(2)
            await sent(thread, a, b)
            found = [begun, *await read(reader, 5)]
        assert {event.data for event in found[1:]} == {
            b'"first-1-1"',
            b'"first-1-2"',
            b"done",
            b'"second-1-0"',
            b'"second-1-1"',
        }
        await is_whole_after_each([a, b], thread, found)


async def test_resuming_after_a_local_event_misses_no_event_that_waited_for_redis(
    valkey: Valkey, thread: str
) -> None:
    async with (
        buses(valkey, 2) as (c, d),
        buses(valkey, 2, answer_seconds=1.0) as (a, b),
    ):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        first.say(2)
        async with await c.follow_thread(of_thread(thread), START) as reader:
            found = await read(reader, 2)
            with valkey.paused():
                first.say(2)
                await until(lambda: not a.link.well)
                first.end()
                second.say(2)
                await until(lambda: not b.link.well)
                assert c.is_behind(of_thread(thread)) is False
                assert a.is_behind(of_thread(thread))
            found += await read(reader, 5)
            second.say(1)
            found += await read(reader, 1)
            assert not reader.broken
        assert len({event.id for event in found}) == 8
        await is_whole_after_each([c, d], thread, found)


async def test_emptied_redis_gets_the_same_order_again(
    valkey: Valkey, thread: str, again: Again
) -> None:
    async with buses(valkey, 3) as (a, b, c):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        first.say(3)
        await sent(thread, a)
        second.say(2)
        await sent(thread, b)
        first.end()
        await sent(thread, a)
        tape = await whole([c], thread, b"done")
        assert len(tape) == 6
        await asyncio.to_thread(valkey.flush)
        # One process publishes at once; the other only republishes.
        second.say(1)
        asked = [
            asyncio.create_task(rest(c, thread, seen, 6 - place)) for place, seen in enumerate(tape)
        ]
        await again.told(thread, [a, b, c])
        tape.append((await asked[-1])[0])
        assert tape[-1].data == b'"second-1-2"'
        for place, task in enumerate(asked):
            assert [event.id for event in await task] == [event.id for event in tape[place + 1 :]]
        await is_whole_after_each([a, b, c], thread, tape)


async def test_subscriber_gets_events_of_an_emptied_redis_in_order(
    valkey: Valkey, thread: str, again: Again
) -> None:
    """The subscriber had not read all events."""
    async with buses(valkey, 3) as (a, b, c):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        first.say(2)
        async with await c.follow_thread(of_thread(thread), START) as reader:
            found = await read(reader, 2)
            assert c._remote is not None
            real = c._remote._process
            # The reader of this process is slow.
            c._remote._process = lambda *_: None  # type: ignore[method-assign]
            first.say(1)
            await sent(thread, a)
            second.say(1)
            await sent(thread, b)
            await asyncio.to_thread(valkey.flush)
            second.say(1)
            await sent(thread, b)
            c._remote._process = real  # type: ignore[method-assign]
            await again.told(thread, [a, b, c])
            found += await read(reader, 3)
        assert data(found[2:]) == [b'"first-1-2"', b'"second-1-0"', b'"second-1-1"']
        assert not reader.broken
        await is_whole_after_each([a, b, c], thread, found)


async def test_restored_redis_gets_the_same_order_again(
    valkey: Valkey, thread: str, again: Again
) -> None:
    """Redis was restored and holds the older part of the events."""
    async with buses(valkey, 3) as (a, b, c):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        first.say(2)
        await sent(thread, a)
        second.say(2)
        await sent(thread, b)
        redis, names = await c.link.commands(), (c.link.stream(thread), c.link.meta(thread))
        for name in names:
            await redis.copy(name, f"{name}:old")
        second.say(1)
        await sent(thread, b)
        first.end()
        await sent(thread, a)
        tape = await whole([c], thread, b"done")
        assert len(tape) == 6
        asks = await again.silent([a, b])
        for name in names:
            await redis.copy(f"{name}:old", name, replace=True)
        for each in (a, b):
            await redis.set(each.link.name(f"alive:{each._publisher._process}"), "0")
        # Redis knows one of them; the other is republished.
        async with await c.follow_thread(of_thread(thread), tape[3].order) as reader:
            asked = asyncio.create_task(rest(c, thread, tape[4], 1))
            for each, ask in zip((a, b), asks, strict=True):
                each._publisher._ask = ask  # type: ignore[method-assign]
            await again.told(thread, [a, b, c])
            assert [event.id for event in await read(reader, 2)] == [e.id for e in tape[4:]]
            assert not reader.broken
            assert [event.id for event in await asked] == [tape[5].id]
        await is_whole_after_each([a, b, c], thread, tape)


async def test_run_taken_over_by_another_process_loses_no_event(
    valkey: Valkey, thread: str, again: Again
) -> None:
    async with buses(valkey, 3) as (a, b, c):
        first, second = Sender(a, thread, "run"), Sender(b, thread, "run", attempt=2)
        async with await c.follow_thread(of_thread(thread), START) as reader:
            expected = first.say(3)
            found = await read(reader, 3)
            await b.catch_up(of_thread(thread))
            expected += second.say(2)
            found += await read(reader, 2)
            # The first process does not know yet, and its events are refused.
            first.say(2)
            await sent(thread, a)
            expected += second.say(1)
            expected.append(second.end())
            found += await read(reader, 2)
        assert data(found) == expected
        await is_whole_after_each([a, b, c], thread, found)
        # Its events are refused again.
        await asyncio.to_thread(valkey.flush)
        asked = asyncio.create_task(rest(c, thread, found[1], 5))
        await again.told(thread, [a, b, c])
        assert [event.id for event in await asked] == [event.id for event in found[2:]]
        await is_whole_after_each([a, b, c], thread, found)


async def test_lost_answer_of_redis_moves_no_event(
    valkey: Valkey, thread: str, monkeypatch: pytest.MonkeyPatch, again: Again
) -> None:
    async with buses(valkey) as (a, b):
        first, second = Sender(a, thread, "first"), Sender(b, thread, "second")
        b.link.skew = a.link.skew + 5 * 10**9
        second.say(1)
        await sent(thread, b)
        real = redis_append._call
        lost = 0

        async def ask(redis: Redis, calls: Sequence[Append]) -> list[Any]:
            nonlocal lost
            answers = await real(redis, calls)
            if not lost and any("first" in each.arguments for each in calls):
                lost += 1
                raise TimeoutError("the answer is lost")
            return answers

        monkeypatch.setattr(redis_append, "_call", ask)
        # The clock is behind, so Redis assigns other numbers.
        first.say(2)
        await until(lambda: lost == 1 and not a.is_behind(of_thread(thread)))
        before = await whole([b], thread, b'"first-1-1"')
        await asyncio.to_thread(valkey.flush)
        asked = asyncio.create_task(rest(b, thread, before[0], 2))
        await again.told(thread, [a, b])
        assert [event.id for event in await asked] == [event.id for event in before[1:]]


async def test_resuming_after_an_expired_event_reports_a_gap(
    valkey: Valkey, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_append, "STREAM_BYTES", 10_000)
    async with buses(valkey) as (a, b):
        tape = [
            a.publish(of_run("run", thread), "values", b'"%s"' % (b"x" * 1_000), resumable=True)
            for _ in range(30)
        ]
        await sent(thread, a)
        async with await b.follow_thread(of_thread(thread), tape[0].order) as reader:
            assert (await read(reader, 1))[0].is_loss
        async with await b.follow_thread(of_thread(thread), tape[-3].order) as reader:
            assert [event.id for event in await read(reader, 2)] == [e.id for e in tape[-2:]]
            assert not reader.broken


async def test_subscribing_to_a_long_silent_thread_does_not_wait(
    valkey: Valkey, thread: str, again: Again
) -> None:
    """Its stream has expired, and no process has events to republish."""
    async with buses(valkey) as (a, b):
        async with await b.follow_thread(of_thread(thread), START) as reader:
            Sender(a, thread, "first").say()
            [seen] = await read(reader, 1)
            for each in (a, b):
                assert each._remote is not None
                each._remote._ttl = each._ttl = 0.0
            await asyncio.to_thread(valkey.flush)
            expected = Sender(a, thread, "second").say(2)
            assert data(await read(reader, 2)) == expected
            assert not reader.holds
        assert data(await rest(b, thread, seen, 2)) == expected
