"""Publisher: send this process's events to Redis, in order, each event once.

Publishing only adds to a bounded backlog in memory. A task sends batches. A backlog numbers its
events without holes, and Redis stores the last number. So a batch whose answer was lost is not
stored twice, and a Redis that has lost its data gets the events that are still kept here.

One key tells whether Redis has lost its data. Single streams are checked in turns.
"""

import asyncio
import logging
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice, takewhile
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from langgraph_runtime_sql.events.redis.append import Append, append
from langgraph_runtime_sql.events.redis.backlog import Backlog, QueuedEvent
from langgraph_runtime_sql.events.redis.erase import erase
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, is_about_a_key
from langgraph_runtime_sql.events.stream_key import THREAD

logger = logging.getLogger(__name__)

# The limits of the kept events of one thread, and of all threads.
QUEUE_BYTES = 32 * 2**20
ALL_QUEUES_BYTES = 128 * 2**20
# Beyond the limit, events are deleted down to this part of it.
FILL_RATIO = 0.9
BATCH_BYTES = 2**20
BATCH_QUEUES = 50
# The bytes of one round trip. They halve after each timeout, down to the minimum. A larger single
# event gets proportionally more time, up to this factor.
ROUND_BYTES = 4 * 2**20
MIN_ROUND_BYTES = 2**16
MAX_ROUND_FACTOR = 12
# How often Redis is checked for lost data, and how many streams at a time.
LOOK_SECONDS = 5.0
ASK_QUEUES = 200
ALIVE_SECONDS = 60
NOTICES = 10_000


# A topic, its backlog, and the events to send.
Batch = tuple[str, Backlog, list[QueuedEvent]]


