"""Subscriptions to events of several processes: of a run, and of a thread in Redis's order."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from langgraph_runtime_sql.events.event import START, Event, Order, lost
from langgraph_runtime_sql.events.redis.entry import Kept, Place
from langgraph_runtime_sql.events.subscription import Subscription


class RemoteSubscription(Subscription):
    """A reader of events that come from several processes."""

    of_thread = False
    # Where its reader goes on. A Redis that has forgotten everything is told again what was before.
    after: Order | None = None
    _replayed: frozenset[tuple[Order, str]] = frozenset()
    # The run that was told of last, and the attempt at it.
    _latest = "", 0
    _unfollow: Any = None

    def push(self, event: Event) -> None:
        """Add an event, from any thread, unless the reader has it already."""
        if self.after is not None and event.order <= self.after and not event.is_loss:
            return
        if (event.order, event.run_id) not in self._replayed and self._admits(event):
            super().push(event)

    def _admits(self, event: Event) -> bool:
        """Note an event that comes; False if an attempt after its own was told of already.

        It may have waited for Redis, while the next one's were told by their own process.
        """
        run_id, attempt = self._latest
        if event.attempt:
            self._latest = event.run_id, max(event.attempt, attempt * (event.run_id == run_id))
        return event.attempt in (0, self._latest[1])

    def begin_with(self, events: Collection[Event]) -> None:
        """Have these read first; none of them comes twice."""
        self._replayed = frozenset((event.order, event.run_id) for event in events)
        super().begin_with(events)
        for event in events:
            self._admits(event)

    def hold(self, seconds: float) -> None:
        """Note that Redis was emptied, and is told again what it knew.

        What a single run's process tells is in order.
        """

    def lose_first(self) -> None:
        """The same as `lose`, of events before all that wait to be read."""
        if not self.broken:
            self.broken = True
            self._events.appendleft(lost())

    def close(self) -> None:
        """Stop listening. Repeatable."""
        super().close()
        if self._unfollow is not None:
            self._unfollow(self.topic, self)


class ThreadSubscription(RemoteSubscription):
    """A reader of all that is sent on a thread, by whomever, in the order that Redis gave it.

    The numbers of its events are their ranks: whoever was given one was given all before it.
    """

    of_thread = True
    _begun = True
    _last: Order = START
    _ranks: frozenset[Order] = frozenset()
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, leave: Callable[[Subscription], None]) -> None:
        super().__init__(leave)
        self._held: list[Event] = []

    @property
    def holds(self) -> bool:
        """Whether what comes is kept back for a while."""
        return self._timer is not None or not self._begun

    def resumes(self) -> None:
        """Keep back what comes until it is known what the reader begins with."""
        self._begun = False

    def push(self, event: Event) -> None:
        """Add an event, unless the reader has it already."""
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
            # Told again after what came later: whoever goes on after that would miss it.
            self.lose()

    def resume(self, after: Order, kept: list[Kept], position: Place) -> None:
        """Begin with what Redis had kept since an event, and what has come meanwhile.

        Args:
            position: Up to where it had been read before this reader came.
        """
        self._begun = True
        come, self._held = ([], self._held) if self.holds else (self._held, [])
        shown = [each for each in kept if each.event.resumable or each.place > position]
        found = {each.rank: each.event._replace(order=each.rank) for each in shown}
        found |= {each.order: each for each in come}
        losses = [each for each in self.waiting() if each.is_loss][:1]
        events = [found[rank] for rank in sorted(found) if rank > after]
        self.after = after
        self.begin_with([*losses, *events])
        # Of what is not shown again some may be on its way here, too.
        self._ranks = frozenset(each.rank for each in kept)
        self._last = events[-1].order if events else after

    def hold(self, seconds: float) -> None:
        """Keep back for so long what several processes tell Redis again, to give it in order."""
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
        """Stop listening. Repeatable."""
        super().close()
        if self._timer is not None:
            self._timer.cancel()
