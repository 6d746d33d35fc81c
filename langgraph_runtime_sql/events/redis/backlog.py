"""Backlog: the events of one process on one thread, kept so that they can be sent again."""

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

BATCH_EVENTS = 500
# The rank of an event that followers do not receive.
REFUSED = b"-"


@dataclass(slots=True)
class QueuedEvent:
    """A packed event.

    Attributes:
        rank: The event's place among all events of the thread, as Redis has assigned it; `-` for a
            refused event.
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
class Backlog:
    """The events that this process has published on one thread.

    Attributes:
        origin: The name under which the events are numbered. A new backlog gets another one.
        sent: The number of the last event that Redis has.
        used: When the last event was added, by `time.monotonic`.
    """

    origin: str
    events: deque[QueuedEvent] = field(default_factory=deque)
    size: int = 0
    last: int = 0
    sent: int = 0
    used: float = 0.0

    def unsent(self, limit: int) -> list[QueuedEvent]:
        """Return the next batch, of at most `limit` bytes, but at least one event."""
        if not self.events:
            return []
        start = max(0, self.sent + 1 - self.events[0].number)
        batch: list[QueuedEvent] = []
        size = 0
        for event in islice(self.events, start, start + BATCH_EVENTS):
            size += event.size
            if batch and size > limit:
                break
            batch.append(event)
        return batch

    def blank(self, run_id: str) -> int:
        """Delete a run's events, but keep their numbers so that there is no hole.

        Returns:
            The freed bytes.
        """
        before = self.size
        for event in self.events:
            if event.run_id == run_id:
                self.size -= event.size
                event.header, event.data, event.rank = b"", b"", REFUSED
        return before - self.size

    def is_over(self, seconds: float) -> bool:
        """Return whether everything is sent and nothing was added for so many seconds."""
        is_sent = self.sent == self.last or not self.events
        return is_sent and time.monotonic() - self.used > seconds
