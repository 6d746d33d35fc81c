"""Logs: the events of resumable streams, kept for clients that come back.

Whoever calls holds the lock of the bus.
"""

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field

from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey

# A resumable run keeps this much of its stream for clients that come back.
LOG_BYTES = 32 * 2**20
# And all of them together this much: those that have ended longest ago go first, until there is
# room for a while.
ALL_LOGS_BYTES = 256 * 2**20
ROOM = 0.9


@dataclass(slots=True)
class Log:
    """What a resumable stream keeps.

    Attributes:
        key: Whose it is.
        dropped: The number of the last event that is not kept any more.
    """

    key: StreamKey
    events: deque[Event] = field(default_factory=deque)
    size: int = 0
    dropped: Order = START
    expires: float | None = None

    def add(self, event: Event) -> int:
        """Keep an event; returns by how many bytes the log has grown."""
        before = self.size
        self.events.append(event)
        self.size += len(event.data)
        while self.size > LOG_BYTES and len(self.events) > 1:
            oldest = self.events.popleft()
            self.size -= len(oldest.data)
            self.dropped = oldest.order
        return self.size - before


class Logs:
    """The logs of all resumable streams, by their keys.

    Args:
        keep_seconds: How long a log is kept once its stream has ended.

    Attributes:
        size: The bytes of all their events.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep = keep_seconds
        self._logs: dict[StreamKey, Log] = {}
        self._topics: dict[str, list[StreamKey]] = defaultdict(list)
        self.size = 0

    def open(self, key: StreamKey) -> Log:
        """The log of a stream, which begins with this if it is not there."""
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = Log(key)
            self._topics[key.topic].append(key)
        return log

    def add(self, log: Log, event: Event) -> None:
        """Keep an event."""
        self.size += log.add(event)
        if self.size > ALL_LOGS_BYTES:
            self._make_room()

    def of_run(self, key: StreamKey) -> list[Log]:
        """The log of a run, if it has one."""
        return [self._logs[key]] if key in self._logs else []

    def of_thread(self, key: StreamKey) -> list[Log]:
        """The logs of a thread's runs, and its own."""
        return [self._logs[each] for each in self._topics.get(key.topic, ())]

    def unfinished(self) -> dict[StreamKey, Log]:
        """Those whose streams go on, as far as is known here."""
        return {key: log for key, log in self._logs.items() if log.expires is None}

    def go_on(self, key: StreamKey) -> None:
        """Keep a log, if there is one, until its stream has ended."""
        if (log := self._logs.get(key)) is not None:
            log.expires = None

    def end(self, key: StreamKey) -> None:
        """Keep a log, if there is one, for a while from now on."""
        if (log := self._logs.get(key)) is not None:
            log.expires = time.monotonic() + self._keep

    def leave(self, run_id: str) -> None:
        """The same by a run's id, unless its stream has ended already."""
        for key in [key for key in self.unfinished() if key.run_id == run_id]:
            self.end(key)

    def drop(self, topic: str, run_id: str) -> None:
        """Forget the log of a run now, or all of a thread."""
        for key in list(self._topics.get(topic, ())):
            if run_id in (THREAD, key.run_id):
                self._forget(key)

    def expire(self) -> None:
        """Forget those whose time is over."""
        moment = time.monotonic()
        for key in [k for k, v in self._logs.items() if v.expires and v.expires < moment]:
            self._forget(key)

    def _make_room(self) -> None:
        """Forget streams that have ended, before their time, until the rest fits."""
        ended = sorted((log.expires, key) for key, log in self._logs.items() if log.expires)
        for _, key in ended:
            if self.size <= ALL_LOGS_BYTES * ROOM:
                return
            self._forget(key)

    def _forget(self, key: StreamKey) -> None:
        self.size -= self._logs.pop(key).size
        others = self._topics[key.topic]
        others.remove(key)
        if not others:
            del self._topics[key.topic]
