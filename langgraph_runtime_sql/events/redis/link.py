"""Link: the way to one Redis or Valkey, which may be away for a while.

It says so once when it goes and once when it comes back, and whoever needs it tries
again at growing intervals meanwhile.
"""

import asyncio
import logging
import math
import time
from typing import Any

import redis.asyncio as redis_client
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    InvalidResponse,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from langgraph_runtime_sql.errors import BadRedis
from langgraph_runtime_sql.events.redis.url import is_local, shown

logger = logging.getLogger(__name__)

FAILURES = (RedisError, OSError, TimeoutError, EOFError)
FIRST_PAUSE_SECONDS = 0.05
CLOCK_QUESTIONS = 3
LONGEST_PAUSE_SECONDS = 2.0
# What a start waits for an answer; a Redis that is away does not hold it up.
LOOK_SECONDS = 2.0


class Link:
    """Connections to one Redis.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        prefix: What all keys and channels begin with.

    Attributes:
        seconds: How long a command may take before Redis counts as away.
        skew: Nanoseconds by which Redis's clock is ahead of ours.
        knows_clock: Whether it has ever said so.
        failures: How often one was not answered, or refused.
    """

    def __init__(self, url: str, prefix: str, *, seconds: float = 5.0) -> None:
        self.url = url
        self.prefix = prefix
        self.seconds = seconds
        self.skew = 0
        self.knows_clock = False
        self.failures = 0
        self._clients: list[Redis] = []
        self._commands: Redis | None = None
        # How long whoever got no answer waits before he tries again, and what he was told.
        self._pauses: dict[str, float] = {}
        self._logged: dict[str, BaseException] = {}
        self._answered = False
        self._clock_is_set = False
        self._clock_error = math.inf

    # --- names

    def stream(self, key: str) -> str:
        """The stream with the events of a thread, by its topic."""
        return f"{self.prefix}:{{{key}}}:events"

    def meta(self, key: str) -> str:
        """What is known of that stream: who has sent how much, and for which attempt."""
        return f"{self.prefix}:{{{key}}}:known"

    def name(self, what: str) -> str:
        """Any other key or channel."""
        return f"{self.prefix}:{what}"

    # --- connections

    def client(self, *, answer_seconds: float | None) -> Redis:
        """A client of one connection at a time; it connects at its first command."""
        # A socket of this machine has no such option, and needs none.
        options = {} if is_local(self.url) else {"socket_keepalive": True}
        made: Redis = redis_client.from_url(
            self.url,
            socket_connect_timeout=self.seconds,
            socket_timeout=answer_seconds,
            **options,
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
        """Learn what time it is for Redis, whose clock all processes share.

        The answer that came quickest counts: on a busy machine others are wrong by half of what
        they took. As clocks drift, it counts for less each time.
        """
        self._clock_error *= 2
        for _ in range(CLOCK_QUESTIONS):
            before = time.time_ns()
            seconds, microseconds = await redis.time()
            took = time.time_ns() - before
            if 0 <= took <= self._clock_error:
                self._clock_error = took
                there = int(seconds) * 10**9 + int(microseconds) * 1_000
                self.skew = there - before - took // 2
                self.knows_clock = True
        self._clock_is_set = True

    async def look(self) -> None:
        """Refuse a Redis that would never do. One that is away is not refused.

        Raises:
            BadRedis: a Cluster or Sentinel, no Redis at all, or one that does not let us in.
        """
        try:
            async with asyncio.timeout(min(LOOK_SECONDS, self.seconds)):
                await refuse(self.client(answer_seconds=self.seconds), self.url)
        except FAILURES as error:
            # Its users will notice, and say so.
            logger.debug("Redis could not be looked at: %r", error)
        else:
            self._answered = True

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

    @property
    def well(self) -> bool:
        """Whether everybody who uses Redis gets answers."""
        return not self._pauses

    @property
    def state(self) -> str:
        """`ok`, `away` where it does not answer, `refusing` where it does not do what it is told."""
        if any(isinstance(error, ResponseError) for error in self._logged.values()):
            return "refusing"
        return "ok" if self._answered and self.well else "away"

    def succeeded(self, who: str) -> None:
        """Note that Redis answers `who`."""
        self._answered = True
        if self._pauses.pop(who, None) is not None:
            self._logged.pop(who, None)
            if self.well:
                logger.warning("Redis answers again")

    async def failed(self, who: str, error: BaseException) -> None:
        """Note that it does not, and wait before the next attempt."""
        self.failures += 1
        self._logged[who] = error
        if self.well:
            logger.warning("Redis does not answer; runs go on: %s", str(error) or repr(error))
        # Another one may answer next.
        self._clock_is_set = False
        self._clock_error = math.inf
        pause = self._pauses.get(who, FIRST_PAUSE_SECONDS)
        self._pauses[who] = min(LONGEST_PAUSE_SECONDS, pause * 2)
        await asyncio.sleep(pause)


async def refuse(redis: Redis, url: str) -> dict[str, Any]:
    """What a Redis says of itself, unless it would never do.

    Raises:
        BadRedis: a Cluster or Sentinel, no Redis at all, or one that does not let us in.
        one of FAILURES: it does not answer.
    """
    try:
        found: dict[str, Any] = await redis.info()
    except NoPermissionError:
        return {}
    except AuthenticationError as error:
        raise BadRedis(f"The Redis at {shown(url)} does not accept user and password.") from error
    except InvalidResponse as error:
        raise BadRedis(f"What answers at {shown(url)} is no Redis.") from error
    except ResponseError as error:
        if "DB index" in str(error):
            raise BadRedis(f"The Redis at {shown(url)} refuses: {error}.") from error
        raise
    mode = str(found.get("redis_mode") or found.get("server_mode") or "standalone")
    if mode in ("cluster", "sentinel") or found.get("cluster_enabled") == 1:
        raise BadRedis(
            f"The Redis at {shown(url)} is a {mode.capitalize()}, which is not supported: name one "
            "primary, or a proxy in front of it."
        )
    return found


def is_about_a_key(error: BaseException) -> bool:
    """Whether Redis refuses a command for what somebody has written to its key.

    Refusals of the server as a whole (out of memory, read-only, misconfigured) have classes of
    their own, or begin with another word in capitals.
    """
    first = str(error).partition(" ")[0]
    return type(error) is ResponseError and (first == "WRONGTYPE" or not first.isupper())
