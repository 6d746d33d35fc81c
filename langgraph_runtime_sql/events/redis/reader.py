"""Reader: read the streams of all processes on one connection.

Anyone with access to Redis can write there, so foreign data is dropped and logged.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langgraph_runtime_sql.events.event import START, Event, Order, parse_order
from langgraph_runtime_sql.events.redis.entry import (
    Entry,
    Place,
    StoredEvent,
    is_restart,
    last_numbers,
    number_of,
    place_of,
    rank_of,
    stored_events,
    unpack,
)
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, is_about_a_key
from langgraph_runtime_sql.events.redis.subscription import RemoteSubscription

logger = logging.getLogger(__name__)

BLOCK_MILLISECONDS = 2_000
COUNT = 200
# If Redis does not tell a stream's position, reading starts this much earlier.
MARGIN_MILLISECONDS = 1_000
PLACE_SECONDS = 2.0
POKE_TTL_SECONDS = 60
# Within this time every process has noticed that Redis was emptied, and has sent its events again.
RESEND_SECONDS = 7.0
ASK_SECONDS = 0.2

# One step, because a publisher may begin the stream anew at the same time. Without the metadata,
# publishers send everything again.
CLEAR = """
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'stream' or kind == 'none' then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
"""


@dataclass(slots=True)
class _Stream:
    """A stream with followers.

    Attributes:
        position: The last entry that was read.
        held: Each origin's last number at the first position; None if Redis could not be asked.
        seen: Each origin's last number that was read.
    """

    position: bytes = b"0-0"
    held: dict[bytes, int] | None = None
    seen: dict[bytes, int] = field(default_factory=dict)
    readers: set[RemoteSubscription] = field(default_factory=set)
    placing: asyncio.Task[None] | None = None


class Reader:
    """Reads the events of all processes for the followers in this one.

    Args:
        link: The link to Redis.
        name: The unique name of this process.
        is_ours: Returns whether an origin is this process.
        ttl: How many seconds Redis keeps a stream after its last event.
        deliver: Called with topic, event, rank, and whether the event is ours.
    """

    def __init__(
        self,
        link: Link,
        name: str,
        is_ours: Callable[[bytes], bool],
        ttl: float,
        deliver: Callable[[str, Event, Order, bool], None],
    ) -> None:
        self._link = link
        self._is_ours = is_ours
        self._ttl = ttl
        self._deliver = deliver
        self._streams: dict[str, _Stream] = {}
        self._poke = link.name(f"poke:{name}")
        self._poked = b"0-0"
        self._progress = asyncio.Event()
        self._blocking = link.client(answer_seconds=BLOCK_MILLISECONDS / 1_000 + link.seconds)

    # --- subscriptions

    async def follow(
        self, key: str, subscription: RemoteSubscription, asked_at: int | None
    ) -> None:
        """Deliver a stream's events to a subscription. Return when none can be missed any more.

        Args:
            key: The stream's topic.
            asked_at: Begin with the events since then, in nanoseconds by this machine's clock. With
                None, or if the stream is followed already, begin at its end.
        """
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
            stream.placing = asyncio.create_task(self._place(key, stream, asked_at))
        stream.readers.add(subscription)
        if stream.placing is not None:
            await asyncio.shield(stream.placing)

    def unfollow(self, key: str, subscription: RemoteSubscription) -> None:
        """Stop delivering a stream to a subscription. Repeatable."""
        stream = self._streams.get(key)
        if stream is not None:
            stream.readers.discard(subscription)
            if not stream.readers:
                del self._streams[key]

    async def _place(self, key: str, stream: _Stream, asked_at: int | None) -> None:
        """Find the position at which the loop begins to read a stream.

        Redis may answer late, and the client may have created a run meanwhile.
        """
        since = time.time_ns() if asked_at is None else asked_at
        name = self._link.stream(key)
        try:
            async with asyncio.timeout(min(PLACE_SECONDS, self._link.seconds)):
                redis: Any = await self._link.commands()
                pipeline = redis.pipeline(transaction=True)
                if asked_at is None:
                    # By entry, because one millisecond may have entries before and after.
                    pipeline.xrevrange(name, count=1)
                else:
                    first = b"%d-0" % self._milliseconds(asked_at)
                    pipeline.xrevrange(name, b"(" + first, count=1)
                    pipeline.xrange(name, first)
                pipeline.hgetall(self._link.meta(key))
                before, *newer, known = await pipeline.execute()
        except FAILURES:
            # The loop logs the failure.
            stream.position = b"%d-0" % (self._milliseconds(since) - MARGIN_MILLISECONDS)
        else:
            if before:
                stream.position = before[0][0]
            stream.held = last_numbers(known, newer[0] if newer else ())
        finally:
            stream.placing = None
        await self._wake()

    async def _wake(self) -> None:
        """Make the loop read the current streams now, by an entry in its own stream."""
        with suppress(*FAILURES):  # The loop logs the failure.
            async with asyncio.timeout(min(PLACE_SECONDS, self._link.seconds)):
                redis: Any = await self._link.commands()
                pipeline = redis.pipeline(transaction=True)
                pipeline.xadd(self._poke, {"k": "1"}, maxlen=1)
                pipeline.expire(self._poke, POKE_TTL_SECONDS)
                await pipeline.execute()

    def _milliseconds(self, nanoseconds: int) -> int:
        """Convert nanoseconds of our clock to milliseconds of Redis's clock."""
        return (nanoseconds + self._link.skew) // 1_000_000

    # --- live events

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self._read()
                self._link.succeeded("reader")
            except FAILURES as error:
                if is_about_a_key(error):
                    await self._delete_foreign_keys()
                await self._link.failed("reader", error)

    async def _read(self) -> None:
        names = {
            self._link.stream(key).encode(): (key, stream)
            for key, stream in self._streams.items()
            if stream.placing is None
        }
        positions: dict[Any, Any] = {name: stream.position for name, (_, stream) in names.items()}
        positions[self._poke] = self._poked
        answer = await self._blocking.xread(positions, count=COUNT, block=BLOCK_MILLISECONDS)
        for name, entries in _streams(answer):
            if name in names:
                self._process(*names[name], entries)
            else:
                self._poked = entries[-1][0]
        self._progress.set()
        self._progress = asyncio.Event()

    def _process(self, key: str, stream: _Stream, entries: list[Entry]) -> None:
        for entry_id, fields in entries:
            before, stream.position = stream.position, entry_id
            numbered = number_of(fields)
            if numbered is None:
                _warn(key)
                continue
            if is_restart(fields) and self._was_emptied(stream, before):
                for subscription in stream.readers:
                    subscription.hold(RESEND_SECONDS)
            ours = self._is_ours(numbered[0])
            if not self._is_next(stream, *numbered, ours):
                continue
            if (event := unpack(fields)) is not None:
                self._deliver(key, event, rank_of(fields, event), ours)
            elif b"h" in fields:
                _warn(key)

    def _was_emptied(self, stream: _Stream, before: bytes) -> bool:
        """Return whether a stream that begins anew had entries that processes still keep."""
        silent = place_of(stream.position)[0] - place_of(before)[0]
        return bool(stream.held or stream.seen) and silent < self._ttl * 1_000

    def _is_next(self, stream: _Stream, origin: bytes, number: int, ours: bool) -> bool:
        """Return whether an event is new. Mark a loss if earlier events are missing."""
        before = stream.seen.get(origin)
        if before is None and stream.held is not None:
            before = stream.held.get(origin, 0)
        if before is not None and number <= before:
            return False
        if before is not None and number > before + 1:
            for subscription in stream.readers:
                # Followers of our own runs get their events directly.
                if subscription.of_thread or not ours:
                    subscription.lose()
        stream.seen[origin] = number
        return True

    async def _delete_foreign_keys(self) -> None:
        """Delete foreign keys in place of followed streams, and mark a loss."""
        with suppress(*FAILURES):
            redis: Any = await self._link.commands()
            for key, stream in list(self._streams.items()):
                if await redis.eval(CLEAR, 2, self._link.stream(key), self._link.meta(key)):
                    _warn(key)
                    for subscription in stream.readers:
                        subscription.lose()

    # --- stored events

    def position(self, key: str) -> Place:
        """Return the last entry that was read. Later ones will be delivered."""
        stream = self._streams.get(key)
        return place_of(stream.position) if stream is not None else (0, 0)

    async def log(self, key: str) -> list[StoredEvent]:
        """Return all events in a stream. Raise one of FAILURES without an answer."""
        found: list[StoredEvent] = []
        after = b"-"
        async with asyncio.timeout(self._link.seconds):
            redis: Any = await self._link.commands()
            while entries := await redis.xrange(self._link.stream(key), after, "+", count=1_000):
                found += stored_events(entries)
                after = b"(" + entries[-1][0]
        return found

    async def last(self, key: str) -> Order:
        """Return the greatest rank in a stream. Raise one of FAILURES without an answer."""
        redis: Any = await self._link.commands()
        return parse_order(await redis.hget(self._link.meta(key), "last")) or START

    async def born(self, key: str) -> int | None:
        """Return when a stream was begun or refilled, in milliseconds of Redis's clock, or None.

        Raise one of FAILURES without an answer.
        """
        async with asyncio.timeout(self._link.seconds):
            redis: Any = await self._link.commands()
            found = await redis.hget(self._link.meta(key), "born")
        return int(found) if found is not None and found.isdigit() else None

    async def settle(self, key: str, seconds: float, run_id: str | None = None) -> bool:
        """Wait until all current entries of a stream are delivered. Return False on timeout.

        Args:
            key: The stream's topic.
            seconds: The timeout.
            run_id: Also wait for the end event of this run.
        """
        stream = self._streams.get(key)
        if stream is None:
            return True
        deadline = time.monotonic() + seconds
        last = await self._end(key, run_id, deadline)
        if last is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                while place_of(stream.position) < last:
                    await self._progress.wait()
        return place_of(stream.position) >= last

    async def _end(self, key: str, run_id: str | None, deadline: float) -> Place | None:
        """Return the last entry of a stream that has the run's end event, or None at the deadline.

        The loop checks the clock, because the client may take a cancellation for its own timeout.
        """
        while time.monotonic() < deadline:
            try:
                async with asyncio.timeout(max(ASK_SECONDS, deadline - time.monotonic())):
                    redis: Any = await self._link.commands()
                    if run_id is None or await self._has_end(redis, key, run_id):
                        last = await redis.xrevrange(self._link.stream(key), count=1)
                        return place_of(last[0][0]) if last else (0, 0)
            except FAILURES as error:
                logger.debug("Reading the end of a stream failed: %r", error)
            await asyncio.sleep(ASK_SECONDS)
        return None

    async def _has_end(self, redis: Any, key: str, run_id: str) -> bool:
        before = b"+"
        while entries := await redis.xrevrange(self._link.stream(key), before, "-", count=100):
            if any(
                each.event.is_end and each.event.run_id == run_id for each in stored_events(entries)
            ):
                return True
            before = b"(" + entries[-1][0]
        return False


def _warn(key: str) -> None:
    logger.warning("Dropped a foreign entry in the stream of %s", key)


def _streams(answer: Any) -> Any:
    """Return the streams in an answer to XREAD, in either version of the protocol."""
    if isinstance(answer, dict):
        return [(name, entries[0] if entries else []) for name, entries in answer.items()]
    return answer or []
