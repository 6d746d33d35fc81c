"""Outbox: brings what this process publishes to Redis, in order, each event once.

Publishing only appends to a bounded queue in memory; a task sends what is there, many
events a round trip. Each queue numbers its events without a hole, and Redis keeps the
number that it has: so a batch whose answer was lost is not stored twice, and a Redis
that has forgotten everything is told again what is still kept here.
"""

import asyncio
import logging
import threading
import time
import uuid
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from langgraph_runtime_sql.redis_append import Append, append
from langgraph_runtime_sql.redis_link import FAILURES, Link, is_about_a_key

logger = logging.getLogger(__name__)

# What is kept here of one thread to tell it again, and of all of them.
QUEUE_BYTES = 32 * 2**20
ALL_QUEUES_BYTES = 128 * 2**20
BATCH_EVENTS = 500
BATCH_BYTES = 2**20
BATCH_QUEUES = 50
# How often Redis is asked whether it still has what it was told, and streams are kept alive.
TOUCH_SECONDS = 5.0
ALIVE_SECONDS = 60
NOTICES = 10_000


@dataclass(frozen=True, slots=True)
class Parcel:
    """An event as it travels."""

    number: int
    run_id: str
    attempt: int
    header: bytes
    data: bytes

    @property
    def size(self) -> int:
        return len(self.header) + len(self.data)

    def arguments(self) -> tuple[Any, ...]:
        return self.number, self.run_id, self.attempt, self.header, self.data


@dataclass(slots=True)
class _Queue:
    """What was published on one thread.

    Attributes:
        origin: Whose numbers they are. A queue that is made anew has another.
        sent: The number of the last event that Redis has.
        used: When something was published here last.
    """

    origin: str
    parcels: deque[Parcel] = field(default_factory=deque)
    size: int = 0
    last: int = 0
    sent: int = 0
    used: float = 0.0

    def unsent(self) -> list[Parcel]:
        """The next batch."""
        if not self.parcels:
            return []
        start = max(0, self.sent + 1 - self.parcels[0].number)
        batch: list[Parcel] = []
        size = 0
        for parcel in islice(self.parcels, start, start + BATCH_EVENTS):
            batch.append(parcel)
            size += parcel.size
            if size > BATCH_BYTES:
                break
        return batch


# The key of a stream, what was published there, and the next that is to be sent of it.
Batch = tuple[str, _Queue, list[Parcel]]


