"""Outbox: brings what this process publishes to Redis, in order, each event once.

Publishing only appends to a bounded queue in memory; a task sends what is there, many
events a round trip. Each queue numbers its events without a hole, and Redis keeps the
number that it has: so a batch whose answer was lost is not stored twice, and a Redis
that has forgotten everything is told again what is still kept here. Whether it has, one
key says; of single streams it is asked in turns, and the next event of each tells it, too.
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
from langgraph_runtime_sql.events.redis.backlog import Parcel, Queue
from langgraph_runtime_sql.events.redis.erase import erase
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, is_about_a_key
from langgraph_runtime_sql.events.stream_key import THREAD

logger = logging.getLogger(__name__)

# What is kept here of one thread to tell it again, and of all of them.
QUEUE_BYTES = 32 * 2**20
ALL_QUEUES_BYTES = 128 * 2**20
# Room is made for a while.
ROOM = 0.9
BATCH_BYTES = 2**20
BATCH_QUEUES = 50
# What one round trip takes. Half of it each time that it takes too long, down to the least; a
# single event may be larger, and gets that much more time, up to so many times as much.
ROUND_BYTES = 4 * 2**20
LEAST_ROUND_BYTES = 2**16
LONGEST_ROUND = 12
# How often Redis is asked whether it still knows us, and about how many streams at a time.
LOOK_SECONDS = 5.0
ASK_QUEUES = 200
ALIVE_SECONDS = 60
NOTICES = 10_000


# The key of a stream, what was published there, and the next that is to be sent of it.
Batch = tuple[str, Queue, list[Parcel]]


class Outbox:
    """Everything that this process tells others.

    Args:
        link: The way to Redis.
        ttl: Seconds for which Redis keeps a stream that nothing more is added to.
        in_flight: The keys of streams that are kept for longer, because more may come.
    """

    def __init__(self, link: Link, ttl: float, in_flight: Callable[[], Collection[str]]) -> None:
        self._link = link
        self._ttl = ttl
        self._in_flight = in_flight
        self._lock = threading.Lock()
        self._process = uuid.uuid4().hex[:12]
        self._made = 0
        # What was used longest ago comes first.
        self._queues: OrderedDict[str, Queue] = OrderedDict()
        self._size = 0
        self._unsent: dict[str, None] = {}
        # The topic and the run, or thread, of what is to be deleted in Redis.
        self._erasing: dict[tuple[str, str], None] = {}
        self._sending = False
        self._round = ROUND_BYTES
        self._notices: deque[tuple[str, bytes]] = deque(maxlen=NOTICES)
        self._waiting: list[Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._woken = False
        # Which streams are still to be asked about in this turn, and whether at once.
        self._turn: dict[str, None] = {}
        self._hurry = False
        self._renewed = time.monotonic()
        # What Redis was told last of how often it was asked, and when something had last failed.
        self._looks = 0
        self._failures = 0

    def is_ours(self, origin: bytes) -> bool:
        """Whether events with this origin were published by this process."""
        return origin.startswith(self._process.encode())

    # --- from any thread

    def put(self, key: str, run_id: str, attempt: int, header: bytes, data: bytes) -> None:
        """Have an event appended to the stream of `key`."""
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                self._made += 1
                queue = self._queues[key] = Queue(f"{self._process}-{self._made}")
            queue.last += 1
            queue.used = time.monotonic()
            self._queues.move_to_end(key)
            parcel = Parcel(queue.last, run_id, attempt, header, data)
            queue.parcels.append(parcel)
            queue.size += parcel.size
            self._size += parcel.size
            while queue.size > QUEUE_BYTES and len(queue.parcels) > 1:
                self._drop_oldest(queue)
            if self._size > ALL_QUEUES_BYTES:
                self._make_room()
            self._unsent[key] = None
        self._signal()

    def drop(self, key: str, run_id: str, *, erase: bool = False) -> None:
        """Keep nothing more of a deleted run, or of a deleted thread, to be told again.

        Args:
            erase: Have Redis forget it, too.
        """
        with self._lock:
            if run_id == THREAD:
                # A queue that is made anew has another origin: followers miss none of its numbers.
                queue = self._queues.pop(key, None)
                self._size -= queue.size if queue is not None else 0
            elif (queue := self._queues.get(key)) is not None:
                self._size -= queue.blank(run_id)
            if erase:
                self._erasing[key, run_id] = None
        self._signal()

    def waits(self, key: str) -> bool:
        """Whether something that was put still is to be sent."""
        with self._lock:
            queue = self._queues.get(key)
            return queue is not None and bool(queue.parcels) and queue.sent < queue.last

    def notify(self, channel: str, message: bytes) -> None:
        """Have a message sent to whoever listens now. The same one is not sent twice in a row."""
        with self._lock:
            if not self._notices or self._notices[-1] != (channel, message):
                self._notices.append((channel, message))
        self._signal()

    async def flush(self, seconds: float) -> bool:
        """Wait until Redis has what was put so far; False if it has not after `seconds`."""
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
            with suppress(RuntimeError):  # The loop has closed: the process is on its way out.
                self._loop.call_soon_threadsafe(self._wake.set)

    def _drop_oldest(self, queue: Queue) -> None:
        size = queue.parcels.popleft().size
        queue.size -= size
        self._size -= size

    def _make_room(self) -> None:
        """Keep less to be told again, from what was used longest ago, until there is room."""
        for queue in self._queues.values():
            while queue.parcels and self._size > ALL_QUEUES_BYTES * ROOM:
                self._drop_oldest(queue)
            if self._size <= ALL_QUEUES_BYTES * ROOM:
                return

    # --- on the event loop

    async def run(self) -> None:
        """Send until cancelled."""
        self._loop = asyncio.get_running_loop()
        # A large event takes its time; whoever needs an answer soon has another connection.
        redis = self._link.client(answer_seconds=self._link.seconds * LONGEST_ROUND)
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
                # Events go in between, however much there is to be asked.
                if time.monotonic() >= due:
                    due = time.monotonic() + LOOK_SECONDS
                    await self._look(redis)
                    await self._ask(redis)
                elif self._hurry:
                    await self._ask(redis)
            except FAILURES as error:
                # Another Redis may answer next, or one that has forgotten us.
                due = time.monotonic()
                await self._link.failed("outbox", error)

    async def _send(self, redis: Redis) -> None:
        """One round trip with what is there; events before the notices that follow them."""
        with self._lock:
            erasing, self._erasing = self._erasing, {}
            batches = self._next()
            notices = list(self._notices)
            waiting, self._waiting = self._waiting, []
            self._sending = bool(batches or erasing)
        try:
            if erasing:
                # What comes after it may be of a new thread with the same id.
                await erase(redis, self._link, erasing)
            if batches or notices:
                await self._tell(redis, batches, notices)
                self._link.succeeded("outbox")
        except BaseException:
            with self._lock:
                self._unsent = {**dict.fromkeys(key for key, _, _ in batches), **self._unsent}
                self._waiting = waiting + self._waiting
                # Twice does no harm.
                self._erasing = {**erasing, **self._erasing}
            raise
        finally:
            self._sending = False
        self._sent(notices, waiting)

    def _next(self) -> list[Batch]:
        """Who waits longest first, as much as one round trip takes, or one event."""
        batches: list[Batch] = []
        room = self._round
        for key in list(islice(self._unsent, BATCH_QUEUES)):
            queue = self._queues.get(key)
            batch = [] if queue is None else queue.unsent(min(room, BATCH_BYTES))
            size = sum(parcel.size for parcel in batch)
            if batches and size > room:
                break
            del self._unsent[key]
            if queue is not None and batch:
                batches.append((key, queue, batch))
                room -= size
        return batches

    async def _tell(
        self, redis: Redis, batches: list[Batch], notices: list[tuple[str, bytes]]
    ) -> None:
        """Send it, and learn how much goes at a time."""
        size = sum(parcel.size for _, _, batch in batches for parcel in batch)
        more = min(LONGEST_ROUND, max(1.0, size / self._round))
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._link.seconds * more):
                await self._append(redis, batches)
                await self._announce(redis, notices)
        except (TimeoutError, RedisTimeoutError):
            self._round = max(LEAST_ROUND_BYTES, self._round // 2)
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
                # Whoever waits, waits for all of it.
                self._waiting = waiting + self._waiting
                waiting = []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def _append(self, redis: Redis, batches: list[Batch]) -> None:
        """Tell Redis these batches, and note how far it has each queue now.

        Raises:
            one of FAILURES: it does not answer, or takes nothing.
        """
        if not batches:
            return
        with self._lock:
            calls = [self._call(*each) for each in batches]
        for batch, call, answer in zip(batches, calls, await append(redis, calls), strict=True):
            if isinstance(answer, RedisError):
                if not is_about_a_key(answer):
                    raise answer
                # Somebody else has written there. It is ours, and begun anew.
                logger.warning("The stream of %s was deleted: %s", batch[0], answer)
                await redis.delete(call.stream, call.meta)
                answer = [0]
            held, *ranks = answer
            # Of a batch that was not taken to its end there are fewer.
            for parcel, rank in zip(batch[2], ranks, strict=False):
                parcel.rank = rank
            self._note(*batch[:2], int(held))

    def _note(self, key: str, queue: Queue, held: int) -> None:
        with self._lock:
            queue.sent = held
            if queue.parcels and held < queue.last:
                self._unsent[key] = None

    def _call(self, key: str, queue: Queue, batch: list[Parcel]) -> Append:
        # What came before is not kept any more: there is a hole, which followers will see.
        oldest = bool(batch and queue.parcels and batch[0].number <= queue.parcels[0].number)
        arguments = tuple(argument for parcel in batch for argument in parcel.arguments())
        log, meta = self._link.stream(key), self._link.meta(key)
        return Append(log, meta, queue.origin, oldest, round(self._ttl), arguments)

    async def _look(self, redis: Redis) -> None:
        """See whether Redis takes something, and still knows what it was told.

        It does not where it was emptied, or begins with what it had a while ago. After any
        failure it is not relied on: another one may have taken its place.
        """
        self._forget()
        failures = self._link.failures
        async with asyncio.timeout(self._link.seconds):
            await self._link.set_clock(redis)
            known = await self._is_known(redis)
        self._link.succeeded("outbox")
        if not known or failures != self._failures:
            self._failures = failures
            with self._lock:
                self._turn = dict.fromkeys(self._queues)
            self._hurry = bool(self._turn)

    async def _is_known(self, redis: Redis) -> bool:
        """Whether Redis still knows how often it was asked before."""
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

    def _forget(self) -> None:
        """Let go of what nobody needs to be told again, and renew what else would expire."""
        in_flight = dict.fromkeys(self._in_flight())
        with self._lock:
            old = [
                key
                for key, queue in self._until(time.monotonic() - self._ttl)
                if key not in in_flight and queue.is_over(self._ttl)
            ]
            for key in old:
                self._size -= self._queues.pop(key).size
            if time.monotonic() - self._renewed > self._ttl / 3:
                self._renewed = time.monotonic()
                self._turn = {**in_flight, **self._turn}

    def _until(self, moment: float) -> Iterator[tuple[str, Queue]]:
        """Queues that were not used since."""
        return takewhile(lambda each: each[1].used < moment, self._queues.items())

    async def _ask(self, redis: Redis) -> None:
        """Ask how far Redis has the next streams whose turn it is, which keeps them, too."""
        with self._lock:
            self._turn = self._turn or dict.fromkeys(self._queues)
            asked: list[Batch] = []
            while self._turn and len(asked) < ASK_QUEUES:
                key = next(iter(self._turn))
                del self._turn[key]
                queue = self._queues.get(key)
                if queue is not None and queue.parcels:
                    asked.append((key, queue, []))
        async with asyncio.timeout(self._link.seconds):
            await self._append(redis, asked)
        self._hurry = self._hurry and bool(self._turn)
