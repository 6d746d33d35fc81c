"""Subscription: the bounded queue of events for one reader."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Self

from langgraph_runtime_sql.events.event import Event, lost
from langgraph_runtime_sql.events.log import LOG_BYTES
from langgraph_runtime_sql.events.stream_key import StreamKey

# The limit of events that a reader has not read yet.
WAITING_BYTES = LOG_BYTES


class Subscription:
    """The events for one reader, in order. It belongs to the event loop that creates it.

    A reader that is too slow loses events, and finds a loss event in their place.

    Attributes:
        broken: Whether events were lost.
        key: The stream's key.
        topic: `key.topic`, stored because each event compares it.
        by_creator: Whether the reader created the run: it subscribed before the run existed.
        dropped: Whether the run or thread was deleted, so that no more events come.
    """

    broken = False
    key = StreamKey(None, "", "")
    topic = ""
    by_creator = False
    dropped = False

    def __init__(self, unsubscribe: Callable[["Subscription"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events: deque[Event] = deque()
        # Only the publisher writes `_pushed`, only the reader `_read`, so neither needs a lock.
        self._pushed = 0
        self._read = 0
        self._limit = WAITING_BYTES
        self._waiter: asyncio.Future[None] | None = None
        self._unsubscribe = unsubscribe

    def push(self, event: Event) -> None:
        """Add an event. Calls from several threads must not overlap."""
        if self.broken and not event.is_loss and self._is_useless(event):
            return
        self._pushed += event.size
        if self._pushed - self._read > self._limit and self._events and not self.broken:
            self.broken = True
            # One assignment, because the reader may take an event at the same time.
            self._events = deque((lost(), event) if event.is_end else (lost(),))
        else:
            self._events.append(event)
        self._notify()

    def _notify(self) -> None:
        """Wake the waiting reader, from any thread."""
        if self._waiter is None:
            return
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            with suppress(RuntimeError):  # The reader's loop is closed.
                self._loop.call_soon_threadsafe(self._wake)

    def _is_useless(self, event: Event) -> bool:
        """Return whether an event is useless after a loss: only the first end is useful."""
        return not event.is_end or any(each.is_end for each in self._events.copy())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def holds(self) -> bool:
        """Whether new events are held back for now."""
        return False

    def waiting(self) -> list[Event]:
        """Return the events that are not read yet."""
        return list(self._events)

    async def get(self, timeout: float | None = None) -> Event | None:
        """Return the next event, or None after `timeout` seconds or if no more events come."""
        while not self._events:
            if self.dropped:
                return None
            self._waiter = self._loop.create_future()
            # Another thread may have pushed or dropped since the check.
            if self._events or self.dropped:
                self._waiter = None
                continue
            try:
                async with asyncio.timeout(timeout):
                    await self._waiter
            except TimeoutError:
                return None
            finally:
                self._waiter = None
        event = self._events.popleft()
        self._read += event.size
        return event

    def begin_with(self, events: Collection[Event]) -> None:
        """Replace the unread events. The caller prevents concurrent pushes.

        These events come from a log, and do not count towards the limit.
        """
        size = sum(event.size for event in events)
        self._events = deque(events)
        self._pushed = self._read + size
        self._limit = WAITING_BYTES + size
        self.broken = self.broken or any(event.is_loss for event in events)

    def lose(self) -> None:
        """Mark events as lost, and add a loss event."""
        if not self.broken:
            self.broken = True
            self.push(lost())

    def drop(self) -> None:
        """End the stream, from any thread."""
        self.dropped = True
        self._notify()

    def close(self) -> None:
        """Unsubscribe. Repeatable."""
        self._unsubscribe(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