class Outbox:
    """Everything that this process tells others.

    Args:
        link: The way to Redis.
        ttl: Seconds for which Redis keeps a stream that nothing more is added to.
    """

    def __init__(self, link: Link, ttl: float) -> None:
        self._link = link
        self._ttl = ttl
        self._lock = threading.Lock()
        self._process = uuid.uuid4().hex[:12]
        self._made = 0
        self._queues: dict[str, _Queue] = {}
        self._size = 0
        self._unsent: dict[str, None] = {}
        self._notices: deque[tuple[str, bytes]] = deque(maxlen=NOTICES)
        self._waiting: list[Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._woken = False

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
                queue = self._queues[key] = _Queue(f"{self._process}-{self._made}")
            queue.last += 1
            queue.used = time.monotonic()
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
            if not self._unsent and not self._notices:
                return True
            self._waiting.append(done)
        self._signal()
        try:
            await asyncio.wait_for(asyncio.wrap_future(done), seconds)
        except TimeoutError:
            return False
        return True

    def _signal(self) -> None:
        if self._loop is not None and not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # The loop has closed: the process is on its way out.
                self._loop.call_soon_threadsafe(self._wake.set)

    def _drop_oldest(self, queue: _Queue) -> None:
        size = queue.parcels.popleft().size
        queue.size -= size
        self._size -= size

    def _make_room(self) -> None:
        """Keep less to be told again, from what was used longest ago, until the rest fits."""
        for queue in sorted(self._queues.values(), key=lambda each: each.used):
            while queue.parcels and self._size > ALL_QUEUES_BYTES:
                self._drop_oldest(queue)

    # --- on the event loop

    async def run(self) -> None:
        """Send until cancelled."""
        self._loop = asyncio.get_running_loop()
        touched = time.monotonic()
        while True:
            if not self._unsent and not self._notices:
                with suppress(TimeoutError):
                    async with asyncio.timeout(TOUCH_SECONDS):
                        await self._wake.wait()
            self._wake.clear()
            self._woken = False
            try:
                async with asyncio.timeout(self._link.seconds):
                    await self._send()
                if time.monotonic() - touched > TOUCH_SECONDS:
                    async with asyncio.timeout(self._link.seconds):
                        await self._touch()
                    touched = time.monotonic()
            except FAILURES as error:
                await self._link.failed("outbox", error)

    async def _send(self) -> None:
        """One round trip with what is there; events before the notices that follow them."""
        with self._lock:
            keys = list(islice(self._unsent, BATCH_QUEUES))
            for key in keys:
                del self._unsent[key]
            batches = [
                (key, self._queues[key], self._queues[key].unsent())
                for key in keys
                if key in self._queues
            ]
            notices = list(self._notices)
            waiting, self._waiting = self._waiting, []
        try:
            if keys or notices:
                redis = await self._link.commands()
                await self._append(redis, [each for each in batches if each[2]])
                self._link.succeeded("outbox")
            if notices:
                pipeline: Any = redis.pipeline(transaction=False)
                for channel, message in notices:
                    pipeline.publish(channel, message)
                await pipeline.execute()
        except BaseException:
            with self._lock:
                self._unsent = {**dict.fromkeys(keys), **self._unsent}
                self._waiting = waiting + self._waiting
            raise
        self._sent(notices, waiting)

    def _sent(self, notices: list[tuple[str, bytes]], waiting: list[Future[None]]) -> None:
        with self._lock:
            for notice in notices:
                with suppress(ValueError):
                    self._notices.remove(notice)
            if self._unsent:
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
        for batch, call, held in zip(batches, calls, await append(redis, calls), strict=True):
            if isinstance(held, RedisError):
                if not is_about_a_key(held):
                    raise held
                # Somebody else has written there. It is ours, and begun anew.
                logger.warning("The stream of %s was deleted: %s", batch[0], held)
                await redis.delete(call.stream, call.meta)
                held = 0
            self._note(*batch[:2], int(held))

    def _note(self, key: str, queue: _Queue, held: int) -> None:
        with self._lock:
            queue.sent = held
            if queue.parcels and held < queue.last:
                self._unsent[key] = None

    def _call(self, key: str, queue: _Queue, batch: list[Parcel]) -> Append:
        # What came before is not kept any more: there is a hole, which followers will see.
        oldest = bool(batch and queue.parcels and batch[0].number <= queue.parcels[0].number)
        arguments = tuple(argument for parcel in batch for argument in parcel.arguments())
        log, meta = self._link.stream(key), self._link.meta(key)
        return Append(log, meta, queue.origin, oldest, round(self._ttl), arguments)

    async def _touch(self) -> None:
        """Keep streams alive, and see whether Redis still has what it was told, and takes more."""
        moment = time.monotonic()
        with self._lock:
            for key in [k for k, v in self._queues.items() if self._is_over(v, moment)]:
                self._size -= self._queues.pop(key).size
            asked: list[Batch] = [
                (key, queue, []) for key, queue in self._queues.items() if queue.parcels
            ]
        redis = await self._link.commands()
        await self._link.set_clock(redis)
        await redis.set(self._link.name(f"alive:{self._process}"), "1", ex=ALIVE_SECONDS)
        for start in range(0, len(asked), 500):
            await self._append(redis, asked[start : start + 500])
        self._link.succeeded("outbox")

    def _is_over(self, queue: _Queue, moment: float) -> bool:
        """Whether nothing was published for so long that nobody needs to be told again."""
        return queue.sent == queue.last and moment - queue.used > self._ttl
