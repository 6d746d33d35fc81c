"""Logs: the events of resumable streams, kept for clients that reconnect.

The caller holds the bus's lock.
"""

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field

from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey

# The limit of one stream's log.
LOG_BYTES = 32 * 2**20
# The limit of all logs. Beyond it, the streams that ended first are deleted until the rest fills
# no more than this part of the limit.
ALL_LOGS_BYTES = 256 * 2**20
FILL_RATIO = 0.9


@dataclass(slots=True)
class Log:
    """The kept events of a resumable stream.

    Attributes:
        dropped: The order of the newest event that was deleted to save memory.
        expires: When the log is deleted, by `time.monotonic`; None while the stream continues.
    """

    key: StreamKey
    events: deque[Event] = field(default_factory=deque)
    size: int = 0
    dropped: Order = START
    expires: float | None = None

    def add(self, event: Event) -> int:
        """Add an event. Return by how many bytes the log has grown."""
        before = self.size
        self.events.append(event)
        self.size += len(event.data)
        while self.size > LOG_BYTES and len(self.events) > 1:
            oldest = self.events.popleft()
            self.size -= len(oldest.data)
            self.dropped = oldest.order
        return self.size - before


class Logs:
    """The logs of all resumable streams.

    Args:
        keep_seconds: How long a log is kept after the end of its stream.

    Attributes:
        size: The bytes of all events.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep = keep_seconds
        self._logs: dict[StreamKey, Log] = {}
        self._topics: dict[str, list[StreamKey]] = defaultdict(list)
        self.size = 0

    def open(self, key: StreamKey) -> Log:
        """Return the log of a stream, and create it if necessary."""
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = Log(key)
            self._topics[key.topic].append(key)
        return log

    def add(self, log: Log, event: Event) -> None:
        """Add an event to a log, and enforce the limit of all logs."""
        self.size += log.add(event)
        if self.size > ALL_LOGS_BYTES:
            self._free_memory()

    def of_run(self, key: StreamKey) -> list[Log]:
        """Return the run's log, if there is one."""
        return [self._logs[key]] if key in self._logs else []

    def of_thread(self, key: StreamKey) -> list[Log]:
        """Return the logs of the thread and of its runs."""
        return [self._logs[each] for each in self._topics.get(key.topic, ())]

    def unfinished(self) -> list[StreamKey]:
        """Return the keys of logs whose streams have not ended."""
        return [key for key, log in self._logs.items() if log.expires is None]

    def keep_open(self, key: StreamKey) -> None:
        """Keep the stream's log, if there is one, until the stream ends."""
        if (log := self._logs.get(key)) is not None:
            log.expires = None

    def end(self, key: StreamKey) -> None:
        """Let the stream's log, if there is one, expire."""
        if (log := self._logs.get(key)) is not None:
            log.expires = time.monotonic() + self._keep

    def end_run(self, run_id: str) -> None:
        """Let the unfinished log of a run expire."""
        for key in self.unfinished():
            if key.run_id == run_id:
                self.end(key)

    def drop(self, topic: str, run_id: str) -> None:
        """Delete the log of a run, or of a thread with its runs."""
        for key in list(self._topics.get(topic, ())):
            if run_id in (THREAD, key.run_id):
                self._delete(key)

    def expire(self) -> None:
        """Delete expired logs."""
        now = time.monotonic()
        for key in [k for k, log in self._logs.items() if log.expires and log.expires < now]:
            self._delete(key)

    def _free_memory(self) -> None:
        """Delete logs of ended streams before their time."""
        ended = sorted((log.expires, key) for key, log in self._logs.items() if log.expires)
        for _, key in ended:
            if self.size <= ALL_LOGS_BYTES * FILL_RATIO:
                return
            self._delete(key)

    def _delete(self, key: StreamKey) -> None:
        self.size -= self._logs.pop(key).size
        others = self._topics[key.topic]
        others.remove(key)
        if not others:
            del self._topics[key.topic]