class Publisher:
    """Sends this process's events, messages and deletions to Redis.

    Args:
        link: The link to Redis.
        ttl: How many seconds Redis keeps a stream after its last event.
        in_flight: Returns the topics of streams to keep for longer, because more events may come.
    """

    def __init__(self, link: Link, ttl: float, in_flight: Callable[[], Collection[str]]) -> None:
        self._link = link
        self._ttl = ttl
        self._in_flight = in_flight
        self._lock = threading.Lock()
        self._process = uuid.uuid4().hex[:12]
        self._made = 0
        # Least recently used first.
        self._queues: OrderedDict[str, Backlog] = OrderedDict()
        self._size = 0
        self._unsent: dict[str, None] = {}
        # Topic and run id of deletions that Redis does not know yet.
        self._erasing: dict[tuple[str, str], None] = {}
        self._sending = False
        self._round = ROUND_BYTES
        self._notices: deque[tuple[str, bytes]] = deque(maxlen=NOTICES)
        self._waiting: list[Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._woken = False
        # The topics to check in this turn, and whether to check them at once.
        self._turn: dict[str, None] = {}
        self._hurry = False
        self._renewed = time.monotonic()
        # The value last stored in the `alive` key, and the link's failures at the last check.
        self._looks = 0
        self._failures = 0

    def is_ours(self, origin: bytes) -> bool:
        """Return whether this process has published the events of an origin."""
        return origin.startswith(self._process.encode())

    # --- from any thread

    def put(self, key: str, run_id: str, attempt: int, header: bytes, data: bytes) -> None:
        """Add an event to the backlog of the topic `key`."""
        with self._lock:
            backlog = self._queues.get(key)
            if backlog is None:
                self._made += 1
                backlog = self._queues[key] = Backlog(f"{self._process}-{self._made}")
            backlog.last += 1
            backlog.used = time.monotonic()
            self._queues.move_to_end(key)
            event = QueuedEvent(backlog.last, run_id, attempt, header, data)
            backlog.events.append(event)
            backlog.size += event.size
            self._size += event.size
            while backlog.size > QUEUE_BYTES and len(backlog.events) > 1:
                self._drop_oldest(backlog)
            if self._size > ALL_QUEUES_BYTES:
                self._free_memory()
            self._unsent[key] = None
        self._signal()

    def drop(self, key: str, run_id: str, *, erase: bool = False) -> None:
        """Delete the events of a run or thread from the backlog.

        Args:
            erase: Also delete them in Redis.
        """
        with self._lock:
            if run_id == THREAD:
                # A new backlog has a new origin, so followers see no hole.
                backlog = self._queues.pop(key, None)
                self._size -= backlog.size if backlog is not None else 0
            elif (backlog := self._queues.get(key)) is not None:
                self._size -= backlog.blank(run_id)
            if erase:
                self._erasing[key, run_id] = None
        self._signal()

    def waits(self, key: str) -> bool:
        """Return whether events of the topic are not sent yet."""
        with self._lock:
            backlog = self._queues.get(key)
            return backlog is not None and bool(backlog.events) and backlog.sent < backlog.last

    def notify(self, channel: str, message: bytes) -> None:
        """Publish a message. A repetition of the last unsent one is dropped."""
        with self._lock:
            if not self._notices or self._notices[-1] != (channel, message):
                self._notices.append((channel, message))
        self._signal()

    async def flush(self, seconds: float) -> bool:
        """Wait until Redis has all events. Return False after `seconds`."""
        done: Future[None] = Future()
        with self._lock:
            if not self._has_work and not self._sending:
                return True
            self._waiting.append(done)
        self._signal()
        try:
            await asyncio.wait_for(asyncio.wrap_future(done), seconds)
        except TimeoutError:
            return False
        return True

    @property
    def _has_work(self) -> bool:
        return bool(self._unsent or self._notices or self._erasing)

    def _signal(self) -> None:
        if self._loop is not None and not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # The loop is closed: the process is exiting.
                self._loop.call_soon_threadsafe(self._wake.set)

    def _drop_oldest(self, backlog: Backlog) -> None:
        size = backlog.events.popleft().size
        backlog.size -= size
        self._size -= size

    def _free_memory(self) -> None:
        """Delete the oldest events of the least recently used backlogs."""
        for backlog in self._queues.values():
            while backlog.events and self._size > ALL_QUEUES_BYTES * FILL_RATIO:
                self._drop_oldest(backlog)
            if self._size <= ALL_QUEUES_BYTES * FILL_RATIO:
                return

    # --- on the event loop

    async def run(self) -> None:
        """Send until cancelled."""
        self._loop = asyncio.get_running_loop()
        # Large events take long. Urgent commands use another connection.
        redis = self._link.client(answer_seconds=self._link.seconds * MAX_ROUND_FACTOR)
        due = time.monotonic()
        while True:
            if not self._has_work and not self._hurry:
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, due - time.monotonic())):
                        await self._wake.wait()
            self._wake.clear()
            self._woken = False
            try:
                await self._send(redis)
                # Sending takes precedence over checks.
                if time.monotonic() >= due:
                    due = time.monotonic() + LOOK_SECONDS
                    await self._look(redis)
                    await self._ask(redis)
                elif self._hurry:
                    await self._ask(redis)
            except FAILURES as error:
                # Another Redis, or one without its data, may answer next.
                due = time.monotonic()
                await self._link.failed("publisher", error)

    async def _send(self, redis: Redis) -> None:
        """Send the next events, and then the messages that follow them, in one round trip."""
        with self._lock:
            erasing, self._erasing = self._erasing, {}
            batches = self._next_batches()
            notices = list(self._notices)
            waiting, self._waiting = self._waiting, []
            self._sending = bool(batches or erasing)
        try:
            if erasing:
                # Erase first: later events may belong to a new thread with the same id.
                await erase(redis, self._link, erasing)
            if batches or notices:
                await self._transfer(redis, batches, notices)
                self._link.succeeded("publisher")
        except BaseException:
            with self._lock:
                self._unsent = {**dict.fromkeys(key for key, _, _ in batches), **self._unsent}
                self._waiting = waiting + self._waiting
                # Erasing is idempotent.
                self._erasing = {**erasing, **self._erasing}
            raise
        finally:
            self._sending = False
        self._sent(notices, waiting)

    def _next_batches(self) -> list[Batch]:
        """Return the longest waiting events that fit in one round trip, but at least one."""
        batches: list[Batch] = []
        room = self._round
        for key in list(islice(self._unsent, BATCH_QUEUES)):
            backlog = self._queues.get(key)
            batch = [] if backlog is None else backlog.unsent(min(room, BATCH_BYTES))
            size = sum(event.size for event in batch)
            if batches and size > room:
                break
            del self._unsent[key]
            if backlog is not None and batch:
                batches.append((key, backlog, batch))
                room -= size
        return batches

    async def _transfer(
        self, redis: Redis, batches: list[Batch], notices: list[tuple[str, bytes]]
    ) -> None:
        """Send events and messages, and adapt the size of a round trip."""
        size = sum(event.size for _, _, batch in batches for event in batch)
        factor = min(MAX_ROUND_FACTOR, max(1.0, size / self._round))
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._link.seconds * factor):
                await self._append(redis, batches)
                await self._announce(redis, notices)
        except (TimeoutError, RedisTimeoutError):
            self._round = max(MIN_ROUND_BYTES, self._round // 2)
            raise
        if size > self._round / 2 and time.monotonic() - began < self._link.seconds / 4:
            self._round = min(ROUND_BYTES, self._round * 2)

    async def _announce(self, redis: Redis, notices: list[tuple[str, bytes]]) -> None:
        if notices:
            pipeline: Any = redis.pipeline(transaction=False)
            for channel, message in notices:
                pipeline.publish(channel, message)
            await pipeline.execute()

    def _sent(self, notices: list[tuple[str, bytes]], waiting: list[Future[None]]) -> None:
        with self._lock:
            for notice in notices:
                with suppress(ValueError):
                    self._notices.remove(notice)
            if self._unsent or self._erasing:
                # A flush waits for everything.
                self._waiting = waiting + self._waiting
                waiting = []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def _append(self, redis: Redis, batches: list[Batch]) -> None:
        """Send batches, and record how far Redis has each backlog.

        Raises:
            one of FAILURES: Redis does not answer, or refuses everything.
        """
        if not batches:
            return
        with self._lock:
            calls = [self._call(*each) for each in batches]
        for batch, call, answer in zip(batches, calls, await append(redis, calls), strict=True):
            if isinstance(answer, RedisError):
                if not is_about_a_key(answer):
                    raise answer
                # A foreign key with our name. The stream begins anew.
                logger.warning(
                    "Deleted a foreign key in place of the stream of %s: %s", batch[0], answer
                )
                await redis.delete(call.stream, call.meta)
                answer = [0]
            held, *ranks = answer
            # Redis ranks fewer events if it has not accepted the whole batch.
            for event, rank in zip(batch[2], ranks, strict=False):
                event.rank = rank
            self._note(*batch[:2], int(held))

    def _note(self, key: str, backlog: Backlog, held: int) -> None:
        with self._lock:
            backlog.sent = held
            if backlog.events and held < backlog.last:
                self._unsent[key] = None

    def _call(self, key: str, backlog: Backlog, batch: list[QueuedEvent]) -> Append:
        # Earlier events are no longer kept: followers see the hole.
        oldest = bool(batch and backlog.events and batch[0].number <= backlog.events[0].number)
        arguments = tuple(argument for event in batch for argument in event.arguments())
        log, meta = self._link.stream(key), self._link.meta(key)
        return Append(log, meta, backlog.origin, oldest, round(self._ttl), arguments)

    async def _look(self, redis: Redis) -> None:
        """Check whether Redis accepts writes and still has its data.

        It may have been emptied, or restored from an old snapshot. After any failure all streams are
        checked, because another Redis may have taken its place.
        """
        self._expire()
        failures = self._link.failures
        async with asyncio.timeout(self._link.seconds):
            await self._link.set_clock(redis)
            known = await self._is_known(redis)
        self._link.succeeded("publisher")
        if not known or failures != self._failures:
            self._failures = failures
            with self._lock:
                self._turn = dict.fromkeys(self._queues)
            self._hurry = bool(self._turn)

    async def _is_known(self, redis: Redis) -> bool:
        """Return whether Redis has the value that the last check stored."""
        name = self._link.name(f"alive:{self._process}")
        before, self._looks = self._looks, self._looks + 1
        try:
            found = await redis.set(name, self._looks, ex=ALIVE_SECONDS, get=True)
        except RedisError as error:
            if not is_about_a_key(error):
                raise
            found = None
            await redis.set(name, self._looks, ex=ALIVE_SECONDS)
        return bool(found == str(before).encode())

    def _expire(self) -> None:
        """Delete finished backlogs, and let streams of runs in flight be renewed."""
        in_flight = dict.fromkeys(self._in_flight())
        with self._lock:
            old = [
                key
                for key, backlog in self._unused_since(time.monotonic() - self._ttl)
                if key not in in_flight and backlog.is_over(self._ttl)
            ]
            for key in old:
                self._size -= self._queues.pop(key).size
            if time.monotonic() - self._renewed > self._ttl / 3:
                self._renewed = time.monotonic()
                self._turn = {**in_flight, **self._turn}

    def _unused_since(self, time_used: float) -> Iterator[tuple[str, Backlog]]:
        return takewhile(lambda each: each[1].used < time_used, self._queues.items())

    async def _ask(self, redis: Redis) -> None:
        """Ask how far Redis has the next streams in turn. This also renews their lifetime."""
        with self._lock:
            self._turn = self._turn or dict.fromkeys(self._queues)
            asked: list[Batch] = []
            while self._turn and len(asked) < ASK_QUEUES:
                key = next(iter(self._turn))
                del self._turn[key]
                backlog = self._queues.get(key)
                if backlog is not None and backlog.events:
                    asked.append((key, backlog, []))
        async with asyncio.timeout(self._link.seconds):
            await self._append(redis, asked)
        self._hurry = self._hurry and bool(self._turn)
