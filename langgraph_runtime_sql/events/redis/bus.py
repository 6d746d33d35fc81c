"""RedisBus: the bus of several processes that serve one Postgres database.

What happens in this process reaches its own followers as on the LocalBus, without
waiting for anything. The same events go into a Redis stream for each thread, which
the processes with followers of it read. Wake-ups and control messages go by pub/sub:
one that is lost is found by the queue's sweep, because the database knows it too.

Redis holds nothing that cannot be lost. While it is away runs go on, and what they
publish waits here; followers elsewhere get it late, or are told that it is lost.
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
from langgraph_runtime_sql.events.redis.entry import Kept, pack
from langgraph_runtime_sql.events.redis.link import FAILURES, Link
from langgraph_runtime_sql.events.redis.listener import Listener
from langgraph_runtime_sql.events.redis.publisher import Outbox
from langgraph_runtime_sql.events.redis.reader import TOLD_AGAIN_SECONDS, Reader
from langgraph_runtime_sql.events.redis.subscription import (
    RemoteSubscription,
    ThreadSubscription,
)
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription

logger = logging.getLogger(__name__)

PREFIX = "threadhold"
# A lost end is found by asking the database this often, and while Redis is away this often.
WELL_RECHECK_SECONDS = 5.0
AWAY_RECHECK_SECONDS = 2.0
CATCH_UP_SECONDS = 1.0
FLUSH_SECONDS = 2.0
# How long what a run has left is waited for once the run has ended.
SETTLE_SECONDS = 5.0
AWAY_SETTLE_SECONDS = 1.0
# What Redis keeps a stream for: a run that publishes nothing for longer, and is not kept for
# those who come back, is begun anew.
LEAST_TTL_SECONDS = 60.0
# How much earlier than he asks an event may have been sent that somebody is told who wants those
# from now on: clocks are not as exact as that.
BEFORE_MILLISECONDS = 2_000
_UP = Gauge("threadhold_redis_up", "Whether Redis answers and takes what it is given")


class RedisBus(LocalBus):
    """The bus of one of several processes.

    Args:
        url: `redis://host:port/0`, `rediss://...` or `unix://...`.
        keep_seconds: How long a finished run's stream can still be resumed.
        prefix: What all keys and channels in Redis begin with.
        answer_seconds: How long a command may take before Redis counts as away.
    """

    shared = True
    _reader = RemoteSubscription

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
        self._publisher = Outbox(self.link, self._ttl, self._in_flight)
        self._listener = Listener(
            self.link, self.name, super().wake, super().send_control, self._dropped_elsewhere
        )
        self._remote: Reader | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect with other processes. A Redis that is away is tried again until it is there.

        Raises:
            BadRedis: it is there, and would never do.
        """
        await self.link.look()
        _UP.set_function(lambda: float(self.link.state == "ok"))
        self._remote = Reader(
            self.link, self.name, self._publisher.is_ours, self._ttl, self._receive
        )
        self._tasks = [
            asyncio.create_task(self._publisher.run(), name="redis-outbox"),
            asyncio.create_task(self._remote.run(), name="redis-reader"),
            asyncio.create_task(self._listener.run(), name="redis-listener"),
        ]

    async def stop(self) -> None:
        """Send what is left, and close the connections. Repeatable."""
        if self._tasks:
            await self._publisher.flush(FLUSH_SECONDS)
        tasks, self._tasks = self._tasks, []
        left = set(tasks)
        while left:
            # Once is not enough: the client takes one that comes with an answer for a timeout.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.5)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("A task of the bus failed", exc_info=error)
        await self.link.close()

    def health(self) -> dict[str, str]:
        """How Redis is: `ok`, `away`, or `refusing` where it is out of memory and the like."""
        return {"redis": self.link.state}

    # --- streams

    @property
    def skew(self) -> int:
        """Nanoseconds by which Redis's clock is ahead of this machine's."""
        return self.link.skew

    @property
    def recheck_seconds(self) -> float:
        """How long a follower may wait for events before he asks the database."""
        return WELL_RECHECK_SECONDS if self.link.well else AWAY_RECHECK_SECONDS

    def _send(self, key: StreamKey, name: str, data: bytes, log: Log | None, attempt: int) -> Event:
        event = super()._send(key, name, data, log, attempt)
        self._publisher.put(key.topic, key.run_id, attempt, pack(event), data)
        return event

    def _deliver(self, event: Event, topic: str, *, to_thread: bool = True) -> None:
        """Deliver an event of this process. Followers of the thread have it from Redis.

        There it has its place among those of other processes.
        """
        super()._deliver(event, topic, to_thread=to_thread and self._remote is None)

    def _receive(self, topic: str, event: Event, rank: Order, ours: bool) -> None:
        """Deliver an event that has come from Redis."""
        with self._lock:
            if not ours:
                # Ours come after it, whichever clock is ahead.
                self._last = max(self._last, event.order)
                super()._deliver(event, topic, to_thread=False)
                if event.is_end:
                    self._live.pop(event.run_id, None)
            for subscription in self._by_thread.get(topic, ()):
                subscription.push(event._replace(order=rank))

    def is_behind(self, key: StreamKey) -> bool:
        """Whether what was published here on a thread still waits for Redis."""
        return self._publisher.waits(key.topic)

    async def follow_run(
        self,
        key: StreamKey,
        after: Order | None = None,
        live: Subscription | None = None,
        *,
        whole: bool = False,
    ) -> Subscription:
        """Follow a run, wherever it is worked on; arguments as `subscribe_run`.

        Args:
            whole: Everything since `after` must still be known to somebody.
        """
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
        """Follow a thread, wherever its runs are worked on; arguments as on the `LocalBus`."""
        moment = asked_at or time.time_ns()
        reader = self._subscribe(ThreadSubscription, key)
        if after is not None and self._remote is not None:
            reader.resumes()
        try:
            await self._follow(reader, asked_at)
            if after is None:
                self._begin(reader, moment)
            else:
                await self._resume(reader, after)
        except BaseException:
            reader.close()
            raise
        return reader

    def _begin(self, reader: ThreadSubscription, asked_at: int) -> None:
        """Have a reader told nothing of long ago, as a Redis is that has forgotten everything."""
        if self.link.knows_clock:
            reader.after = (asked_at + self.skew) // 1_000_000 - BEFORE_MILLISECONDS, 0

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
        """Begin with what was kept since `after`, here or in Redis."""
        if self._remote is None:
            return
        reader.after = after
        stored, is_cut = await self._stored(reader, after, whole=whole)
        with self._lock:
            here = [event for log in self._logs.of_run(reader.key) for event in log.events]
            waiting = [*(live.waiting() if live else ()), *reader.waiting()]
            found = {(each.order, each.run_id): each for each in [*stored, *here, *waiting]}
            # What is sent from here comes after what was sent elsewhere, whichever clock is ahead.
            self._last = max([self._last, *(each.order for each in found.values())])
            events = [found[number] for number in sorted(found) if number[0] > after]
            losses = [each for each in waiting if each.is_loss][:1]
            reader.begin_with([*losses, *events])
        known = list(found.values())
        if (is_cut and after == START and not any(map(_begins, known))) or (
            (events or whole) and _misses_some(known, after)
        ):
            reader.lose_first()

    async def _stored(
        self, reader: RemoteSubscription, after: Order, *, whole: bool
    ) -> tuple[list[Event], bool]:
        """What Redis holds; where it has forgotten some, not before it was told again.

        And whether that begins where events made room for others, which may be the run's own.
        """
        if self._remote is None:
            return [], False
        run_id, deadline = reader.key.run_id, time.monotonic() + TOLD_AGAIN_SECONDS
        while True:
            try:
                found = await self._remote.log(reader.topic)
            except FAILURES:
                if not self.is_live(run_id):
                    reader.lose()
                return [], False
            events = [each.event for each in found]
            kept = [each for each in events if each.resumable and each.run_id == run_id]
            if not (whole and _misses_some(kept, after)) or time.monotonic() > deadline:
                begins_so = bool(kept) and kept[0] == events[0]
                return kept, begins_so and not any(each.first for each in found)
            await asyncio.sleep(0.25)

    async def _resume(self, reader: ThreadSubscription, after: Order) -> None:
        """Begin with what Redis has of a thread since `after`."""
        if self._remote is None:
            return
        position = self._remote.position(reader.topic)
        kept = await self._kept(reader, after)
        reader.resume(after, kept, position)
        if _is_cut(kept, after):
            reader.lose_first()

    async def _kept(self, reader: ThreadSubscription, after: Order) -> list[Kept]:
        """What Redis holds of a thread; where it has forgotten some, once all have told it again."""
        if self._remote is None:
            return []
        deadline = time.monotonic() + TOLD_AGAIN_SECONDS
        while True:
            try:
                kept = await self._remote.log(reader.topic)
                born = await self._remote.born(reader.topic)
            except FAILURES:
                reader.lose()
                return []
            if not self._is_incomplete(kept, born, after) or time.monotonic() > deadline:
                return kept
            await asyncio.sleep(0.25)

    def _is_incomplete(self, kept: list[Kept], born: int | None, after: Order) -> bool:
        """Whether Redis was emptied since an event, and may still be told again what it knew."""
        now = (time.time_ns() + self.skew) // 1_000_000
        if after == START or now - after[0] > self._ttl * 1_000:
            return False
        if after[1] >= 0 and all(each.rank != after for each in kept):
            return not _is_cut(kept, after)
        return born is not None and after[0] < born and now - born < TOLD_AGAIN_SECONDS * 1_000

    async def catch_up(self, key: StreamKey) -> None:
        """Number what is sent from now on after what others have sent on a thread."""
        if self._remote is None or not self.link.well:
            return
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                last = await self._remote.last(key.topic)
        except FAILURES:
            return  # The loops will notice, and say so.
        with self._lock:
            self._last = max(self._last, last)

    async def settle(self, subscription: Subscription, run_id: str | None = None) -> bool:
        """Have everything there that was sent before now; whether it is.

        Args:
            run_id: A run that has ended: not before the word of its end was sent.
        """
        if self._remote is None or not isinstance(subscription, RemoteSubscription):
            return True
        if run_id is not None and self.ended_here(run_id):
            return True
        seconds = SETTLE_SECONDS if self.link.well else AWAY_SETTLE_SECONDS
        return await self._remote.settle(subscription.topic, seconds, run_id)

    def _in_flight(self) -> list[str]:
        """The streams of runs that are worked on here, and kept for those who come back."""
        with self._lock:
            return [key.topic for key in self._logs.unfinished()]

    async def flush(self) -> None:
        """Have everything that was published so far in Redis, unless it is away."""
        if self.link.well and self._tasks:
            await self._publisher.flush(FLUSH_SECONDS)

    async def flushing(self, end: Awaitable[T]) -> T:
        """The result of a run's `end`, once all of its events are in Redis, unless it is away.

        Both at a time. Whoever finds the end first waits for the word of it, which comes last.
        """
        result, _ = await asyncio.gather(end, self.flush())
        return result

    def drop(self, key: StreamKey) -> None:
        """Forget what a deleted run or thread has told, here, in Redis and in other processes."""
        super().drop(key)
        self._publisher.drop(key.topic, key.run_id, erase=True)
        self._publisher.notify(*self._listener.drop(key.topic, key.run_id))

    def _dropped_elsewhere(self, topic: str, run_id: str) -> None:
        self._drop(topic, run_id)
        self._publisher.drop(topic, run_id)

    # --- runs and control

    def _note_made(self, key: StreamKey, *, resumable: bool) -> None:
        """Any process may claim it. Only of those that are worked on here is the end sure."""

    def run_left(self, run_id: str) -> None:
        """Another process may go on with the run, and its end never be heard of here."""
        with self._lock:
            self._let_go(run_id)

    def leave_all_but(self, working: Collection[str]) -> None:
        """Let go of runs that were lost or handed back; of their end others will tell."""
        with self._lock:
            unfinished = (key.run_id for key in self._logs.unfinished())
            for run_id in {*self._live, *unfinished}.difference(working):
                self._let_go(run_id)

    def _let_go(self, run_id: str) -> None:
        """Its stream goes after a while, as if it had ended: Redis has from us what we have."""
        self._live.pop(run_id, None)
        self._logs.leave(run_id)

    def wake(self) -> None:
        """Have every queue look again; from any thread."""
        super().wake()
        self._publisher.notify(*self._listener.wake())

    def send_control(self, run_id: str, control: Control) -> None:
        """Ask a run's worker to stop, wherever he is."""
        here = run_id in self._listeners
        super().send_control(run_id, control)
        if not here:
            self._publisher.notify(*self._listener.control(run_id, control))


def _begins(event: Event) -> bool:
    """Whether an attempt at a run begins with it."""
    return event.name == "metadata"


def _misses_some(known: list[Event], after: Order) -> bool:
    """Whether events that a run has sent since may be missing from those that are known."""
    # Who goes on after what was sent before the run misses nothing of it.
    begun = any(_begins(each) and each.attempt == 1 for each in known)
    return not begun and _has_hole([each.order for each in known], after)


def _has_hole(numbers: list[Order], after: Order) -> bool:
    """Whether the event after which a client goes on is gone, and with it perhaps others."""
    return after > START and after[1] >= 0 and all(each > after for each in numbers)


def _is_cut(kept: list[Kept], after: Order) -> bool:
    """Whether an event had to make room for others, and with it perhaps some that came after."""
    begun = any(each.first for each in kept)
    return bool(kept) and not begun and _has_hole([each.rank for each in kept], after)
