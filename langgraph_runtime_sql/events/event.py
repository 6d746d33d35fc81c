"""Events: what runs and threads publish to their subscribers."""

from contextlib import suppress
from typing import NamedTuple

# The memory of an event beside its data.
EVENT_BYTES = 256
DONE = b"done"
LOST = b"lost"
CONTROL = "control"

Order = tuple[int, int]
"""The position of an event in its thread: the epoch of its writer, and its number in the thread.

An epoch begins with each attempt at a run, and is the time in milliseconds. So the events of an
attempt that died before they were stored and those of the next attempt never share a position.
"""
START: Order = (-1, -1)


class Event(NamedTuple):
    """One event of a run. Its `order` is greater than that of all earlier events.

    Attributes:
        attempt: The attempt that publishes the event; 0 outside of a worker.
        at: When it was published, in milliseconds since 1970 by the publisher's clock.
    """

    order: Order
    run_id: str
    name: str
    data: bytes
    resumable: bool
    attempt: int = 0
    at: int = 0

    @property
    def id(self) -> bytes:
        """The order as clients see it: `<epoch>-<number>`."""
        return b"%d-%d" % self.order

    @property
    def is_end(self) -> bool:
        """Whether the event ends the run's stream."""
        return self.name == CONTROL and self.data == DONE

    @property
    def is_loss(self) -> bool:
        """Whether the event stands for lost events."""
        return self.name == CONTROL and self.data == LOST

    @property
    def size(self) -> int:
        """The approximate memory of the event, in bytes."""
        return len(self.data) + EVENT_BYTES


def lost() -> Event:
    """Return the event that replaces lost events."""
    return Event(START, "", CONTROL, LOST, False)


def parse_order(event_id: str | bytes | None) -> Order | None:
    """Return the order after which a client wants to continue; None means from now on.

    `-`, `-1` and the empty string mean the beginning. A number alone means the start of that
    millisecond. An invalid id means now.
    """
    if event_id is None:
        return None
    text = event_id.decode(errors="replace") if isinstance(event_id, bytes) else event_id
    if text in ("", "-", "-1"):
        return START
    first, _, second = text.partition("-")
    with suppress(ValueError):
        return int(first), -1 if second in ("", "*") else int(second)
    return None
