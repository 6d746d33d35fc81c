"""Bus: wake-ups, control messages and event streams between the parts of one process.

`RedisBus` (redis_bus.py) carries them to other processes as well.

Publishing and subscribing happen under one lock, so a subscriber that asks
for what came before gets each event exactly once: from the log up to that
moment, live from then on.
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

# Control messages for runs that nobody has entered yet.
UNHEARD = 10_000
# Only a lost end is ever found by this: ends are announced.
RECHECK_SECONDS = 15.0


class Control(NamedTuple):
    """A request to the worker of a run: `interrupt` or `rollback`, and why."""

    action: str
    reason: str | None


class LocalBus:
    """The bus of one process.

    Args:
        keep_seconds: How long a finished run's stream can still be resumed.

    Attributes:
        shared: Whether runs may be worked on in other processes, and events be lost on their way.
        name: This process, unlike any other; empty where it is the only one.
    """

    shared = False
    name = ""
    _reader: type[Subscription] = Subscription

    def __init__(self, keep_seconds: float = 120.0) -> None:
        self._lock = threading.Lock()
        self._last: Order = (0, 0)
        # By the run's id; which of these an event is for, their topics say.
        self._by_run: dict[str, list[Subscription]] = defaultdict(list)
        # By the topic.
        self._by_thread: dict[str, list[Subscription]] = defaultdict(list)
        self._logs = Logs(keep_seconds)
        self._live: dict[str, bool] = {}
        # On Postgres the word that a run was created may come after the word that it has ended.
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._controls: OrderedDict[str, Control] = OrderedDict()
        self._listeners: dict[str, Callable[[Control], None]] = {}
        self._wakers: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Connect with other processes; this bus has none."""

    async def stop(self) -> None:
        """Take leave of other processes. Repeatable."""

    def health(self) -> dict[str, str]:
        """How the way to other processes is, by name."""
        return {}

    # --- streams

    @property
    def skew(self) -> int:
        """Nanoseconds by which the clock that numbers come from is ahead of this machine's."""
        return 0

    @property
    def recheck_seconds(self) -> float:
        """How long a follower may wait for events before he asks the database."""
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
        """Send an event to whoever follows the run or its thread.

        Args:
            attempt: On whose behalf, where it is a worker's: what an attempt sends that
                was superseded reaches no other process.
        """
        with self._lock:
            log = self._logs.open(key) if resumable else None
            return self._send(key, name, data, log, attempt)

    def publish_state(self, key: StreamKey, name: str, data: bytes) -> Event:
        """Send an event that belongs to a thread and to none of its runs."""
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
        """`subscribe_run`, wherever the run is worked on.

        Args:
            whole: Everything since `after` must still be known to somebody.
        """
        return self.subscribe_run(key, after, live)

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        """`subscribe_thread`, wherever its runs are worked on.

        Args:
            asked_at: When, in nanoseconds by this machine's clock: what other processes sent
                since then comes too. Now where it is left out.
        """
        return self.subscribe_thread(key, after)

    async def settle(self, subscription: Subscription, run_id: str | None = None) -> bool:
        """Have everything there that was sent before now; whether it is.

        Args:
            run_id: A run that has ended: not before the word of its end was sent.
        """
        return True

    def is_behind(self, key: StreamKey) -> bool:
        """Whether what was published here on a thread still waits to reach its followers."""
        return False

    async def catch_up(self, key: StreamKey) -> None:
        """Number what is sent from now on after what others have sent on a thread."""

    async def flush(self) -> None:
        """Have everything that was published so far where other processes find it."""

    async def flushing(self, end: Awaitable[T]) -> T:
        """The result of a run's `end`, once all of its events are where others find them."""
        return await end

    def subscribe_run(
        self, key: StreamKey, after: Order | None = None, live: Subscription | None = None
    ) -> Subscription:
        """Follow a run, which need not exist yet, from `after` or from now.

        Args:
            live: A subscription to the same run: what waits there to be read comes too.
        """
        return self._subscribe(self._reader, key, after, live)

    def subscribe_thread(self, key: StreamKey, after: Order | None = None) -> Subscription:
        """Follow all runs of a thread, future ones too, from `after` or from now."""
        return self._subscribe(self._reader, key, after)

    def _subscribe(
        self,
        kind: type[S],
        key: StreamKey,
        after: Order | None = None,
        live: Subscription | None = None,
    ) -> S:
        """Begin a subscription, with what is kept here since `after`.

        Args:
            key: Of a run, or of a thread.
        """
        whole = key.run_id != THREAD
        readers, name = (self._by_run, key.run_id) if whole else (self._by_thread, key.topic)

        def leave(subscription: Subscription) -> None:
            with self._lock, suppress(KeyError, ValueError):
                readers[name].remove(subscription)
                if not readers[name]:
                    del readers[name]

        subscription = kind(leave)
        subscription.key, subscription.topic = key, key.topic
        with self._lock:
            if after is not None:
                logs = self._logs.of_run(key) if whole else self._logs.of_thread(key)
                subscription.begin_with(_since(after, logs, live, whole=whole))
            readers[name].append(subscription)
        return subscription

    def drop(self, key: StreamKey) -> None:
        """Forget what a deleted run, or a deleted thread with its runs, has told, everywhere.

        Those who follow it hear nothing more.
        """
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

    def run_made(self, key: StreamKey, *, resumable: bool) -> None:
        """A run was committed. Those who follow it already have made it: nobody else knew its id."""
        with self._lock:
            for subscription in self._by_run.get(key.run_id, ()):
                subscription.by_maker = True
                # Its thread and tenant were perhaps not known before.
                subscription.key, subscription.topic = key, key.topic
        self._note_made(key, resumable=resumable)

    def _note_made(self, key: StreamKey, *, resumable: bool) -> None:
        self.run_started(key, resumable=resumable)

    def run_started(self, key: StreamKey, *, resumable: bool) -> None:
        """A run was claimed by this process, or can be by no other: it is live until it ends."""
        with self._lock:
            if key.run_id not in self._ended:
                self._live[key.run_id] = resumable
                self._logs.go_on(key)

    def run_left(self, run_id: str) -> None:
        """An attempt in this process is over, and its run is not, or ended elsewhere."""

    def is_live(self, run_id: str) -> bool:
        """Whether this process knows that the run has not ended yet."""
        return run_id in self._live

    def ended_here(self, run_id: str) -> bool:
        """Whether this process has told that the run has ended, not too long ago."""
        return run_id in self._ended

    def follows(self, run_id: str) -> bool:
        """Whether anybody follows the run in this process."""
        return run_id in self._by_run

    def is_resumable(self, run_id: str) -> bool:
        """Whether a live run was asked to keep its stream."""
        return self._live.get(run_id, False)

    def run_ended(self, key: StreamKey, *, resumable: bool) -> None:
        """Tell followers that nothing more comes. Call once its status is committed."""
        self.publish(key, CONTROL, DONE, resumable=resumable)
        run_id = key.run_id
        with self._lock:
            self._ended[run_id] = None
            while len(self._ended) > UNHEARD:
                self._ended.popitem(last=False)
            self._live.pop(run_id, None)
            self._controls.pop(run_id, None)
            self._logs.end(key)

    def on_queued(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, when a run is queued; returns how to stop."""
        self._wakers.append(wake)
        return lambda: self._wakers.remove(wake)

    def wake(self) -> None:
        """Have the queue look again; from any thread."""
        for wake in list(self._wakers):
            wake()

    # --- control

    def send_control(self, run_id: str, control: Control) -> None:
        """Ask a run's worker to stop; kept until the run is entered."""
        with self._lock:
            listener = self._listeners.get(run_id)
            if listener is None:
                self._controls[run_id] = control
                while len(self._controls) > UNHEARD:
                    self._controls.popitem(last=False)
        if listener is not None:
            listener(control)

    def listen(self, run_id: str, listener: Callable[[Control], None]) -> Callable[[], None]:
        """Hear control messages of a run, one sent before included; returns how to stop."""
        with self._lock:
            self._listeners[run_id] = listener
            early = self._controls.pop(run_id, None)
        if early is not None:
            listener(early)
        return lambda: self._forget(run_id, listener)

    def _forget(self, run_id: str, listener: Callable[[Control], None]) -> None:
        with self._lock:
            if self._listeners.get(run_id) is listener:
                del self._listeners[run_id]

    # --- upkeep

    def leave_all_but(self, working: Collection[str]) -> None:
        """Let go of runs that others work on now. No run is claimed here meanwhile.

        Here they all come back: nobody else works on runs.

        Args:
            working: The ids of the runs that this process works on.
        """

    def expire(self) -> None:
        """Forget the streams of runs that ended, or were left, long enough ago."""
        with self._lock:
            self._logs.expire()


def _since(after: Order, logs: list[Log], live: Subscription | None, *, whole: bool) -> list[Event]:
    """What is known of what came after an event; that some is missing comes first.

    Args:
        whole: Whoever begins gets all that ever came, and not only what is kept.
    """
    waiting = live.waiting() if live else []
    known = {event for log in logs for event in log.events}.union(waiting)
    found = sorted(event for event in known if event.order > after)
    gone = (whole or after > START) and any(log.dropped > after for log in logs)
    if (gone and all(event.order > after for event in waiting)) or (live and live.broken):
        return [lost(), *found]
    return found
