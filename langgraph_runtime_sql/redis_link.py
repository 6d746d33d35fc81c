"""Link: the way to one Redis or Valkey, which may be away for a while.

It says so once when it goes and once when it comes back, and whoever needs it tries
again at growing intervals meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import redis.asyncio as redis_client
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

FAILURES = (RedisError, OSError, TimeoutError, EOFError)
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0


class Link:
    """Connections to one Redis.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        prefix: What all keys and channels begin with.
        on_clock: Told by how many nanoseconds Redis's clock is ahead of ours.

    Attributes:
        seconds: How long a command may take before Redis counts as away.
        well: Whether the last command was answered.
    """

    def __init__(
        self, url: str, prefix: str, on_clock: Callable[[int], None], *, seconds: float = 5.0
    ) -> None:
        self.url = url
        self.seconds = seconds
        self.well = True
        self.failures = 0
        self._prefix = prefix
        self._on_clock = on_clock
        self._clients: list[Redis] = []
        self._commands: Redis | None = None
        self._pause = FIRST_PAUSE_SECONDS
        self._clock_is_set = False

    # --- names

    def stream(self, key: str) -> str:
        """The stream with the events of a thread."""
        return f"{self._prefix}:{{{key}}}:events"

    def meta(self, key: str) -> str:
        """What is known of that stream: who has sent how much, and for which attempt."""
        return f"{self._prefix}:{{{key}}}:known"

    def name(self, what: str) -> str:
        """Any other key or channel."""
        return f"{self._prefix}:{what}"

    # --- connections

    def client(self, *, answer_seconds: float | None) -> Redis:
        """A client of one connection at a time; it connects at its first command."""
        made: Redis = redis_client.from_url(
            self.url,
            socket_connect_timeout=self.seconds,
            socket_timeout=answer_seconds,
            socket_keepalive=True,
            # Whoever uses it tries again himself, once Redis is back.
            retry=Retry(NoBackoff(), 0),
        )
        self._clients.append(made)
        return made

    async def commands(self) -> Redis:
        """The client for commands that are answered at once."""
        if self._commands is None:
            self._commands = self.client(answer_seconds=self.seconds)
        if not self._clock_is_set:
            await self.set_clock(self._commands)
        return self._commands

    async def set_clock(self, redis: Redis) -> None:
        """Learn what time it is for Redis, whose clock all processes share."""
        before = time.time_ns()
        seconds, microseconds = await redis.time()
        here = (before + time.time_ns()) // 2
        self._on_clock(int(seconds) * 10**9 + int(microseconds) * 1_000 - here)
        self._clock_is_set = True

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients:
            try:
                await client.aclose()
            except FAILURES:
                continue  # It was gone before.
        self._clients.clear()
        self._commands = None

    # --- health

    def succeeded(self) -> None:
        """Note that Redis answers."""
        self._pause = FIRST_PAUSE_SECONDS
        if not self.well:
            self.well = True
            logger.warning("Redis answers again")

    async def failed(self, error: BaseException) -> None:
        """Note that it does not, and wait before the next attempt."""
        self.failures += 1
        if self.well:
            self.well = False
            logger.warning("Redis does not answer; runs go on: %s", str(error) or repr(error))
        self._clock_is_set = False
        pause = self._pause
        self._pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        await asyncio.sleep(pause)
