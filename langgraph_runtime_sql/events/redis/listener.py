"""Listener: receive wake-ups, control messages and deletions of other processes."""

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from langgraph_runtime_sql.events.bus import Control
from langgraph_runtime_sql.events.redis.link import FAILURES, Link

logger = logging.getLogger(__name__)

LISTEN_SECONDS = 5.0
_LONGEST_REASON = 10_000


class Listener:
    """Receives the messages of other processes, on its own connection.

    Args:
        link: The link to Redis.
        name: The unique name of this process.
        wake: Called when runs may be due.
        control: Called with a run's id and the request to its worker.
        drop: Called with topic and run id of a deletion.
    """

    def __init__(
        self,
        link: Link,
        name: str,
        wake: Callable[[], None],
        control: Callable[[str, Control], None],
        drop: Callable[[str, str], None],
    ) -> None:
        self._link = link
        self._name = name
        self._wake = wake
        self._control = control
        self._drop = drop
        self._wakes, self._controls = link.name("wake"), link.name("control")
        self._drops = link.name("drop")

    def wake(self) -> tuple[str, bytes]:
        """Return the channel and message that wake other processes."""
        return self._wakes, self._name.encode()

    def control(self, run_id: str, control: Control) -> tuple[str, bytes]:
        """Return the channel and message that ask a run's worker to stop."""
        return self._controls, orjson.dumps([self._name, run_id, *control])

    def drop(self, topic: str, run_id: str) -> tuple[str, bytes]:
        """Return the channel and message for a deleted run or thread."""
        return self._drops, orjson.dumps([self._name, topic, run_id])

    async def run(self) -> None:
        """Receive messages until cancelled."""
        client = self._link.client(answer_seconds=None)
        while True:
            pubsub: Any = client.pubsub()
            try:
                await pubsub.subscribe(self._wakes, self._controls, self._drops)
                # Messages may have been lost meanwhile.
                self._wake()
                await self._receive_all(pubsub)
            except FAILURES as error:
                await self._link.failed("listener", error)
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
                self._link.succeeded("listener")
                if message["type"] == "message":
                    self._handle(message["channel"].decode(), message["data"])
            pinged = message is None

    def _handle(self, channel: str, data: bytes) -> None:
        """Handle a message. Anyone with access to Redis may have sent it."""
        if channel == self._wakes:
            if data != self._name.encode():
                self._wake()
        elif channel == self._drops:
            if (drop := unpack_drop(data)) is None:
                _warn(channel)
            elif drop[0] != self._name:
                self._drop(*drop[1:])
        elif (control := unpack(data)) is None:
            _warn(channel)
        elif control[0] != self._name:
            self._control(*control[1:])


def _warn(channel: str) -> None:
    logger.warning("Dropped a foreign message in Redis (%s)", channel)


def unpack_drop(data: bytes) -> tuple[str, str, str] | None:
    """Return sender, topic and run id of a deletion, or None for an invalid message."""
    try:
        sender, topic, run_id = orjson.loads(data)
    except (ValueError, TypeError):
        return None
    if not all(isinstance(each, str) for each in (sender, topic, run_id)):
        return None
    return sender, topic, run_id


def unpack(data: bytes) -> tuple[str, str, Control] | None:
    """Return sender, run id and control message, or None for an invalid message."""
    try:
        sender, run_id, action, reason = orjson.loads(data)
        run_id = str(uuid.UUID(run_id))
    except (ValueError, TypeError, AttributeError):
        return None
    if action not in ("interrupt", "rollback") or not isinstance(reason, str | None):
        return None
    return sender, run_id, Control(action, reason and reason[:_LONGEST_REASON])
