"""Wires: tell the other processes on a database, over Postgres and perhaps also over Redis.

A process that has its database alone has no wire, and nobody to tell.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.wire import EventWire, Message, Wire

# How often a follower checks the database, in case the end event was lost: without other processes,
# and with their messages and without.
ALONE_RECHECK_SECONDS = 15.0
WELL_RECHECK_SECONDS = 5.0
AWAY_RECHECK_SECONDS = 1.0


class Wires:
    """The wires of one process.

    Args:
        postgres: Carries messages; None if no other process may use the database.
        redis: Carries events too, if there is a Redis.

    Attributes:
        loop: The event loop of the bus, once it has started.
        carry_events: Whether a wire carries events.
        postgres: The wire over Postgres, or None.
        redis: The wire over Redis, or None.
        shared: Whether other processes take part.
    """

    def __init__(self, postgres: Wire | None = None, redis: EventWire | None = None) -> None:
        self._all: list[Wire] = [each for each in (postgres, redis) if each is not None]
        self.postgres, self.redis = postgres, redis
        self.loop: asyncio.AbstractEventLoop | None = None
        self.shared, self.carry_events = bool(self._all), redis is not None

    async def start(self) -> None:
        """Send and receive on the running loop, as soon as `loops` run.

        Raises:
            BadRedis: this Redis can never work.
        """
        if self.redis is not None:
            await self.redis.look()
        self.loop = asyncio.get_running_loop()

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what sends and receives until cancelled, each for a task of its own."""
        return [loop for each in self._all for loop in each.loops()]

    async def close(self) -> None:
        """Close all connections. Repeatable."""
        if self.redis is not None:
            await self.redis.close()

    def health(self) -> dict[str, str]:
        """Return the state of Redis, if there is one: `ok`, `away` or `refusing`."""
        return {} if self.redis is None else {"redis": self.redis.state}

    @property
    def recheck_seconds(self) -> float:
        """How long a follower waits for events before it checks the database."""
        if not self.shared:
            return ALONE_RECHECK_SECONDS
        is_well = any(each.well for each in self._all)
        return WELL_RECHECK_SECONDS if is_well else AWAY_RECHECK_SECONDS

    # --- sending, from any thread

    def soon(self, call: Callable[..., None], *args: object) -> None:
        """Call a function on the event loop of the bus."""
        if self.loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self.loop.call_soon_threadsafe(call, *args)

    def tell(self, message: Message) -> None:
        """Send a message to the other processes."""
        if self._all:
            self.soon(self._send, message)

    def _send(self, message: Message) -> None:
        for each in self._all:
            each.send(message)

    def send_event(self, topic: str, base: int, event: Event) -> None:
        """Send an event of a thread to its followers in other processes.

        Args:
            base: The number before the first event of its epoch.
        """
        if self.redis is not None:
            self.soon(self.redis.send_event, topic, base, event)

    # --- receiving, on the event loop of the wires

    async def follow(self, topic: str) -> None:
        """Receive the events of a thread from now on."""
        if self.redis is not None:
            await self.redis.follow(topic)

    async def unfollow(self, topic: str) -> None:
        """Receive no more events of a thread. Repeatable."""
        if self.redis is not None:
            await self.redis.unfollow(topic)
