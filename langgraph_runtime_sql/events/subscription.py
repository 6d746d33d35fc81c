"""Subscription: the events for one reader, from the log and live."""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, Self

from langgraph_runtime_sql import pacing
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.outage import Outage
from langgraph_runtime_sql.events.event import START, Event, Order, lost
from langgraph_runtime_sql.events.log import Page
from langgraph_runtime_sql.events.stream_key import StreamKey

# The limit of live events that a reader has not read yet.
WAITING_BYTES = 32 * 2**20
# What a reader makes of an event takes about this time on the loop, in milliseconds, and more if the
# event is large.
EVENT_MS, MS_A_BYTE = 0.05, 1e-5


class Source(Protocol):
    """What a subscription needs of its bus."""

    lock: threading.Lock

    @property
    def outage(self) -> Outage:
        """The state of the database."""

    async def read_log(self, key: StreamKey, after: Order) -> Page:
        """Read a page of stored events."""

    def unstored(self, key: StreamKey) -> list[Event]:
        """Return the events that may not be stored yet. The caller holds the lock."""

    def logs(self, *, resumable: bool) -> bool:
        """Return whether the log has the events of such a stream."""

    def unsubscribe(self, subscription: "Subscription") -> None:
        """Forget a subscription."""


class Subscription:
    """The events for one reader, in order. It belongs to the event loop that creates it.

    It begins live, or with the log after a position. A reader that is too slow for the live events
    continues in the log. Events that the log does not have are lost then: the reader finds a loss
    event in their place.

    Args:
        source: The bus.
        key: The key of a run or of a thread.
        after: The position after which to begin in the log; None begins live.
        published_after: Skip stored events that were published earlier, in milliseconds.
        whole_since: If the reader needs all events since a run's creation: its date. Deleted
            events since then are lost ones.

    Attributes:
        broken: Whether events were lost.
        key: The stream's key.
        topic: `key.topic`, stored because each event compares it.
        by_creator: Whether the reader created the run: it subscribed before the run existed.
        dropped: Whether the run or thread was deleted, so that no more events come.
    """

    def __init__(
        self,
        source: Source,
        key: StreamKey,
        after: Order | None = None,
        *,
        published_after: int = 0,
        whole_since: object = None,
    ) -> None:
        self.key, self.topic = key, key.topic
        self.broken = self.by_creator = self.dropped = False
        self._source, self._began = source, elapsed()
        self._loop = asyncio.get_running_loop()
        self._pacer = pacing.of(self._loop)
        self._thread = threading.get_ident()
        self._events: deque[Event] = deque()
        # The position of the last event that was queued, and whether the next ones are in the log.
        self._seen = START if after is None else after
        self._resumes = after is not None and after > START
        self._is_behind = after is not None
        self._published_after, self._whole_since = published_after, whole_since
        # Live events that the log never has, while the reader is in the log.
        self._held: list[Event] = []
        self._held_bytes = 0
        # Live events during a read of the log.
        self._meanwhile: list[Event] | None = None
        # Whether the log must be read again after that read.
        self._again = False
        # Only the publisher writes `_pushed`, only the reader `_read`, so neither needs a lock.
        self._pushed = self._read = 0
        # What the reader has made of the last event is paid with the next turn.
        self._last_size = 0
        self._waiter: asyncio.Future[None] | None = None

    def push(self, event: Event) -> None:
        """Add a live event. The caller holds the bus's lock."""
        if event.order <= self._seen:
            return
        if self._is_behind:
            self._hold([event])
            return
        if self._meanwhile is not None:
            self._meanwhile.append(event)
            return
        if self._pushed - self._read > WAITING_BYTES and self._events:
            if self._source.logs(resumable=event.resumable):
                self._fall_behind()
                return
            self._lose()
        self._append(event)
        self.notify()

    def _hold(self, events: Iterable[Event]) -> None:
        """Keep the events that the log never has until the reader reaches their places."""
        for event in events:
            if not self._source.logs(resumable=event.resumable):
                self._held.append(event)
                self._held_bytes += event.size
        if self._held_bytes > WAITING_BYTES:
            del self._held[:-1]
            self._held_bytes = sum(each.size for each in self._held)
            self._lose()

    def _append(self, event: Event) -> None:
        self._seen = max(self._seen, event.order)
        self._pushed += event.size
        self._events.append(event)

    def _lose(self) -> None:
        """Drop the unread events, which the log does not have, and report it once."""
        is_told = self.broken and not any(each.is_loss for each in list(self._events))
        self._events = deque() if is_told else deque([lost()])
        self._pushed = self._read
        self.broken = True

    def _fall_behind(self) -> None:
        """Drop the unread events, and continue after the last read one in the log."""
        # One assignment, because the reader may take an event at the same time.
        unread, self._events = self._events, deque()
        self._pushed = self._read
        if (oldest := next(iter(unread.copy()), None)) is not None:
            self._seen = (oldest.order[0], oldest.order[1] - 1)
        self._hold(unread)
        self._resumes = self._is_behind = True
        self.notify()

    def notify(self) -> None:
        """Wake the waiting reader, from any thread."""
        if self._waiter is None:
            return
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            with suppress(RuntimeError):  # The reader's loop is closed.
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def _is_idle(self) -> bool:
        return not (self._events or self._is_behind or self.dropped)

    async def get(self, timeout: float | None = None) -> Event | None:
        """Return the next event, or None after `timeout` seconds or if no more events come.

        An event takes a turn of the loop.

        Raises:
            DatabaseOutage: the database cannot be used, so the events may not come for long.
        """
        while await self._has_events(timeout):
            if not self._pacer.take(cost := EVENT_MS + self._last_size * MS_A_BYTE):
                await self._pacer.turn(self.key.tenant, self.topic, cost)
                # The events may have been dropped meanwhile, because this reader is too slow.
                if not self._events:
                    continue
            event = self._events.popleft()
            self._read += event.size
            self._last_size = event.size
            return event
        return None

    async def _has_events(self, timeout: float | None) -> bool:
        """Wait for events. Return False after `timeout` seconds or if no more events come."""
        while not self._events:
            if self._is_behind:
                await self._catch_up()
                continue
            if self.dropped:
                return False
            left = self._source.outage.stream_seconds(self._began) if timeout != 0 else None
            is_last = left is None or (timeout is not None and timeout < left)
            self._waiter = self._loop.create_future()
            # Another thread may have pushed or dropped since the check.
            if not self._is_idle:
                self._waiter = None
                continue
            try:
                async with asyncio.timeout(timeout if is_last else left):
                    await self._waiter
            except TimeoutError:
                if is_last:
                    return False
            finally:
                self._waiter = None
        return True

    async def _catch_up(self) -> None:
        """Read a page of the log, and go live after the last page."""
        with self._source.lock:
            # From here on each event is in the log, not stored yet, or pushed meanwhile.
            self._is_behind, self._meanwhile = False, []
            unstored = self._source.unstored(self.key)
        try:
            page = await self._source.read_log(self.key, self._seen)
        except BaseException:
            with self._source.lock:
                self._hold(self._meanwhile or [])
                self._is_behind, self._meanwhile = True, None
            raise
        with self._source.lock:
            meanwhile, self._meanwhile = self._meanwhile or [], None
            self._is_behind, self._again = page.more or self._again, False
            live, self._held, self._held_bytes = [*self._held, *meanwhile], [], 0
            if self._is_behind:
                later = [each for each in live if each.order <= page.position]
                self._hold(each for each in live if each.order > page.position)
            else:
                later = [*unstored, *live]
            self._begin_with(page, later)

    def _begin_with(self, page: Page, later: list[Event]) -> None:
        if not self.broken and any(self._misses(row) for row in page.dropped):
            self.broken = True
            self._events.append(lost())
        found = {each.order: each for each in [*page.events, *later] if each.order > self._seen}
        for order in sorted(found):
            if found[order].at >= self._published_after:
                self._append(found[order])
        self._seen = max(self._seen, page.position)

    def _misses(self, row: dict[str, object]) -> bool:
        """Return whether the deleted events of a row belong to what this reader asked for."""
        if not row["resumable"]:
            return False
        since = self._whole_since
        return self._resumes or (since is not None and row["created_at"] > since)  # type: ignore[operator]  # two dates

    def begin_after(self, position: Order) -> None:
        """Skip live events up to a position. A subscription that begins in the log stays there."""
        if not self._is_behind:
            self._seen = max(self._seen, position)

    def fall_behind(self) -> None:
        """Continue in the log: live events were missed. The caller holds the bus's lock."""
        self._resumes = True
        if self._meanwhile is None:
            self._is_behind = True
            self.notify()
        else:
            self._again = True

    def waiting(self) -> list[Event]:
        """Return the events that are not read yet."""
        return list(self._events)

    def drop(self) -> None:
        """End the stream, from any thread."""
        self.dropped = True
        self.notify()

    def close(self) -> None:
        """Unsubscribe. Repeatable."""
        self._source.unsubscribe(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
