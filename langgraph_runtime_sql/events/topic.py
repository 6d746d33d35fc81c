"""Topics: the followers and the writer of each thread in this process."""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.writer import Writer


@dataclass(slots=True)
class Topic:
    """A thread that is followed or written in this process.

    Attributes:
        key: The key of the thread.
        position: The position of the last event that its followers got.
        writer: The writer, while this process executes a run of the thread.
    """

    key: StreamKey
    position: Order = START
    writer: Writer | None = None
    subscriptions: list[Subscription] = field(default_factory=list)

    def deliver(self, event: Event) -> None:
        """Give an event to the followers of its run and of the thread."""
        self.position = max(self.position, event.order)
        for each in self.subscriptions:
            if each.key.run_id in (THREAD, event.run_id):
                each.push(event)

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows or writes the thread."""
        return not self.subscriptions and self.writer is None


class Topics:
    """The topics of this process. The caller of a method holds the lock, unless the method takes it.

    Attributes:
        lock: Held while events are published, delivered or subscribed to.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._topics: dict[str, Topic] = {}
        self._by_run: dict[str, list[Subscription]] = {}
        # The names of those whose log may have grown since this process read it.
        self._outdated: set[str] = set()
        self._due = asyncio.Event()

    def find(self, name: str) -> Topic | None:
        """Return a topic by `StreamKey.topic`, or None."""
        return self._topics.get(name)

    def open(self, key: StreamKey) -> Topic:
        """Return the topic of a thread or run, and create it if necessary."""
        topic = self._topics.get(key.topic)
        if topic is None:
            topic = self._topics[key.topic] = Topic(key.thread)
        return topic

    def followed(self) -> list[Topic]:
        """Return the topics with followers."""
        return [each for each in self._topics.values() if each.subscriptions]

    def of_run(self, run_id: str) -> list[Subscription]:
        """Return the followers of a run."""
        return list(self._by_run.get(run_id, ()))

    def add(self, subscription: Subscription) -> Topic:
        """Add a follower of a thread or run."""
        topic = self.open(subscription.key)
        topic.subscriptions.append(subscription)
        if subscription.key.run_id != THREAD:
            self._by_run.setdefault(subscription.key.run_id, []).append(subscription)
        return topic

    def remove(self, subscription: Subscription) -> None:
        """Remove a follower. Repeatable."""
        run_id = subscription.key.run_id
        with suppress(KeyError, ValueError):
            self._by_run[run_id].remove(subscription)
            if not self._by_run[run_id]:
                del self._by_run[run_id]
        topic = self._topics.get(subscription.topic)
        if topic is not None:
            with suppress(ValueError):
                topic.subscriptions.remove(subscription)
            self.forget(topic)

    def move(self, subscription: Subscription, key: StreamKey) -> None:
        """Give a follower another key."""
        self.remove(subscription)
        subscription.key, subscription.topic = key, key.topic
        self.add(subscription)

    def forget(self, topic: Topic) -> None:
        """Delete a topic that nobody uses."""
        if topic.is_idle:
            self._topics.pop(topic.key.topic, None)

    def of(self, key: StreamKey) -> Iterator[Subscription]:
        """Return the followers of a run, or of a thread and all its runs."""
        topic = self._topics.get(key.topic)
        for each in list(topic.subscriptions) if topic else ():
            if key.run_id in (THREAD, each.key.run_id):
                yield each

    # --- whose log is read again, on the event loop of the bus

    def look_at(self, name: str) -> None:
        """Have the log of a thread read soon, if it is followed or written here."""
        with self.lock:
            is_used = name in self._topics
        if is_used:
            self.look_again([name])

    def look_at_followed(self) -> None:
        """Have the logs of all followed threads read soon."""
        with self.lock:
            names = [each.key.topic for each in self.followed()]
        self.look_again(names)

    def look_again(self, names: Iterable[str]) -> None:
        """Have these logs read soon."""
        self._outdated.update(names)
        self._due.set()

    async def outdated(self) -> list[str]:
        """Wait for threads whose log may have grown, and return their names."""
        await self._due.wait()
        self._due.clear()
        names, self._outdated = list(self._outdated), set()
        return names
