"""Writer: numbers the events of one attempt at a run, and holds those that are not stored yet.

The caller holds the bus's lock.
"""

from collections import deque
from collections.abc import Collection

from langgraph_runtime_sql.events.event import Event, Order
from langgraph_runtime_sql.events.segment import Segment, cut
from langgraph_runtime_sql.events.stream_key import StreamKey


class Writer:
    """The only source of a thread's events while an attempt at one of its runs works.

    Args:
        key: The key of the run.
        attempt: The attempt.
        head: The position of the writer: its epoch, and the number of the thread's last event.
        resumable: Whether the run keeps its stream.

    Attributes:
        is_ending: Whether a transaction stores the run's end, whose number is the next one.
    """

    def __init__(self, key: StreamKey, attempt: int, head: Order, *, resumable: bool) -> None:
        self.key = key
        self.attempt = attempt
        self.resumable = resumable
        self.epoch, self.number = self.base = head
        self.is_ending = False
        self._pending: deque[Event] = deque()
        self._segments: list[Segment] = []

    def next(
        self, run_id: str, name: str, data: bytes, *, resumable: bool, attempt: int, at: int
    ) -> Event:
        """Return a new event with the next number."""
        self.number += 1
        return Event((self.epoch, self.number), run_id, name, data, resumable, attempt, at)

    def add(self, event: Event) -> int:
        """Hold an event until it is stored. Return how many events have no segment yet."""
        self._pending.append(event)
        return len(self._pending)

    @property
    def is_stored(self) -> bool:
        """Whether the database has all events that it should."""
        return not self._pending and not self._segments

    def unstored(self) -> list[Event]:
        """Return the events that may not be stored yet."""
        return [event for each in self._segments for event in each.events] + list(self._pending)

    def cut(self) -> list[Segment]:
        """Return all segments to store. A segment never changes, so it may be stored twice."""
        if self._pending:
            self._segments += cut(self.key.thread, self._pending)
            self._pending.clear()
        return list(self._segments)

    def stored(self, segments: Collection[Segment]) -> None:
        """Forget stored segments."""
        self._segments = [each for each in self._segments if each not in segments]
