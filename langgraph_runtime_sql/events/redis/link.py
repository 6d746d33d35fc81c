"""Link: the connections to one Redis or Valkey, which may be unreachable for a while.

It logs when Redis goes away and when it is back. Its users retry with backoff meanwhile.
"""

import asyncio
import logging
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
LONGEST_PAUSE_SECONDS = 2.0
# A start waits this long for an answer. It succeeds without one.
LOOK_SECONDS = 2.0


class Link:
    """The connections to one Redis.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        prefix: The prefix of all channels.
        seconds: How long a command may take before Redis counts as away.

    Attributes:
        failures: The number of failed commands.
    """

    def __init__(self, url: str, prefix: str, *, seconds: float = 5.0) -> None:
        self.url = url
        self.prefix = prefix
        self.seconds = seconds
        self.failures = 0
        self._clients: list[Redis] = []
        self._commands: Redis | None = None
        # Backoff and last error of each user whose last command failed.
        self._pauses: dict[str, float] = {}
        self._logged: dict[str, BaseException] = {}
        self._answered = False

    def channel(self, name: str) -> str:
        """Return the name of a channel."""
        return f"{self.prefix}:{name}"

    # --- connections

    def client(self) -> Redis:
        """Create a client, which connects at its first command, and never again by itself.

        Connections that the client mended would be mended by each task that uses them, at the same
        time, and one task would read the answers to another.
        """
        # Unix sockets do not have this option.
        options = {} if is_local(self.url) else {"socket_keepalive": True}
        made: Redis = redis_client.from_url(
            self.url,
            socket_connect_timeout=self.seconds,
            socket_timeout=self.seconds,
            **options,
            retry=Retry(NoBackoff(), 0, supported_errors=()),
        )
        self._clients.append(made)
        return made

    def commands(self) -> Redis:
        """Return the client for commands with an immediate answer."""
        if self._commands is None:
            self._commands = self.client()
        return self._commands

    async def look(self) -> None:
        """Refuse a Redis that can never work. One that is away is accepted.

        Raises:
            BadRedis: a Cluster or Sentinel, another server, or a failed login.
        """
        try:
            async with asyncio.timeout(min(LOOK_SECONDS, self.seconds)):
                await refuse(self.client(), self.url)
        except FAILURES as error:
            # The users log the failure.
            logger.debug("Redis check failed: %r", error)
        else:
            self._answered = True

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            try:
                await client.aclose()
            except FAILURES:
                continue  # It is closed already.
        self._clients.clear()
        self._commands = None

    # --- health

    @property
    def well(self) -> bool:
        """Whether no user waits for Redis."""
        return not self._pauses

    @property
    def state(self) -> str:
        """`ok`, `away` without answers, or `refusing` if Redis refuses commands."""
        if any(isinstance(error, ResponseError) for error in self._logged.values()):
            return "refusing"
        return "ok" if self._answered and self.well else "away"

    def succeeded(self, user: str) -> None:
        """Note that Redis answers `user`."""
        self._answered = True
        if self._pauses.pop(user, None) is not None:
            self._logged.pop(user, None)
            if self.well:
                logger.warning("Redis answers again")

    async def failed(self, user: str, error: BaseException) -> None:
        """Note that a command of `user` failed, and wait before the next attempt."""
        self.failures += 1
        self._logged[user] = error
        if self.well:
            logger.warning("Redis does not answer; runs go on: %s", str(error) or repr(error))
        pause = self._pauses.get(user, FIRST_PAUSE_SECONDS)
        self._pauses[user] = min(LONGEST_PAUSE_SECONDS, pause * 2)
        await asyncio.sleep(pause)


async def refuse(redis: Redis, url: str) -> dict[str, Any]:
    """Return the INFO of a Redis that can be used.

    Raises:
        BadRedis: a Cluster or Sentinel, another server, or a failed login.
        one of FAILURES: Redis does not answer.
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
