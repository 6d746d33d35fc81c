"""Wires: carry messages between the processes of a database.

A message may be lost or arrive twice. What it tells is also in the database, so a loss costs time
only.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

import orjson

from langgraph_runtime_sql.events.event import Event

Message = tuple[str | None, ...]
Receive = Callable[[Message], None]

WAKE = "wake"
CONTROL = "control"
DROP = "drop"
LOG = "log"
CHANGED = "changed"
_LONGEST_REASON = 1_000


class Control(NamedTuple):
    """A request to stop a run: `interrupt` or `rollback`, and the reason."""

    action: str
    reason: str | None


class Wire(Protocol):
    """A wire to other processes. Its methods belong to one event loop."""

    @property
    def well(self) -> bool:
        """Whether messages arrive."""

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what sends and receives until cancelled, each for a task of its own."""

    def send(self, message: Message) -> None:
        """Send a message soon."""


class EventWire(Wire, Protocol):
    """A wire that also carries events."""

    @property
    def state(self) -> str:
        """`ok`, `away` or `refusing`."""

    async def look(self) -> None:
        """Refuse a server that can never work."""

    async def close(self) -> None:
        """Close all connections."""

    def send_event(self, topic: str, base: int, event: Event) -> None:
        """Send an event of a thread soon."""

    async def follow(self, topic: str) -> None:
        """Receive the events of a thread from now on."""

    async def unfollow(self, topic: str) -> None:
        """Receive no more events of a thread."""


def wake() -> Message:
    """Return the message that runs may be due."""
    return (WAKE,)


def control(run_id: str, request: Control) -> Message:
    """Return the message that asks a run's worker to stop."""
    return (CONTROL, run_id, request.action, request.reason and request.reason[:_LONGEST_REASON])


def drop(topic: str, run_id: str) -> Message:
    """Return the message that a run or thread was deleted."""
    return (DROP, topic, run_id)


def stored(topic: str) -> Message:
    """Return the message that the log of a thread has grown."""
    return (LOG, topic)


def changed(thread_id: str, tenant: str | None, was: str | None) -> Message:
    """Return the message that a thread or its runs have changed.

    Args:
        was: The JSON of its metadata before, if that has changed; empty if it is too long.
    """
    return (CHANGED, thread_id, tenant, was)


def pack(sender: str, messages: list[Message]) -> bytes:
    """Return messages of one process as JSON."""
    return orjson.dumps([sender, messages])


def unpack(data: bytes | str) -> tuple[str, list[Message]]:
    """Return the sender and its messages.

    Raises:
        ValueError: the data has another form.
    """
    found: Any = orjson.loads(data)
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[1], list)):
        raise ValueError("a message has another form")
    sender, messages = found
    if not all(isinstance(each, list) and each for each in messages):
        raise ValueError("a message has another form")
    return str(sender), [tuple(each) for each in messages]
