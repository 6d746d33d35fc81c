"""Reader: follows the streams of other processes, all of them on one connection.

Whoever reaches Redis can write to it: what is not an event is dropped, and said so.
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
    Kept,
    Place,
    held_before,
    is_begun_anew,
    kept_in,
    number_of,
    place_of,
    rank_of,
    unpack,
)
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, is_about_a_key
from langgraph_runtime_sql.events.redis.subscription import RemoteSubscription

logger = logging.getLogger(__name__)

BLOCK_MILLISECONDS = 2_000
COUNT = 200
# Where a stream cannot be asked for its place, it is read from a little earlier.
MARGIN_MILLISECONDS = 1_000
PLACE_SECONDS = 2.0
POKE_TTL_SECONDS = 60
# By then every process has noticed that Redis was emptied, and told it again what it knows.
TOLD_AGAIN_SECONDS = 7.0
ASK_SECONDS = 0.2

# In one step, because whoever publishes may begin the stream anew just then. What is known of it
# goes, too: by that they see that they have to tell everything again.
CLEAR = """
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'stream' or kind == 'none' then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
"""


@dataclass(slots=True)
class _Stream:
    """A stream that is followed.

    Attributes:
        position: The last entry that was read.
        held: The number of the last event of each origin; None where Redis could not be asked.
    """

    position: bytes = b"0-0"
    held: dict[bytes, int] | None = None
    seen: dict[bytes, int] = field(default_factory=dict)
    readers: set[RemoteSubscription] = field(default_factory=set)
    placing: asyncio.Task[None] | None = None


class Reader:
    """What all processes publish, for those who follow it here.

    Args:
        link: The way to Redis.
        name: This process, unlike any other.
        is_ours: Whether an origin is this process.
        ttl: Seconds for which Redis keeps a stream that nothing more is added to.
        deliver: Called with the key of a stream, each event, its rank, and whether it is ours.
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

    # --- who follows what

    async def follow(
        self, key: str, subscription: RemoteSubscription, asked_at: int | None
    ) -> None:
        """Deliver what comes to a stream. Returns when nothing more can be missed.

        Args:
            asked_at: From when on, in nanoseconds by this machine's clock. None, or a stream
                that is followed already: from its end on.
        """
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
            stream.placing = asyncio.create_task(self._place(key, stream, asked_at))
        stream.readers.add(subscription)
        if stream.placing is not None:
            await asyncio.shield(stream.placing)

    def unfollow(self, key: str, subscription: RemoteSubscription) -> None:
        """Deliver no more of it. Repeatable."""
        stream = self._streams.get(key)
        if stream is not None:
            stream.readers.discard(subscription)
            if not stream.readers:
                del self._streams[key]

    async def _place(self, key: str, stream: _Stream, asked_at: int | None) -> None:
        """Have the loop read a stream from its end on, or from when it was asked for.

        Redis may take its time to answer, and whoever asked has perhaps begun a run meanwhile.
        """
        moment = time.time_ns() if asked_at is None else asked_at
        name = self._link.stream(key)
        try:
            async with asyncio.timeout(min(PLACE_SECONDS, self._link.seconds)):
                redis: Any = await self._link.commands()
                pipeline = redis.pipeline(transaction=True)
                if asked_at is None:
                    # By the entry: the same millisecond may have more than was asked for.
                    pipeline.xrevrange(name, count=1)
                else:
                    since = b"%d-0" % self._milliseconds(asked_at)
                    pipeline.xrevrange(name, b"(" + since, count=1)
                    pipeline.xrange(name, since)
                pipeline.hgetall(self._link.meta(key))
                before, *newer, known = await pipeline.execute()
        except FAILURES:
            # The loop will notice, and say so.
            earlier = self._milliseconds(moment) - MARGIN_MILLISECONDS
            stream.position = b"%d-0" % earlier
        else:
            if before:
                stream.position = before[0][0]
            stream.held = held_before(known, newer[0] if newer else ())
        finally:
            stream.placing = None
        await self._wake()

    async def _wake(self) -> None:
        """Have the loop look at what is followed now, instead of when its wait is over."""
        with suppress(*FAILURES):  # The loop will notice, and say so.
            async with asyncio.timeout(min(PLACE_SECONDS, self._link.seconds)):
                redis: Any = await self._link.commands()
                pipeline = redis.pipeline(transaction=True)
                pipeline.xadd(self._poke, {"k": "1"}, maxlen=1)
                pipeline.expire(self._poke, POKE_TTL_SECONDS)
                await pipeline.execute()

    def _milliseconds(self, moment: int) -> int:
        """What Redis's clock showed at a moment of ours, in nanoseconds."""
        return (moment + self._link.skew) // 1_000_000

    # --- what comes

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self._read()
                self._link.succeeded("reader")
            except FAILURES as error:
                if is_about_a_key(error):
                    await self._drop_what_is_no_stream()
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
                self._take(*names[name], entries)
            else:
                self._poked = entries[-1][0]
        self._progress.set()
        self._progress = asyncio.Event()

    def _take(self, key: str, stream: _Stream, entries: list[Entry]) -> None:
        for entry_id, fields in entries:
            before, stream.position = stream.position, entry_id
            numbered = number_of(fields)
            if numbered is None:
                _drop(key)
                continue
            if is_begun_anew(fields) and self._was_emptied(stream, before):
                for subscription in stream.readers:
                    subscription.hold(TOLD_AGAIN_SECONDS)
            ours = self._is_ours(numbered[0])
            if not self._is_next(stream, *numbered, ours):
                continue
            if (event := unpack(fields)) is not None:
                self._deliver(key, event, rank_of(fields, event), ours)
            elif b"h" in fields:
                _drop(key)

    def _was_emptied(self, stream: _Stream, before: bytes) -> bool:
        """Whether a stream that begins anew had entries not long ago, which processes still know."""
        silent = place_of(stream.position)[0] - place_of(before)[0]
        return bool(stream.held or stream.seen) and silent < self._ttl * 1_000

    def _is_next(self, stream: _Stream, origin: bytes, number: int, ours: bool) -> bool:
        """Whether an event is new; where one before it never came, followers are told."""
        before = stream.seen.get(origin)
        if before is None and stream.held is not None:
            before = stream.held.get(origin, 0)
        if before is not None and number <= before:
            return False
        if before is not None and number > before + 1:
            for subscription in stream.readers:
                # Followers of our own runs do not have it from Redis.
                if subscription.of_thread or not ours:
                    subscription.lose()
        stream.seen[origin] = number
        return True

    async def _drop_what_is_no_stream(self) -> None:
        """Delete what somebody has put under the name of a stream; its followers are told."""
        with suppress(*FAILURES):
            redis: Any = await self._link.commands()
            for key, stream in list(self._streams.items()):
                if await redis.eval(CLEAR, 2, self._link.stream(key), self._link.meta(key)):
                    _drop(key)
                    for subscription in stream.readers:
                        subscription.lose()

    # --- what was

    def position(self, key: str) -> Place:
        """The last entry of a stream that was read; what comes after it will be delivered."""
        stream = self._streams.get(key)
        return place_of(stream.position) if stream is not None else (0, 0)

    async def log(self, key: str) -> list[Kept]:
        """All events that a stream still holds.

        Raises:
            one of FAILURES: Redis does not answer.
        """
        found: list[Kept] = []
        after = b"-"
        async with asyncio.timeout(self._link.seconds):
            redis: Any = await self._link.commands()
            while entries := await redis.xrange(self._link.stream(key), after, "+", count=1_000):
                found += kept_in(entries)
                after = b"(" + entries[-1][0]
        return found

    async def last(self, key: str) -> Order:
        """The greatest rank in a stream.

        Raises:
            one of FAILURES: Redis does not answer.
        """
        redis: Any = await self._link.commands()
        return parse_order(await redis.hget(self._link.meta(key), "last")) or START

    async def born(self, key: str) -> int | None:
        """When a stream was begun, or told again, in milliseconds by Redis's clock, if ever.

        Raises:
            one of FAILURES: Redis does not answer.
        """
        async with asyncio.timeout(self._link.seconds):
            redis: Any = await self._link.commands()
            found = await redis.hget(self._link.meta(key), "born")
        return int(found) if found is not None and found.isdigit() else None

    async def settle(self, key: str, seconds: float, run_id: str | None = None) -> bool:
        """Wait until what a stream holds now was delivered; False where that cannot be said.

        Args:
            run_id: Not before the stream holds the end of this run, either.
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
        """The last entry of a stream, as soon as Redis says which, and it holds a run's end.

        By the clock, because the client may take a cancellation for a timeout of its own.
        """
        while time.monotonic() < deadline:
            try:
                async with asyncio.timeout(max(ASK_SECONDS, deadline - time.monotonic())):
                    redis: Any = await self._link.commands()
                    if run_id is None or await self._has_end(redis, key, run_id):
                        last = await redis.xrevrange(self._link.stream(key), count=1)
                        return place_of(last[0][0]) if last else (0, 0)
            except FAILURES as error:
                logger.debug("The end of a stream cannot be asked for: %r", error)
            await asyncio.sleep(ASK_SECONDS)
        return None

    async def _has_end(self, redis: Any, key: str, run_id: str) -> bool:
        before = b"+"
        while entries := await redis.xrevrange(self._link.stream(key), before, "-", count=100):
            if any(each.event.is_end and each.event.run_id == run_id for each in kept_in(entries)):
                return True
            before = b"(" + entries[-1][0]
        return False


def _drop(key: str) -> None:
    logger.warning("What is no event was dropped from the stream of %s", key)


def _streams(answer: Any) -> Any:
    """The streams of an answer to XREAD, in either version of the protocol."""
    if isinstance(answer, dict):
        return [(name, entries[0] if entries else []) for name, entries in answer.items()]
    return answer or []
