"""Logs: the events of resumable streams, kept for clients that come back.

Whoever calls holds the lock of the bus.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from langgraph_runtime_sql.events.event import START, Event, Order

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
        dropped: The number of the last event that is not kept any more.
    """

    thread_id: str | None
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
    """The logs of all resumable streams, those of runs by their ids.

    Args:
        keep_seconds: How long a log is kept once its stream has ended.

    Attributes:
        size: The bytes of all their events.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep = keep_seconds
        self._logs: dict[str, Log] = {}
        self._threads: dict[str, list[str]] = defaultdict(list)
        self.size = 0

    def open(self, key: str, thread_id: str | None) -> Log:
        """The log of a stream, which begins with this if it is not there."""
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = Log(thread_id)
            if thread_id is not None:
                self._threads[thread_id].append(key)
        return log

    def add(self, log: Log, event: Event) -> None:
        """Keep an event."""
        self.size += log.add(event)
        if self.size > ALL_LOGS_BYTES:
            self._make_room()

    def of_runs(self, run_ids: Iterable[str]) -> list[Log]:
        """The logs of these runs, of those that have one."""
        return [self._logs[key] for key in run_ids if key in self._logs]

    def of_thread(self, thread_id: str) -> list[Log]:
        """The logs of a thread's runs, and its own."""
        return self.of_runs(self._threads.get(thread_id, ()))

    def unfinished(self) -> dict[str, Log]:
        """Those whose streams go on, as far as is known here."""
        return {key: log for key, log in self._logs.items() if log.expires is None}

    def go_on(self, key: str) -> None:
        """Keep a log, if there is one, until its stream has ended."""
        if (log := self._logs.get(key)) is not None:
            log.expires = None

    def end(self, key: str) -> None:
        """Keep a log, if there is one, for a while from now on."""
        if (log := self._logs.get(key)) is not None:
            log.expires = time.monotonic() + self._keep

    def leave(self, key: str) -> None:
        """The same, unless its stream has ended already."""
        if (log := self._logs.get(key)) is not None and log.expires is None:
            self.end(key)

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

    def _forget(self, key: str) -> None:
        log = self._logs.pop(key)
        self.size -= log.size
        if log.thread_id is not None:
            self._threads[log.thread_id].remove(key)
            if not self._threads[log.thread_id]:
                del self._threads[log.thread_id]
