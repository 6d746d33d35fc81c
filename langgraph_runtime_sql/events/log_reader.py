"""LogReader: gives the events of other processes to the followers in this process.

The followers read the log when a wire says that it has grown. With Redis, events also travel on the
wire itself: a follower that gets the next number need not read the log. Without any wire, the log is
read regularly.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any

from langgraph_runtime_sql.clock import milliseconds
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.publisher import Publisher
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.topic import Topic, Topics
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.periodic import periodic
from langgraph_runtime_sql.tenancy import scope

logger = logging.getLogger(__name__)

# Events of the wire that wait for earlier ones from the log.
MAX_EARLY = 1_000
# For how many milliseconds an event of the wire is kept. By then it is stored, or never.
FAST_MS = 60_000
# Threads that one transaction reads.
PULLED = 50
PAUSE_SECONDS = 0.5


class LogReader:
    """The reader of one process.

    Args:
        database: Where the log is.
        topics: The followers and writers in this process.
        publisher: Takes over the events that wait on a thread written here.
        wires: The wires to other processes.
    """

    def __init__(
        self,
        database: Database,
        topics: Topics,
        publisher: Publisher,
        wires: Wires,
    ) -> None:
        self._database, self._publisher = database, publisher
        self._topics, self._wires = topics, wires
        # By topic: events that came too early, and those that were delivered before they were stored.
        self._early: dict[str, deque[tuple[int, Event]]] = {}
        self._fast: dict[str, deque[Event]] = {}

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what reads the log until cancelled, each for a task of its own."""
        look = periodic(self._look, self._rest, "Log not looked at", "log_recheck_failed")
        return [self._pull_all(), look]

    async def _look(self) -> None:
        self._topics.look_at_followed()

    async def _rest(self) -> float:
        return self._wires.recheck_seconds

    async def refresh(self, subscription: Subscription) -> None:
        """Deliver what other processes have stored on the thread."""
        with self._topics.lock:
            topic = self._topics.find(subscription.topic)
            if topic is not None and topic.writer is not None:
                # The followers of a writer do not read the log. This one may be superseded.
                subscription.fall_behind()
                return
        if topic is not None:
            await self._pull([topic])

    async def _pull_all(self) -> None:
        with outage.waited_for():
            await self._pull_due_topics()

    async def _pull_due_topics(self) -> None:
        while True:
            names = await self._topics.outdated()
            try:
                for start in range(0, len(names), PULLED):
                    with self._topics.lock:
                        found = map(self._topics.find, names[start : start + PULLED])
                        topics = [each for each in found if each is not None]
                    await self._pull(topics)
            except RuntimeSqlError as error:
                logger.info("Reading the event log failed: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                self._topics.look_again(names)

    async def _pull(self, topics: list[Topic]) -> None:
        """Read the log of threads after their positions, and deliver the events."""
        for topic in topics:
            if topic.writer is not None:
                await self._publisher.place_waiting(topic.key)
        wanted = [each for each in topics if each.writer is None and each.subscriptions]
        while wanted:
            asked = [(each, each.position) for each in wanted]

            def fn(conn: Connection, asked: list[tuple[Topic, Order]] = asked) -> list[log.Page]:
                return [log.read(conn, topic.key, position) for topic, position in asked]

            with scope.within(scope.EVERYTHING):
                pages = await self._database.read(fn)
            for (topic, after), page in zip(asked, pages, strict=True):
                self._deliver(topic, after, page)
            wanted = [t for t, page in zip(wanted, pages, strict=True) if page.more]

    def _deliver(self, topic: Topic, after: Order, page: log.Page) -> None:
        with self._topics.lock:
            if topic.writer is not None:
                return
            if page.dropped:
                for each in topic.subscriptions:
                    each.fall_behind()
            for event in page.events:
                if event.order > topic.position:
                    topic.deliver(event)
            topic.position = max(topic.position, page.position)
            # The asked position may be that of an event of the wire, which is not stored yet.
            self._forget_stored(topic, page.position if page.position > after else START)
            self._deliver_early(topic)

    def _forget_stored(self, topic: Topic, position: Order) -> None:
        fast = self._fast.get(topic.key.topic)
        while fast and (fast[0].order <= position or fast[0].at < milliseconds() - FAST_MS):
            fast.popleft()

    def receive_events(self, topic: str, base: int, events: list[Event]) -> None:
        """Deliver events that came over the wire, if no earlier one is missing."""
        with self._topics.lock:
            found = self._topics.find(topic)
            if found is None or found.writer is not None or not found.subscriptions:
                return
            early = self._early.setdefault(topic, deque(maxlen=MAX_EARLY))
            early.extend((base, each) for each in events)
            is_missing = self._deliver_early(found)
        if is_missing:
            self._topics.look_at(topic)

    def _deliver_early(self, topic: Topic) -> bool:
        """Deliver the events of the wire that come next. Return whether earlier ones are missing."""
        early = self._early.get(topic.key.topic)
        while early:
            base, event = early[0]
            epoch, number = event.order
            reached, last = topic.position
            if event.order > topic.position:
                # Numbers have no gap in a thread, so this one follows the last event of its
                # epoch, or of the epoch before.
                if number != last + 1 or (epoch != reached and base != last):
                    break
                topic.deliver(event)
                fast = self._fast.setdefault(topic.key.topic, deque(maxlen=MAX_EARLY))
                fast.append(event)
            early.popleft()
        return bool(early)

    def unstored(self, key: StreamKey) -> list[Event]:
        """Return the events of a wire that may not be stored yet, with the lock held."""
        fast = self._fast.get(key.topic, ())
        return [each for each in fast if key.run_id in (THREAD, each.run_id)]

    def forget(self, topic: str) -> None:
        """Forget the events of a thread that nobody follows."""
        self._early.pop(topic, None)
        self._fast.pop(topic, None)
