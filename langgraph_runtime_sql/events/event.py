"""Events: what the runs of a thread and the thread itself tell those who follow them."""

from contextlib import suppress
from typing import NamedTuple

# What each event costs in memory beside its data.
EVENT_BYTES = 256
DONE = b"done"
LOST = b"lost"
CONTROL = "control"

Order = tuple[int, int]
START: Order = (-1, -1)


class Event(NamedTuple):
    """One event of a run, numbered in an order that only grows.

    Attributes:
        attempt: Which attempt at the run has sent it; 0 for who does not work on it.
    """

    order: Order
    run_id: str
    name: str
    data: bytes
    resumable: bool
    attempt: int = 0

    @property
    def id(self) -> bytes:
        """The number as clients see it: `<milliseconds>-<sequence>`."""
        return b"%d-%d" % self.order

    @property
    def is_end(self) -> bool:
        """Whether the run says with this that nothing more comes."""
        return self.name == CONTROL and self.data == DONE

    @property
    def is_loss(self) -> bool:
        """Whether events are missing here."""
        return self.name == CONTROL and self.data == LOST

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return len(self.data) + EVENT_BYTES


def lost() -> Event:
    """What stands in the place of events that did not arrive."""
    return Event(START, "", CONTROL, LOST, False)


def parse_order(event_id: str | bytes | None) -> Order | None:
    """The place in the stream after which a client wants to go on.

    `-`, `-1` and the empty string are the beginning; a bare number is the end
    of that millisecond's predecessor. None (and what is not an id) is now.
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
