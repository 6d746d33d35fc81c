"""RedisBus: the bus of several processes on one Postgres database.

Followers in this process get its events directly, as on the LocalBus. The events also go into one
Redis stream per thread, which other processes read for their followers. Wake-ups and control
messages use pub/sub. If one is lost, the queue's sweep finds it in the database.

Redis may lose everything. While it is away, runs continue and their events wait in this process.
Followers in other processes get them late, or get a loss event.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Collection

from prometheus_client import Gauge

from langgraph_runtime_sql.events.bus import Control, LocalBus, T
from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.log import Log
from langgraph_runtime_sql.events.redis.entry import StoredEvent, pack
from langgraph_runtime_sql.events.redis.link import FAILURES, Link
from langgraph_runtime_sql.events.redis.listener import Listener
from langgraph_runtime_sql.events.redis.publisher import Publisher
from langgraph_runtime_sql.events.redis.reader import RESEND_SECONDS, Reader
from langgraph_runtime_sql.events.redis.subscription import (
    RemoteSubscription,
    ThreadSubscription,
)
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription

logger = logging.getLogger(__name__)

PREFIX = "threadhold"
# How often followers check the database, while Redis answers and while it is away.
WELL_RECHECK_SECONDS = 5.0
AWAY_RECHECK_SECONDS = 2.0
CATCH_UP_SECONDS = 1.0
FLUSH_SECONDS = 2.0
# How long the remaining events of an ended run are awaited.
SETTLE_SECONDS = 5.0
AWAY_SETTLE_SECONDS = 1.0
# The minimum lifetime of a stream in Redis. A stream without events for longer, and without a
# resumable run, begins anew.
LEAST_TTL_SECONDS = 60.0
# How much older than a subscription its first event may be, because clocks differ.
BEFORE_MILLISECONDS = 2_000
_UP = Gauge("threadhold_redis_up", "Whether Redis answers and accepts writes")


class RedisBus(LocalBus):
    """The bus of one of several processes.

    Args:
        url: `redis://host:port/0`, `rediss://...` or `unix://...`.
        keep_seconds: How long a finished run's stream can be resumed.
        prefix: The prefix of all keys and channels in Redis.
        answer_seconds: How long a command may take before Redis counts as away.
    """

    shared = True
    _run_subscription = RemoteSubscription

    def __init__(
        self,
        url: str,
        keep_seconds: float = 120.0,
        *,
        prefix: str | None = None,
        answer_seconds: float = 5.0,
    ) -> None:
        super().__init__(keep_seconds)
        self.name = uuid.uuid4().hex
        self.link = Link(url, prefix or PREFIX, seconds=answer_seconds)
        self._ttl = max(LEAST_TTL_SECONDS, keep_seconds)
        self._publisher = Publisher(self.link, self._ttl, self._in_flight)
        self._listener = Listener(
            self.link, self.name, super().wake, super().send_control, self._dropped_elsewhere
        )
        self._remote: Reader | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect to Redis. If it is away, the bus retries until it answers.

        Raises:
            BadRedis: this Redis can never work.
        """
        await self.link.look()
        _UP.set_function(lambda: float(self.link.state == "ok"))
        self._remote = Reader(
            self.link, self.name, self._publisher.is_ours, self._ttl, self._receive
        )
        self._tasks = [
            asyncio.create_task(self._publisher.run(), name="redis-publisher"),
            asyncio.create_task(self._remote.run(), name="redis-reader"),
            asyncio.create_task(self._listener.run(), name="redis-listener"),
        ]

    async def stop(self) -> None:
        """Send the remaining events, and close the connections. Repeatable."""
        if self._tasks:
            await self._publisher.flush(FLUSH_SECONDS)
        tasks, self._tasks = self._tasks, []
        left = set(tasks)
        while left:
            # Repeat, because the client takes a cancellation during an answer for a timeout.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.5)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("Bus task failed", exc_info=error)
        await self.link.close()

    def health(self) -> dict[str, str]:
        """Return the state of Redis: `ok`, `away` or `refusing`."""
        return {"redis": self.link.state}

    # --- streams

    @property
    def skew(self) -> int:
        return self.link.skew

    @property
    def recheck_seconds(self) -> float:
        return WELL_RECHECK_SECONDS if self.link.well else AWAY_RECHECK_SECONDS

    def _send(self, key: StreamKey, name: str, data: bytes, log: Log | None, attempt: int) -> Event:
        event = super()._send(key, name, data, log, attempt)
        self._publisher.put(key.topic, key.run_id, attempt, pack(event), data)
        return event

    def _deliver(self, event: Event, topic: str, *, to_thread: bool = True) -> None:
        """Deliver an event of this process to the run's followers.

        The thread's followers get it from Redis, which orders the events of all processes.
        """
        super()._deliver(event, topic, to_thread=to_thread and self._remote is None)

    def _receive(self, topic: str, event: Event, rank: Order, ours: bool) -> None:
        """Deliver an event from Redis."""
        with self._lock:
            if not ours:
                # Our next events must have greater numbers, even if our clock is behind.
                self._last = max(self._last, event.order)
                super()._deliver(event, topic, to_thread=False)
                if event.is_end:
                    self._live.pop(event.run_id, None)
            for subscription in self._by_thread.get(topic, ()):
                subscription.push(event._replace(order=rank))

    def is_behind(self, key: StreamKey) -> bool:
        return self._publisher.waits(key.topic)

    async def follow_run(
        self,
        key: StreamKey,
        after: Order | None = None,
        live: Subscription | None = None,
        *,
        whole: bool = False,
    ) -> Subscription:
        reader = self._subscribe(RemoteSubscription, key)
        try:
            await self._follow(reader)
            if after is not None:
                whole = whole and not self.is_live(key.run_id)
                await self._replay(reader, after, live, whole=whole)
        except BaseException:
            reader.close()
            raise
        return reader

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        since = asked_at or time.time_ns()
        reader = self._subscribe(ThreadSubscription, key)
        if after is not None and self._remote is not None:
            reader.hold_until_resumed()
        try:
            await self._follow(reader, asked_at)
            if after is None:
                self._skip_older(reader, since)
            else:
                await self._resume(reader, after)
        except BaseException:
            reader.close()
            raise
        return reader

    def _skip_older(self, reader: ThreadSubscription, since: int) -> None:
        """Skip older events, which processes send again to a Redis that was emptied."""
        if self.link.knows_clock:
            reader.after = (since + self.skew) // 1_000_000 - BEFORE_MILLISECONDS, 0

    async def _follow(self, reader: RemoteSubscription, asked_at: int | None = None) -> None:
        if self._remote is None:
            return
        reader._unfollow = self._remote.unfollow
        await self._remote.follow(reader.topic, reader, asked_at)

    async def _replay(
        self,
        reader: RemoteSubscription,
        after: Order,
        live: Subscription | None,
        *,
        whole: bool = False,
    ) -> None:
        if self._remote is None:
            return
        reader.after = after
        stored, is_cut = await self._run_events(reader, after, whole=whole)
        with self._lock:
            logged = [event for log in self._logs.of_run(reader.key) for event in log.events]
            waiting = [*(live.waiting() if live else ()), *reader.waiting()]
            found = {(each.order, each.run_id): each for each in [*stored, *logged, *waiting]}
            # Our next events must have greater numbers, whichever clock is ahead.
            self._last = max([self._last, *(each.order for each in found.values())])
            events = [found[number] for number in sorted(found) if number[0] > after]
            losses = [each for each in waiting if each.is_loss][:1]
            reader.begin_with([*losses, *events])
        known = list(found.values())
        if (is_cut and after == START and not any(map(_starts_attempt, known))) or (
            (events or whole) and _is_incomplete_run(known, after)
        ):
            reader.lose_first()

    async def _run_events(
        self, reader: RemoteSubscription, after: Order, *, whole: bool
    ) -> tuple[list[Event], bool]:
        """Return a run's resumable events in Redis, and whether it may have deleted older ones.

        If Redis was emptied, wait until the processes have sent their events again.
        """
        if self._remote is None:
            return [], False
        run_id, deadline = reader.key.run_id, time.monotonic() + RESEND_SECONDS
        while True:
            try:
                found = await self._remote.log(reader.topic)
            except FAILURES:
                if not self.is_live(run_id):
                    reader.lose()
                return [], False
            events = [each.event for each in found]
            of_run = [each for each in events if each.resumable and each.run_id == run_id]
            if not (whole and _is_incomplete_run(of_run, after)) or time.monotonic() > deadline:
                is_oldest = bool(of_run) and of_run[0] == events[0]
                return of_run, is_oldest and not any(each.first for each in found)
            await asyncio.sleep(0.25)

    async def _resume(self, reader: ThreadSubscription, after: Order) -> None:
        if self._remote is None:
            return
        position = self._remote.position(reader.topic)
        stored = await self._thread_events(reader, after)
        reader.resume(after, stored, position)
        if _is_cut(stored, after):
            reader.lose_first()

    async def _thread_events(self, reader: ThreadSubscription, after: Order) -> list[StoredEvent]:
        """Return the thread's events in Redis.

        If Redis was emptied, wait until the processes have sent their events again.
        """
        if self._remote is None:
            return []
        deadline = time.monotonic() + RESEND_SECONDS
        while True:
            try:
                stored = await self._remote.log(reader.topic)
                born = await self._remote.born(reader.topic)
            except FAILURES:
                reader.lose()
                return []
            if not self._is_incomplete(stored, born, after) or time.monotonic() > deadline:
                return stored
            await asyncio.sleep(0.25)

    def _is_incomplete(self, stored: list[StoredEvent], born: int | None, after: Order) -> bool:
        """Return whether Redis was emptied since `after`, and may still be refilled."""
        now = (time.time_ns() + self.skew) // 1_000_000
        if after == START or now - after[0] > self._ttl * 1_000:
            return False
        if after[1] >= 0 and all(each.rank != after for each in stored):
            return not _is_cut(stored, after)
        return born is not None and after[0] < born and now - born < RESEND_SECONDS * 1_000

    async def catch_up(self, key: StreamKey) -> None:
        if self._remote is None or not self.link.well:
            return
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                last = await self._remote.last(key.topic)
        except FAILURES:
            return  # The loops log the failure.
        with self._lock:
            self._last = max(self._last, last)

    async def settle(self, subscription: Subscription, run_id: str | None = None) -> bool:
        if self._remote is None or not isinstance(subscription, RemoteSubscription):
            return True
        if run_id is not None and self.ended_here(run_id):
            return True
        seconds = SETTLE_SECONDS if self.link.well else AWAY_SETTLE_SECONDS
        return await self._remote.settle(subscription.topic, seconds, run_id)

    def _in_flight(self) -> list[str]:
        """Return the topics of resumable runs that this process executes."""
        with self._lock:
            return [key.topic for key in self._logs.unfinished()]

    async def flush(self) -> None:
        """Wait until Redis has all published events, unless it is away."""
        if self.link.well and self._tasks:
            await self._publisher.flush(FLUSH_SECONDS)

    async def flushing(self, end: Awaitable[T]) -> T:
        """Await a run's `end` and flush at the same time. Return the result of `end`.

        A reader that sees the end in the database waits for the end event, which is published last.
        """
        result, _ = await asyncio.gather(end, self.flush())
        return result

    def drop(self, key: StreamKey) -> None:
        """Delete the events of a run or thread in this process, in Redis and in other processes."""
        super().drop(key)
        self._publisher.drop(key.topic, key.run_id, erase=True)
        self._publisher.notify(*self._listener.drop(key.topic, key.run_id))

    def _dropped_elsewhere(self, topic: str, run_id: str) -> None:
        self._drop(topic, run_id)
        self._publisher.drop(topic, run_id)

    # --- runs and control

    def run_released(self, run_id: str) -> None:
        """Release the run: another process may continue it, and its end may not arrive here."""
        with self._lock:
            self._release(run_id)

    def release_others(self, executed: Collection[str]) -> None:
        """Release runs that were lost or handed back. Other processes announce their end."""
        with self._lock:
            unfinished = (key.run_id for key in self._logs.unfinished())
            for run_id in {*self._live, *unfinished}.difference(executed):
                self._release(run_id)

    def _release(self, run_id: str) -> None:
        """Let the run's log expire as if the run had ended: Redis has our events."""
        self._live.pop(run_id, None)
        self._logs.end_run(run_id)

    def wake(self) -> None:
        super().wake()
        self._publisher.notify(*self._listener.wake())

    def send_control(self, run_id: str, control: Control) -> None:
        """Ask a run's worker in any process to stop."""
        is_ours = run_id in self._listeners
        super().send_control(run_id, control)
        if not is_ours:
            self._publisher.notify(*self._listener.control(run_id, control))


def _starts_attempt(event: Event) -> bool:
    """Return whether the event is the first one of an attempt."""
    return event.name == "metadata"


def _is_incomplete_run(known: list[Event], after: Order) -> bool:
    """Return whether events of a run since `after` may be missing in `known`."""
    # A client that continues after an event before the run misses none of the run.
    begun = any(_starts_attempt(each) and each.attempt == 1 for each in known)
    return not begun and _has_hole([each.order for each in known], after)


def _has_hole(numbers: list[Order], after: Order) -> bool:
    """Return whether the event `after` is gone, and maybe later ones, too."""
    return after > START and after[1] >= 0 and all(each > after for each in numbers)


def _is_cut(stored: list[StoredEvent], after: Order) -> bool:
    """Return whether older events were deleted for space, and maybe some after `after`."""
    begun = any(each.first for each in stored)
    return bool(stored) and not begun and _has_hole([each.rank for each in stored], after)
