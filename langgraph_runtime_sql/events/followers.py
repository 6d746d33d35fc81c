"""Followers: the readers of streams in this process."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events import log, wire
from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.known_runs import KnownRuns
from langgraph_runtime_sql.events.log import Page
from langgraph_runtime_sql.events.log_reader import LogReader
from langgraph_runtime_sql.events.publisher import Publisher
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.tasks import Background
from langgraph_runtime_sql.events.topic import Topics
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.tenancy import scope

T = TypeVar("T")

# How much older than a subscription its first event may be, because clocks differ.
BEFORE = timedelta(seconds=2)


class Followers:
    """The followers of one process. They are the source of its subscriptions.

    Args:
        database: Where the log is.
        topics: The followers and writers in this process.
        publisher: Has the events that are not stored yet.
        reader: Reads the events of other processes; None without them.
        runs: What this process knows about runs.
        wires: The wires to other processes.

    Attributes:
        lock: Held while events are published, delivered or subscribed to.
    """

    def __init__(
        self,
        database: Database,
        topics: Topics,
        publisher: Publisher,
        reader: LogReader | None,
        runs: KnownRuns,
        wires: Wires,
    ) -> None:
        self._database, self._publisher, self._reader = database, publisher, reader
        self._topics, self._wires, self._runs = topics, wires, runs
        self._background = Background()
        self.lock = topics.lock

    async def follow_run(
        self, key: StreamKey, after: Order | None = None, *, whole_since: object = None
    ) -> Subscription:
        """Follow a run, which need not exist yet, from `after` or from now.

        Args:
            whole_since: The run's date of creation, if the follower needs all events after
                `after`: deleted ones are reported as lost.
        """
        return await self._follow(Subscription(self, key, after, whole_since=whole_since))

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        """Follow all runs of a thread, future ones too, from `after` or from now.

        Args:
            asked_at: The time of the request, in milliseconds by this machine's clock; default now.
                Events that other processes published since then are included.
        """
        if self._reader is None or after is not None or asked_at is None:
            return await self._follow(Subscription(self, key, after))
        since = datetime.fromtimestamp(asked_at / 1000, UTC) - BEFORE
        thread_id = UUID(key.thread_id)
        before = await self._read(lambda conn: log.before(conn, thread_id, since))
        published_after = int(since.timestamp() * 1000)
        return await self._follow(Subscription(self, key, before, published_after=published_after))

    async def _follow(self, subscription: Subscription) -> Subscription:
        """Add a subscription, with other processes from the position that the log has now."""
        if self._reader is None:
            return self._subscribe(subscription)
        topic = subscription.topic
        await self._wires.follow(topic)
        with self.lock:
            found = self._topics.find(topic)
            position = found.position if found is not None and found.writer is not None else None
        if position is None:
            thread_id = UUID(subscription.key.thread_id)
            position = await self._read(lambda conn: log.head(conn, thread_id))
        subscription.begin_after(position)
        self._subscribe(subscription)
        with self.lock:
            opened = self._topics.open(subscription.key)
            if opened.position == START:
                opened.position = position
        self._topics.look_at(topic)
        return subscription

    def _subscribe(self, subscription: Subscription) -> Subscription:
        with self.lock:
            self._topics.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscription. Repeatable."""
        with self.lock:
            self._topics.remove(subscription)
        if self._wires.carry_events and not self._is_followed(subscription.topic):
            self._wires.soon(self._unfollow, subscription.topic)

    def _is_followed(self, topic: str) -> bool:
        with self.lock:
            found = self._topics.find(topic)
            return found is not None and bool(found.subscriptions)

    def _unfollow(self, topic: str) -> None:
        if self._reader is not None and not self._is_followed(topic):
            self._reader.forget(topic)
            self._background.start(self._wires.unfollow(topic))

    # --- what a subscription reads

    @property
    def outage(self) -> outage.Outage:
        """The state of the database."""
        return self._database.outage

    def logs(self, *, resumable: bool) -> bool:
        """Return whether the events of a stream are stored."""
        return self._publisher.logs(resumable=resumable)

    def unstored(self, key: StreamKey) -> list[Event]:
        """Return the events of a run or thread that may not be stored yet, with the lock held."""
        found = self._publisher.unstored(key)
        return found if self._reader is None else [*found, *self._reader.unstored(key)]

    async def read_log(self, key: StreamKey, after: Order) -> Page:
        """Read a page of the stored events of a run or thread."""
        # The caller's permission was checked: the platform reads for it.
        with scope.within(scope.SystemScope(turn=key.tenant)):
            return await self._database.read(lambda conn: log.read(conn, key, after))

    async def refresh(self, subscription: Subscription) -> None:
        """Deliver what other processes have stored on the thread."""
        if self._reader is not None:
            await self._reader.refresh(subscription)

    async def _read(self, fn: Callable[[Connection], T]) -> T:
        with scope.within(scope.EVERYTHING):
            return await self._database.read(fn)

    # --- what all followers are told

    def wake(self) -> None:
        """Let all followers look at the state of the database."""
        with self.lock:
            for topic in self._topics.followed():
                for subscription in topic.subscriptions:
                    subscription.notify()

    def drop(self, key: StreamKey) -> None:
        """End the streams of a deleted run or thread in every process."""
        self._drop(key)
        self._wires.tell(wire.drop(key.topic, key.run_id))

    def drop_topic(self, topic: str, run_id: str) -> None:
        """End the streams of a deleted run or thread in this process."""
        with self.lock:
            found = self._topics.find(topic)
        if found is not None:
            self._drop(found.key._replace(run_id=run_id))

    def _drop(self, key: StreamKey) -> None:
        with self.lock:
            for subscription in self._topics.of(key):
                subscription.drop()

    def run_created(self, key: StreamKey, *, resumable: bool) -> None:
        """Note a committed run. Its followers have created it: no other client knew its id."""
        with self.lock:
            for subscription in self._topics.of_run(key.run_id):
                subscription.by_creator = True
                if subscription.key != key:
                    # The follower did not know its thread or tenant.
                    self._topics.move(subscription, key)
            # With other processes, only the one that claims the run is sure of its end.
            if not self._wires.shared:
                self._runs.begin(key.run_id, resumable=resumable)
        if self._wires.carry_events and self.follows(key.run_id):
            self._wires.soon(self._follow_topic, key.topic)

    def _follow_topic(self, topic: str) -> None:
        self._background.start(self._wires.follow(topic))
        self._topics.look_at(topic)

    def follows(self, run_id: str) -> bool:
        """Return whether this process has a follower of the run."""
        return bool(self._topics.of_run(run_id))
