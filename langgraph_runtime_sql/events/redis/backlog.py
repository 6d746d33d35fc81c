"""Queue: what one process has published on one thread, kept to be told again."""

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

BATCH_EVENTS = 500
# The rank of an event that followers are not told.
REFUSED = b"-"


@dataclass(slots=True)
class Parcel:
    """An event as it travels.

    Attributes:
        rank: Its place among all events of the thread, once Redis has said so; `-` where it was
            refused.
    """

    number: int
    run_id: str
    attempt: int
    header: bytes
    data: bytes
    rank: bytes = b""

    @property
    def size(self) -> int:
        return len(self.header) + len(self.data)

    def arguments(self) -> tuple[Any, ...]:
        return self.number, self.run_id, self.attempt, self.header, self.data, self.rank


@dataclass(slots=True)
class Queue:
    """What was published on one thread.

    Attributes:
        origin: Whose numbers they are. A queue that is made anew has another.
        sent: The number of the last event that Redis has.
        used: When something was published here last.
    """

    origin: str
    parcels: deque[Parcel] = field(default_factory=deque)
    size: int = 0
    last: int = 0
    sent: int = 0
    used: float = 0.0

    def unsent(self, limit: int) -> list[Parcel]:
        """The next batch, of so many bytes, or of one event."""
        if not self.parcels:
            return []
        start = max(0, self.sent + 1 - self.parcels[0].number)
        batch: list[Parcel] = []
        size = 0
        for parcel in islice(self.parcels, start, start + BATCH_EVENTS):
            size += parcel.size
            if batch and size > limit:
                break
            batch.append(parcel)
        return batch

    def blank(self, run_id: str) -> int:
        """Keep nothing of a run but its numbers, so that there is no hole; bytes that are freed."""
        before = self.size
        for parcel in self.parcels:
            if parcel.run_id == run_id:
                self.size -= parcel.size
                parcel.header, parcel.data, parcel.rank = b"", b"", REFUSED
        return before - self.size

    def is_over(self, seconds: float) -> bool:
        """Whether nothing was published for so long, and nothing is left to be told."""
        is_sent = self.sent == self.last or not self.parcels
        return is_sent and time.monotonic() - self.used > seconds
