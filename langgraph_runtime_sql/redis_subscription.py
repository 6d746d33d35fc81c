"""RemoteSubscription: what a reader is still to be given of events of several processes."""

from collections.abc import Collection
from typing import Any

from langgraph_runtime_sql.events import Event, Order, lost
from langgraph_runtime_sql.subscription import Subscription


class RemoteSubscription(Subscription):
    """A reader of events that come from several processes."""

    key = ""
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

    def lose_first(self) -> None:
        """The same as `lose`, of events before all that wait to be read."""
        if not self.broken:
            self.broken = True
            self._events.appendleft(lost())

    def close(self) -> None:
        """Stop listening. Repeatable."""
        super().close()
        if self._unfollow is not None:
            self._unfollow(self.key, self)
