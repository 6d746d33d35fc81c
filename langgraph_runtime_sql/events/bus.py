"""Bus: wake-ups, control messages and event streams within one process.

`RedisBus` (redis/bus.py) also carries them to other processes.

Publishing and subscribing share one lock. So a subscriber that asks for earlier events gets each
event once: from the log up to its subscription, live afterwards.
"""

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import NamedTuple, TypeVar

from langgraph_runtime_sql.events.event import CONTROL, DONE, START, Event, Order, lost
from langgraph_runtime_sql.events.log import Log, Logs
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.subscription import Subscription

T = TypeVar("T")
S = TypeVar("S", bound=Subscription)

# How many early control messages, and how many ended runs, are remembered.
MAX_REMEMBERED = 10_000
# How often a follower checks the database, in case the end event was lost.
RECHECK_SECONDS = 15.0


class Control(NamedTuple):
    """A request to stop a run: `interrupt` or `rollback`, and the reason."""

    action: str
    reason: str | None


class LocalBus:
    """The bus of one process.

    Args:
        keep_seconds: How long a finished run's stream can be resumed.

    Attributes:
        shared: Whether other processes take part, so that events may be lost on the way.
        name: The unique name of this process; empty if it is the only one.
    """

    shared = False
    name = ""
    _run_subscription: type[Subscription] = Subscription

    def __init__(self, keep_seconds: float = 120.0) -> None:
        self._lock = threading.Lock()
        self._last: Order = (0, 0)
        # By run id. The subscription's topic must match, too.
        self._by_run: dict[str, list[Subscription]] = defaultdict(list)
        # By topic.
        self._by_thread: dict[str, list[Subscription]] = defaultdict(list)
        self._logs = Logs(keep_seconds)
        self._live: dict[str, bool] = {}
        # On Postgres a run's creation may be announced after its end.
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._controls: OrderedDict[str, Control] = OrderedDict()
        self._listeners: dict[str, Callable[[Control], None]] = {}
        self._wakers: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Connect to other processes. This bus has none."""

    async def stop(self) -> None:
        """Disconnect from other processes. Repeatable."""

    def health(self) -> dict[str, str]:
        """Return the state of each connection by name."""
        return {}

    # --- streams

    @property
    def skew(self) -> int:
        """By how many nanoseconds the clock that numbers events is ahead of this machine's."""
        return 0

    @property
    def recheck_seconds(self) -> float:
        """How long a follower waits for events before it checks the database."""
        return RECHECK_SECONDS

    def publish(
        self,
        key: StreamKey,
        name: str,
        data: bytes,
        *,
        resumable: bool = False,
        attempt: int = 0,
    ) -> Event:
        """Send an event to the followers of the run and of its thread.

        Args:
            resumable: Whether the event is kept for clients that reconnect.
            attempt: The attempt of the worker that publishes; 0 outside of a worker. Events of a
                superseded attempt do not reach other processes.
        """
        with self._lock:
            log = self._logs.open(key) if resumable else None
            return self._send(key, name, data, log, attempt)

    def publish_state(self, key: StreamKey, name: str, data: bytes) -> Event:
        """Send an event that belongs to a thread, but to none of its runs."""
        with self._lock:
            log = self._logs.open(key)
            self._logs.end(key)
            return self._send(key, name, data, log, 0)

    def _send(self, key: StreamKey, name: str, data: bytes, log: Log | None, attempt: int) -> Event:
        milliseconds = (time.time_ns() + self.skew) // 1_000_000
        last = self._last
        order = (milliseconds, 0) if milliseconds > last[0] else (last[0], last[1] + 1)
        self._last = order
        event = Event(order, key.run_id, name, data, log is not None, attempt)
        if log is not None:
            self._logs.add(log, event)
        self._deliver(event, key.topic)
        return event

    def _deliver(self, event: Event, topic: str, *, to_thread: bool = True) -> None:
        for subscription in self._by_run.get(event.run_id, ()):
            if subscription.topic == topic:
                subscription.push(event)
        for subscription in self._by_thread.get(topic, ()) if to_thread else ():
            subscription.push(event)

    async def follow_run(
        self,
        key: StreamKey,
        after: Order | None = None,
        live: Subscription | None = None,
        *,
        whole: bool = False,
    ) -> Subscription:
        """Follow a run in any process; other parameters as in `subscribe_run`.

        Args:
            whole: Whether all events since `after` must be found.
        """
        return self.subscribe_run(key, after, live)

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        """Follow a thread's runs in any process; parameters as in `subscribe_thread`.

        Args:
            asked_at: The time of the request, in nanoseconds by this machine's clock; default now.
                Events that other processes sent since then are included.
        """
        return self.subscribe_thread(key, after)

    async def settle(self, subscription: Subscription, run_id: str | None = None) -> bool:
        """Wait until all earlier events have arrived. Return False on timeout.

        Args:
            run_id: A run that has ended: also wait for its end event.
        """
        return True

    def is_behind(self, key: StreamKey) -> bool:
        """Return whether followers still lack events that this process published on a thread."""
        return False

    async def catch_up(self, key: StreamKey) -> None:
        """Number later events after those of other processes on the thread."""

    async def flush(self) -> None:
        """Wait until other processes can read all published events."""

    async def flushing(self, end: Awaitable[T]) -> T:
        """Await a run's `end` and flush. Return the result of `end`."""
        return await end

    def subscribe_run(
        self, key: StreamKey, after: Order | None = None, live: Subscription | None = None
    ) -> Subscription:
        """Follow a run, which need not exist yet, from `after` or from now.

        Args:
            live: A subscription to the same run. Its unread events are included.
        """
        return self._subscribe(self._run_subscription, key, after, live)

    def subscribe_thread(self, key: StreamKey, after: Order | None = None) -> Subscription:
        """Follow all runs of a thread, future ones too, from `after` or from now."""
        return self._subscribe(self._run_subscription, key, after)

    def _subscribe(
        self,
        kind: type[S],
        key: StreamKey,
        after: Order | None = None,
        live: Subscription | None = None,
    ) -> S:
        """Create a subscription that begins with the kept events since `after`.

        Args:
            key: The key of a run or of a thread.
        """
        of_run = key.run_id != THREAD
        readers, name = (self._by_run, key.run_id) if of_run else (self._by_thread, key.topic)

        def unsubscribe(subscription: Subscription) -> None:
            with self._lock, suppress(KeyError, ValueError):
                readers[name].remove(subscription)
                if not readers[name]:
                    del readers[name]

        subscription = kind(unsubscribe)
        subscription.key, subscription.topic = key, key.topic
        with self._lock:
            if after is not None:
                logs = self._logs.of_run(key) if of_run else self._logs.of_thread(key)
                subscription.begin_with(_since(after, logs, live, whole=of_run))
            readers[name].append(subscription)
        return subscription

    def drop(self, key: StreamKey) -> None:
        """Delete the events of a deleted run or thread everywhere, and end its streams."""
        self._drop(key.topic, key.run_id)

    def _drop(self, topic: str, run_id: str) -> None:
        with self._lock:
            self._logs.drop(topic, run_id)
            found = self._by_run.get(run_id, [])
            if run_id == THREAD:
                found = [each for some in self._by_run.values() for each in some]
                found += self._by_thread.get(topic, [])
            for subscription in found:
                if subscription.topic == topic:
                    subscription.drop()

    # --- runs

    def run_created(self, key: StreamKey, *, resumable: bool) -> None:
        """Note a committed run. Its followers have created it: no other client knew its id."""
        with self._lock:
            for subscription in self._by_run.get(key.run_id, ()):
                subscription.by_creator = True
                # The follower may not have known its thread and tenant.
                subscription.key, subscription.topic = key, key.topic
        # With other processes, only the one that claims the run is sure of its end.
        if not self.shared:
            self.run_started(key, resumable=resumable)

    def run_started(self, key: StreamKey, *, resumable: bool) -> None:
        """Note a run that this process has claimed, or will execute: it is live until its end."""
        with self._lock:
            if key.run_id not in self._ended:
                self._live[key.run_id] = resumable
                self._logs.keep_open(key)

    def run_released(self, run_id: str) -> None:
        """Note that this process no longer executes the run, which may continue elsewhere."""

    def is_live(self, run_id: str) -> bool:
        """Return whether this process knows that the run has not ended."""
        return run_id in self._live

    def ended_here(self, run_id: str) -> bool:
        """Return whether this process has recently announced the run's end."""
        return run_id in self._ended

    def follows(self, run_id: str) -> bool:
        """Return whether this process has a follower of the run."""
        return run_id in self._by_run

    def is_resumable(self, run_id: str) -> bool:
        """Return whether a live run keeps its stream."""
        return self._live.get(run_id, False)

    def run_ended(self, key: StreamKey, *, resumable: bool) -> None:
        """Announce a run's end. Call it after the commit of its status."""
        self.publish(key, CONTROL, DONE, resumable=resumable)
        run_id = key.run_id
        with self._lock:
            self._ended[run_id] = None
            while len(self._ended) > MAX_REMEMBERED:
                self._ended.popitem(last=False)
            self._live.pop(run_id, None)
            self._controls.pop(run_id, None)
            self._logs.end(key)

    def on_queued(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, for each queued run. Return a function that stops it."""
        self._wakers.append(wake)
        return lambda: self._wakers.remove(wake)

    def wake(self) -> None:
        """Make the queue look for runs. Call it from any thread."""
        for wake in list(self._wakers):
            wake()

    # --- control

    def send_control(self, run_id: str, control: Control) -> None:
        """Ask a run's worker to stop. The request is kept until the worker listens."""
        with self._lock:
            listener = self._listeners.get(run_id)
            if listener is None:
                self._controls[run_id] = control
                while len(self._controls) > MAX_REMEMBERED:
                    self._controls.popitem(last=False)
        if listener is not None:
            listener(control)

    def listen(self, run_id: str, listener: Callable[[Control], None]) -> Callable[[], None]:
        """Receive a run's control messages, also an early one. Return a function that stops it."""
        with self._lock:
            self._listeners[run_id] = listener
            early = self._controls.pop(run_id, None)
        if early is not None:
            listener(early)
        return lambda: self._stop_listening(run_id, listener)

    def _stop_listening(self, run_id: str, listener: Callable[[Control], None]) -> None:
        with self._lock:
            if self._listeners.get(run_id) is listener:
                del self._listeners[run_id]

    # --- upkeep

    def release_others(self, executed: Collection[str]) -> None:
        """Release the runs that other processes execute now. Concurrent claims are not allowed.

        Without other processes there are none.

        Args:
            executed: The ids of the runs that this process executes.
        """

    def expire(self) -> None:
        """Delete the streams of runs that ended, or were released, long enough ago."""
        with self._lock:
            self._logs.expire()


def _since(after: Order, logs: list[Log], live: Subscription | None, *, whole: bool) -> list[Event]:
    """Return the known events after `after`, preceded by a loss event if some are missing.

    Args:
        whole: Whether a subscriber from the beginning needs all events, not only the kept ones.
    """
    waiting = live.waiting() if live else []
    known = {event for log in logs for event in log.events}.union(waiting)
    found = sorted(event for event in known if event.order > after)
    missing = (whole or after > START) and any(log.dropped > after for log in logs)
    if (missing and all(event.order > after for event in waiting)) or (live and live.broken):
        return [lost(), *found]
    return found
