"""Subscriptions to the events of several processes: of a run, or of a thread in Redis's order."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from langgraph_runtime_sql.events.event import START, Event, Order, lost
from langgraph_runtime_sql.events.redis.entry import Place, StoredEvent
from langgraph_runtime_sql.events.subscription import Subscription


class RemoteSubscription(Subscription):
    """A run's subscription to events of several processes."""

    of_thread = False
    # Older events are skipped: processes send them again to a Redis that was emptied.
    after: Order | None = None
    _replayed: frozenset[tuple[Order, str]] = frozenset()
    # The run and attempt of the newest event.
    _latest = "", 0
    _unfollow: Any = None

    def push(self, event: Event) -> None:
        """Add an event, from any thread, unless the reader has it."""
        if self.after is not None and event.order <= self.after and not event.is_loss:
            return
        if (event.order, event.run_id) not in self._replayed and self._admits(event):
            super().push(event)

    def _admits(self, event: Event) -> bool:
        """Record the event's attempt. Return False if a later attempt has already published.

        Events of a process can be delayed in Redis, while the next attempt runs in this process.
        """
        run_id, attempt = self._latest
        if event.attempt:
            self._latest = event.run_id, max(event.attempt, attempt * (event.run_id == run_id))
        return event.attempt in (0, self._latest[1])

    def begin_with(self, events: Collection[Event]) -> None:
        """Replace the unread events, and ignore later copies of them."""
        self._replayed = frozenset((event.order, event.run_id) for event in events)
        super().begin_with(events)
        for event in events:
            self._admits(event)

    def hold(self, seconds: float) -> None:
        """Do nothing: after Redis was emptied, one run's events still arrive in order."""

    def lose_first(self) -> None:
        """Mark events as lost before all unread ones."""
        if not self.broken:
            self.broken = True
            self._events.appendleft(lost())

    def close(self) -> None:
        super().close()
        if self._unfollow is not None:
            self._unfollow(self.topic, self)


class ThreadSubscription(RemoteSubscription):
    """A thread's events of all processes, in Redis's order.

    The order of its events is their rank: a client that has one rank was sent all lower ones.
    """

    of_thread = True
    _resumed = True
    _last: Order = START
    _ranks: frozenset[Order] = frozenset()
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, unsubscribe: Callable[[Subscription], None]) -> None:
        super().__init__(unsubscribe)
        self._held: list[Event] = []

    @property
    def holds(self) -> bool:
        return self._timer is not None or not self._resumed

    def hold_until_resumed(self) -> None:
        """Hold back new events until `resume`."""
        self._resumed = False

    def push(self, event: Event) -> None:
        if event.is_loss:
            super().push(event)
        elif self.holds:
            self._held.append(event)
        elif event.order <= (self.after or START) or event.order in self._ranks:
            return
        elif event.order > self._last:
            self._last = event.order
            super().push(event)
        else:
            # It was sent again after later ones. A client that resumes from those would miss it.
            self.lose()

    def resume(self, after: Order, stored: list[StoredEvent], position: Place) -> None:
        """Begin with the events that Redis has stored, and those that arrived meanwhile.

        Args:
            after: The rank after which the client continues.
            stored: The thread's events in Redis.
            position: The last entry that was read before this subscription.
        """
        self._resumed = True
        arrived, self._held = ([], self._held) if self.holds else (self._held, [])
        shown = [each for each in stored if each.event.resumable or each.place > position]
        found = {each.rank: each.event._replace(order=each.rank) for each in shown}
        found |= {each.order: each for each in arrived}
        losses = [each for each in self.waiting() if each.is_loss][:1]
        events = [found[rank] for rank in sorted(found) if rank > after]
        self.after = after
        self.begin_with([*losses, *events])
        # Events that are not replayed may still be on their way here.
        self._ranks = frozenset(each.rank for each in stored)
        self._last = events[-1].order if events else after

    def hold(self, seconds: float) -> None:
        """Hold back events for `seconds`, to sort what several processes send again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._release)

    def _release(self) -> None:
        self._timer = None
        if not self.holds:
            held, self._held = self._held, []
            for event in sorted(held, key=lambda each: each.order):
                self.push(event)

    def close(self) -> None:
        super().close()
        if self._timer is not None:
            self._timer.cancel()
