"""Listener: hears the wake-ups and control messages of other processes."""

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
    """Hears what others say on two channels, on a connection of its own.

    Args:
        link: The way to Redis.
        name: This process, unlike any other.
        wake: Called when there may be runs to work on.
        control: Called with a run, and what is asked of its worker.
        drop: Called with the topic and the run, or thread, that was deleted.
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
        """The channel and the message that wake others."""
        return self._wakes, self._name.encode()

    def control(self, run_id: str, control: Control) -> tuple[str, bytes]:
        """The channel and the message that ask a run's worker to stop, wherever he is."""
        return self._controls, orjson.dumps([self._name, run_id, *control])

    def drop(self, topic: str, run_id: str) -> tuple[str, bytes]:
        """The channel and the message that a run, or a thread, was deleted."""
        return self._drops, orjson.dumps([self._name, topic, run_id])

    async def run(self) -> None:
        """Hear wake-ups, control messages and deletions until cancelled."""
        client = self._link.client(answer_seconds=None)
        while True:
            pubsub: Any = client.pubsub()
            try:
                await pubsub.subscribe(self._wakes, self._controls, self._drops)
                # What was said meanwhile is not said again.
                self._wake()
                await self._hear_all(pubsub)
            except FAILURES as error:
                await self._link.failed("listener", error)
            finally:
                with suppress(*FAILURES):
                    await pubsub.aclose()

    async def _hear_all(self, pubsub: Any) -> None:
        """Hear until the connection fails; it is asked whether it still works when all is quiet."""
        asked = False
        while True:
            message = await pubsub.get_message(timeout=LISTEN_SECONDS)
            if message is None and asked:
                raise TimeoutError("no answer on the connection that listens")
            if message is None:
                await pubsub.ping()
            else:
                self._link.succeeded("listener")
                if message["type"] == "message":
                    self._hear(message["channel"].decode(), message["data"])
            asked = message is None

    def _hear(self, channel: str, data: bytes) -> None:
        """Do what a message says; anybody who reaches Redis may have sent it."""
        if channel == self._wakes:
            if data != self._name.encode():
                self._wake()
            return
        if channel == self._drops:
            dropped = unpack_drop(data)
            if dropped is None:
                _warn(channel)
            elif dropped[0] != self._name:
                self._drop(*dropped[1:])
            return
        parsed = unpack(data)
        if parsed is None:
            _warn(channel)
        elif parsed[0] != self._name:
            self._control(*parsed[1:])


def _warn(channel: str) -> None:
    logger.warning("A message in Redis that is none of ours was dropped (%s)", channel)


def unpack_drop(data: bytes) -> tuple[str, str, str] | None:
    """Sender, topic and run of a deletion; None for what is no such message."""
    try:
        sender, topic, run_id = orjson.loads(data)
    except (ValueError, TypeError):
        return None
    if not all(isinstance(each, str) for each in (sender, topic, run_id)):
        return None
    return sender, topic, run_id


def unpack(data: bytes) -> tuple[str, str, Control] | None:
    """Sender, run and what is asked of its worker; None for what is no such message."""
    try:
        sender, run_id, action, reason = orjson.loads(data)
        run_id = str(uuid.UUID(run_id))
    except (ValueError, TypeError, AttributeError):
        return None
    if action not in ("interrupt", "rollback") or not isinstance(reason, str | None):
        return None
    return sender, run_id, Control(action, reason and reason[:_LONGEST_REASON])
