"""Subscription: what one reader is still to be given, in order and within bounds."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Self

from langgraph_runtime_sql.events.event import Event, lost
from langgraph_runtime_sql.events.log import LOG_BYTES
from langgraph_runtime_sql.events.stream_key import StreamKey

# What may wait for a reader that does not read.
WAITING_BYTES = LOG_BYTES


class Subscription:
    """One reader's events, in order; it lives on the event loop that made it.

    A reader that falls too far behind loses them, and is told so: they are kept in memory.

    Attributes:
        broken: Whether events were lost on their way here.
        key: Whose events these are.
        topic: The same of `key`, which is asked at each event.
        by_maker: Whether it was there before its run, so that its reader has made the run.
        dropped: Whether its run or thread was deleted, so that nothing more comes.
    """

    broken = False
    key = StreamKey(None, "", "")
    topic = ""
    by_maker = False
    dropped = False

    def __init__(self, leave: Callable[["Subscription"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events: deque[Event] = deque()
        # Each is written by one side only, so that neither waits for the other.
        self._pushed = 0
        self._read = 0
        self._limit = WAITING_BYTES
        self._waiter: asyncio.Future[None] | None = None
        self._leave = leave

    def push(self, event: Event) -> None:
        """Add an event, from any thread, one at a time."""
        if self.broken and not event.is_loss and self._is_idle(event):
            return
        self._pushed += event.size
        if self._pushed - self._read > self._limit and self._events and not self.broken:
            self.broken = True
            # In one step, because the reader may take one just now.
            self._events = deque((lost(), event) if event.is_end else (lost(),))
        else:
            self._events.append(event)
        self._notify()

    def _notify(self) -> None:
        """Wake the reader, if it waits; from any thread."""
        if self._waiter is None:
            return
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            with suppress(RuntimeError):  # The reader's loop has closed: it is gone.
                self._loop.call_soon_threadsafe(self._wake)

    def _is_idle(self, event: Event) -> bool:
        """Whether an event is of no use after a hole: all but the end, of which once is enough."""
        return not event.is_end or any(each.is_end for each in self._events.copy())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def holds(self) -> bool:
        """Whether what comes is kept back for a while."""
        return False

    def waiting(self) -> list[Event]:
        """The events that are still to be read."""
        return list(self._events)

    async def get(self, timeout: float | None = None) -> Event | None:
        """The next event, or None when `timeout` seconds pass without one, or none will come."""
        while not self._events:
            if self.dropped:
                return None
            self._waiter = self._loop.create_future()
            # Pushed, or dropped, from another thread between the lines above.
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
        """Have these read first, in the place of what waits; the caller keeps others from pushing.

        They were kept already, and may be more than what may wait.
        """
        size = sum(event.size for event in events)
        self._events = deque(events)
        self._pushed = self._read + size
        self._limit = WAITING_BYTES + size
        self.broken = self.broken or any(event.is_loss for event in events)

    def lose(self) -> None:
        """Have the reader told, in their place, that events were lost on their way here."""
        if not self.broken:
            self.broken = True
            self.push(lost())

    def drop(self) -> None:
        """Tell the reader, from any thread, that nothing more comes."""
        self.dropped = True
        self._notify()

    def close(self) -> None:
        """Stop listening. Repeatable."""
        self._leave(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
