"""RedisWire: events and messages over pub/sub, faster than Postgres. Redis stores nothing.

Each message is signed with a key from the database, because other clients may reach Redis.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import ormsgpack
from prometheus_client import Gauge

from langgraph_runtime_sql.clock import elapsed, milliseconds
from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.redis.link import FAILURES, Link
from langgraph_runtime_sql.events.wire import Message, Receive

logger = logging.getLogger(__name__)

LISTEN_SECONDS = 5.0
# Messages that wait while Redis is slow. Older ones are dropped: the log has their events.
MAX_WAITING = 10_000
# An event that has waited longer is not sent. The process was stopped, and another one may have taken
# the run over. Unless it has, the log gets the event.
LATE_MS = 2_000
_SIGNATURE_BYTES = 16
# Messages that are ignored are logged this often, with their number: anybody may send many.
TELL_SECONDS = 60.0
_UP = Gauge("threadhold_redis_up", "Whether Redis answers and accepts messages")

ReceiveEvents = Callable[[str, int, list[Event]], None]


class RedisWire:
    """The messages of one process over Redis.

    Args:
        url: `redis://host:port/0`, `rediss://...` or `unix://...`.
        name: The unique name of this process.
        key: The key that signs messages.
        receive: Called with each message of another process.
        receive_events: Called with a topic, the number before the epoch's first event, and events.
        connected: Called when messages arrive again: earlier ones may have been lost.
        prefix: The prefix of all channels.
        answer_seconds: How long a command may take before Redis counts as away.
    """

    def __init__(
        self,
        url: str,
        name: str,
        key: bytes,
        receive: Receive,
        receive_events: ReceiveEvents,
        connected: Callable[[], None],
        *,
        prefix: str,
        answer_seconds: float = 5.0,
    ) -> None:
        self.link = Link(url, prefix, seconds=answer_seconds)
        self._name, self._key = name, key
        self._receive, self._receive_events = receive, receive_events
        self._connected = connected
        self._followed: set[str] = set()
        self._pubsub: Any = None
        self._waiting: list[tuple[str, bytes]] = []
        self._events: dict[tuple[str, int], list[Event]] = {}
        self._due = asyncio.Event()
        self._ignored, self._tell_at = 0, elapsed()
        _UP.set_function(lambda: float(self.link.state == "ok"))

    @property
    def well(self) -> bool:
        """Whether messages arrive."""
        return self.state == "ok"

    @property
    def state(self) -> str:
        """`ok`, `away` or `refusing`."""
        return self.link.state

    async def look(self) -> None:
        """Refuse a Redis that can never work.

        Raises:
            BadRedis: this Redis can never work.
        """
        await self.link.look()

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what sends and receives until cancelled, each for a task of its own."""
        return [self._listen(), self._send_all()]

    async def close(self) -> None:
        """Close all connections."""
        await self.link.close()

    # --- sending, on the event loop of the tasks

    def send(self, message: Message) -> None:
        """Send a message soon."""
        self._put(self.link.channel("all"), wire.pack(self._name, [message]))

    def send_event(self, topic: str, base: int, event: Event) -> None:
        """Send an event of a thread soon.

        Args:
            base: The number before the first event of its epoch.
        """
        self._events.setdefault((topic, base), []).append(event)
        self._due.set()

    def _put(self, channel: str, body: bytes) -> None:
        self._waiting.append((channel, body))
        del self._waiting[:-MAX_WAITING]
        self._due.set()

    async def _send_all(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            events, self._events = self._events, {}
            late = milliseconds() - LATE_MS
            for (topic, base), some in events.items():
                if some[-1].at < late:
                    continue
                body = ormsgpack.packb([self._name, base, [tuple(each) for each in some]])
                self._put(self._channel(topic), body)
            self._due.clear()
            waiting, self._waiting = self._waiting, []
            try:
                pipeline = self.link.commands().pipeline(transaction=False)
                for channel, body in waiting:
                    pipeline.publish(channel, self._sign(channel, body) + body)
                if not waiting:
                    pipeline.ping()
                await pipeline.execute()
                self.link.succeeded("sender")
            except FAILURES as error:
                # What these messages tell is in the database. Try until Redis answers.
                await self.link.failed("sender", error)
                self._due.set()

    def _sign(self, channel: str, body: bytes) -> bytes:
        return hmac.digest(self._key, channel.encode() + body, "sha256")[:_SIGNATURE_BYTES]

    # --- receiving

    def _channel(self, topic: str) -> str:
        return self.link.channel(f"events:{topic}")

    async def follow(self, topic: str) -> None:
        """Receive the events of a thread from now on."""
        self._followed.add(topic)
        if self._pubsub is not None:
            # The next connection subscribes to it. uvloop raises RuntimeError for a closed one.
            with suppress(*FAILURES, RuntimeError):
                await self._pubsub.subscribe(self._channel(topic))

    async def unfollow(self, topic: str) -> None:
        """Receive no more events of a thread. Repeatable."""
        self._followed.discard(topic)
        if self._pubsub is not None:
            with suppress(*FAILURES, RuntimeError):
                await self._pubsub.unsubscribe(self._channel(topic))

    async def _listen(self) -> None:
        client = self.link.client()
        while True:
            pubsub: Any = client.pubsub()
            try:
                await pubsub.subscribe(self.link.channel("all"))
                # Threads that are followed from here on subscribe themselves.
                self._pubsub = pubsub
                if self._followed:
                    await pubsub.subscribe(*map(self._channel, self._followed))
                self._connected()
                await self._receive_all(pubsub)
            except FAILURES as error:
                self._pubsub = None
                await self.link.failed("listener", error)
            finally:
                with suppress(*FAILURES):
                    await pubsub.aclose()

    async def _receive_all(self, pubsub: Any) -> None:
        """Receive messages until the connection fails. Ping it after a quiet interval."""
        pinged = False
        while True:
            message = await pubsub.get_message(timeout=LISTEN_SECONDS)
            if message is None and pinged:
                raise TimeoutError("the pub/sub connection does not answer")
            if message is None:
                await pubsub.ping()
            else:
                self.link.succeeded("listener")
                if message["type"] == "message":
                    self._handle(message["channel"].decode(), message["data"])
            pinged = message is None

    def _handle(self, channel: str, data: bytes) -> None:
        signature, body = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(channel, body)):
            self._ignore("is forged", channel)
            return
        try:
            self._read(channel, body)
        except (ValueError, TypeError) as error:
            # Processes of two versions may work together during an update.
            self._ignore(f"has another form: {error!r}", channel)

    def _ignore(self, why: str, channel: str) -> None:
        self._ignored += 1
        if elapsed() >= self._tell_at:
            self._tell_at = elapsed() + TELL_SECONDS
            logger.warning(
                "Ignored messages in Redis: %d, the last of which %s (%s)",
                self._ignored,
                why,
                channel,
            )
            self._ignored = 0

    def _read(self, channel: str, body: bytes) -> None:
        if channel == self.link.channel("all"):
            sender, messages = wire.unpack(body)
            if sender != self._name:
                for message in messages:
                    self._receive(message)
            return
        sender, base, events = ormsgpack.unpackb(body)
        if sender != self._name:
            topic = channel.removeprefix(self._channel(""))
            self._receive_events(topic, base, [_event(each) for each in events])


def _event(fields: list[Any]) -> Event:
    return Event(tuple(fields[0]), *fields[1:])
