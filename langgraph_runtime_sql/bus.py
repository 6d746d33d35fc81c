"""Bus: wake-ups, control messages and event streams between the parts of one process.

`RedisBus` (redis_bus.py) carries them to other processes as well.

Publishing and subscribing happen under one lock, so a subscriber that asks
for what came before gets each event exactly once: from the log up to that
moment, live from then on.
"""

import asyncio
import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")

# A resumable run keeps this much of its stream for clients that come back.
LOG_BYTES = 32 * 2**20
# And all of them together this much: those that have ended longest ago go first, until there is
# room for a while.
ALL_LOGS_BYTES = 256 * 2**20
ROOM = 0.9
# What may wait for a reader that does not read, and what each event costs beside its data.
WAITING_BYTES = LOG_BYTES
EVENT_BYTES = 256
# Control messages for runs that nobody has entered yet.
UNHEARD = 10_000
DONE = b"done"
LOST = b"lost"
CONTROL = "control"
# Only a lost end is ever found by this: ends are announced.
RECHECK_SECONDS = 15.0

Order = tuple[int, int]
START: Order = (-1, -1)


class Event(NamedTuple):
    """One event of a run, numbered in an order that only grows.

    Attributes:
        attempt: Which attempt at the run has sent it; 0 for who does not work on it.
    """

    order: Order
    run_id: str
    name: str
    data: bytes
    resumable: bool
    attempt: int = 0

    @property
    def id(self) -> bytes:
        """The number as clients see it: `<milliseconds>-<sequence>`."""
        return b"%d-%d" % self.order

    @property
    def is_end(self) -> bool:
        """Whether the run says with this that nothing more comes."""
        return self.name == CONTROL and self.data == DONE

    @property
    def is_loss(self) -> bool:
        """Whether events are missing here."""
        return self.name == CONTROL and self.data == LOST


def lost() -> Event:
    """What stands in the place of events that did not arrive."""
    return Event(START, "", CONTROL, LOST, False)


class Control(NamedTuple):
    """A request to the worker of a run: `interrupt` or `rollback`, and why."""

    action: str
    reason: str | None


def parse_order(event_id: str | bytes | None) -> Order | None:
    """The place in the stream after which a client wants to go on.

    `-`, `-1` and the empty string are the beginning; a bare number is the end
    of that millisecond's predecessor. None (and what is not an id) is now.
    """
    if event_id is None:
        return None
    text = event_id.decode(errors="replace") if isinstance(event_id, bytes) else event_id
    if text in ("", "-", "-1"):
        return START
    first, _, second = text.partition("-")
    with suppress(ValueError):
        return int(first), -1 if second in ("", "*") else int(second)
    return None


class Subscription:
    """One reader's events, in order; it lives on the event loop that made it.

    A reader that falls too far behind loses them, and is told so: they are kept in memory.

    Attributes:
        broken: Whether events were lost on their way here.
    """

    broken = False

    def __init__(self, leave: Callable[["Subscription"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events: deque[Event] = deque()
        # Each is written by one side only, so that neither waits for the other.
        self._pushed = 0
        self._read = 0
        self._most = WAITING_BYTES
        self._waiter: asyncio.Future[None] | None = None
        self._leave = leave

    def push(self, event: Event) -> None:
        """Add an event, from any thread, one at a time."""
        if self.broken and not event.is_loss and self._is_idle(event):
            return
        self._pushed += _size(event)
        if self._pushed - self._read > self._most and self._events and not self.broken:
            self.broken = True
            # In one step, because the reader may take one just now.
            self._events = deque((lost(), event) if event.is_end else (lost(),))
        else:
            self._events.append(event)
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

    def waiting(self) -> list[Event]:
        """The events that are still to be read."""
        return list(self._events)

    async def get(self, timeout: float | None = None) -> Event | None:
        """The next event, or None when `timeout` seconds pass without one."""
        while not self._events:
            self._waiter = self._loop.create_future()
            if self._events:  # Pushed from another thread between the two lines above.
                self._waiter = None
                break
            try:
                async with asyncio.timeout(timeout):
                    await self._waiter
            except TimeoutError:
                return None
            finally:
                self._waiter = None
        event = self._events.popleft()
        self._read += _size(event)
        return event

    def begin_with(self, events: Collection[Event]) -> None:
        """Have these read first, in the place of what waits; the caller keeps others from pushing.

        They were kept already, and may be more than what may wait.
        """
        size = sum(map(_size, events))
        self._events = deque(events)
        self._pushed = self._read + size
        self._most = WAITING_BYTES + size
        self.broken = self.broken or any(event.is_loss for event in events)

    def lose(self) -> None:
        """Have the reader told, in their place, that events were lost on their way here."""
        if not self.broken:
            self.broken = True
            self.push(lost())

    def close(self) -> None:
        """Stop listening. Repeatable."""
        self._leave(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _size(event: Event) -> int:
    return len(event.data) + EVENT_BYTES


@dataclass(slots=True)
class _Log:
    """What a resumable stream keeps.

    Attributes:
        dropped: The number of the last event that is not kept any more.
    """

    thread_id: str | None
    events: deque[Event] = field(default_factory=deque)
    size: int = 0
    dropped: Order = START
    expires: float | None = None

    def add(self, event: Event) -> int:
        """Keep an event; returns by how many bytes the log has grown."""
        before = self.size
        self.events.append(event)
        self.size += len(event.data)
        while self.size > LOG_BYTES and len(self.events) > 1:
            oldest = self.events.popleft()
            self.size -= len(oldest.data)
            self.dropped = oldest.order
        return self.size - before


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
        self._keep = keep_seconds
        self._lock = threading.Lock()
        self._last: Order = (0, 0)
        self._by_run: dict[str, list[Subscription]] = defaultdict(list)
        self._by_thread: dict[str, list[Subscription]] = defaultdict(list)
        self._logs: dict[str, _Log] = {}
        self._logged = 0
        self._thread_logs: dict[str, list[str]] = defaultdict(list)
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
        run_id: str,
        thread_id: str | None,
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
            log = self._log(run_id, thread_id) if resumable else None
            return self._send(run_id, thread_id, name, data, log, attempt)

    def publish_state(self, thread_id: str, name: str, data: bytes) -> Event:
        """Send an event that belongs to a thread and to none of its runs."""
        with self._lock:
            log = self._log(f"*{thread_id}", thread_id)
            log.expires = time.monotonic() + self._keep
            return self._send("*", thread_id, name, data, log, 0)

    def _send(
        self,
        run_id: str,
        thread_id: str | None,
        name: str,
        data: bytes,
        log: _Log | None,
        attempt: int,
    ) -> Event:
        milliseconds = (time.time_ns() + self.skew) // 1_000_000
        last = self._last
        order = (milliseconds, 0) if milliseconds > last[0] else (last[0], last[1] + 1)
        self._last = order
        event = Event(order, run_id, name, data, log is not None, attempt)
        if log is not None:
            self._logged += log.add(event)
            if self._logged > ALL_LOGS_BYTES:
                self._make_room()
        self._deliver(event, thread_id)
        return event

    def _deliver(self, event: Event, thread_id: str | None) -> None:
        for subscription in self._by_run.get(event.run_id, ()):
            subscription.push(event)
        if thread_id is not None:
            for subscription in self._by_thread.get(thread_id, ()):
                subscription.push(event)

    async def follow_run(
        self,
        run_id: str,
        thread_id: str | None,
        after: Order | None = None,
        live: Subscription | None = None,
        *,
        whole: bool = False,
    ) -> Subscription:
        """`subscribe_run`, wherever the run is worked on.

        Args:
            whole: Everything since `after` must still be known to somebody.
        """
        return self.subscribe_run(run_id, after, live)

    async def follow_thread(
        self, thread_id: str, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        """`subscribe_thread`, wherever its runs are worked on.

        Args:
            asked_at: When, in nanoseconds by this machine's clock: what other processes sent
                since then comes too. Now where it is left out.
        """
        return self.subscribe_thread(thread_id, after)

    async def settle(self, subscription: Subscription, run_id: str | None = None) -> bool:
        """Have everything there that was sent before now; whether it is.

        Args:
            run_id: A run that has ended: not before the word of its end was sent.
        """
        return True

    async def catch_up(self, thread_id: str) -> None:
        """Number what is sent from now on after what others have sent on a thread."""

    async def flush(self) -> None:
        """Have everything that was published so far where other processes find it."""

    async def flushing(self, end: Awaitable[T]) -> T:
        """The result of a run's `end`, once all of its events are where others find them."""
        return await end

    def subscribe_run(
        self, run_id: str, after: Order | None = None, live: Subscription | None = None
    ) -> Subscription:
        """Follow a run, which need not exist yet, from `after` or from now.

        Args:
            live: A subscription to the same run: what waits there to be read comes too.
        """
        return self._subscribe(self._by_run, run_id, [run_id], after, live)

    def subscribe_thread(self, thread_id: str, after: Order | None = None) -> Subscription:
        """Follow all runs of a thread, future ones too, from `after` or from now."""
        return self._subscribe(self._by_thread, thread_id, None, after)

    def _subscribe(
        self,
        readers: dict[str, list[Subscription]],
        key: str,
        logs: list[str] | None,
        after: Order | None,
        live: Subscription | None = None,
    ) -> Subscription:
        def leave(subscription: Subscription) -> None:
            with self._lock, suppress(KeyError, ValueError):
                readers[key].remove(subscription)
                if not readers[key]:
                    del readers[key]

        subscription = self._reader(leave)
        with self._lock:
            if after is not None:
                names = self._thread_logs.get(key, []) if logs is None else logs
                found = [self._logs[name] for name in names if name in self._logs]
                subscription.begin_with(_since(after, found, live))
            readers[key].append(subscription)
        return subscription

    def _log(self, key: str, thread_id: str | None) -> _Log:
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = _Log(thread_id)
            if thread_id is not None:
                self._thread_logs[thread_id].append(key)
        return log

    # --- runs

    def run_started(self, run_id: str, *, resumable: bool, here: bool = True) -> None:
        """A run was committed or claimed: it is live until it ends.

        Args:
            here: It was claimed by this process.
        """
        with self._lock:
            if run_id not in self._ended:
                self._live[run_id] = resumable
                if (log := self._logs.get(run_id)) is not None:
                    log.expires = None

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

    def run_ended(self, run_id: str, thread_id: str | None, *, resumable: bool) -> None:
        """Tell followers that nothing more comes. Call once its status is committed."""
        self.publish(run_id, thread_id, CONTROL, DONE, resumable=resumable)
        with self._lock:
            self._ended[run_id] = None
            while len(self._ended) > UNHEARD:
                self._ended.popitem(last=False)
            self._live.pop(run_id, None)
            self._controls.pop(run_id, None)
            if (log := self._logs.get(run_id)) is not None:
                log.expires = time.monotonic() + self._keep

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
        moment = time.monotonic()
        with self._lock:
            for key in [k for k, v in self._logs.items() if v.expires and v.expires < moment]:
                self._forget_log(key)

    def _make_room(self) -> None:
        """Forget streams of ended runs, before their time, until the rest fits."""
        ended = sorted((log.expires, key) for key, log in self._logs.items() if log.expires)
        for _, key in ended:
            if self._logged <= ALL_LOGS_BYTES * ROOM:
                return
            self._forget_log(key)

    def _forget_log(self, key: str) -> None:
        log = self._logs.pop(key)
        self._logged -= log.size
        if log.thread_id is not None:
            self._thread_logs[log.thread_id].remove(key)
            if not self._thread_logs[log.thread_id]:
                del self._thread_logs[log.thread_id]


def _since(after: Order, logs: list[_Log], live: Subscription | None) -> list[Event]:
    """What is known of what came after an event; that some is missing comes first."""
    waiting = live.waiting() if live else []
    known = {event for log in logs for event in log.events}.union(waiting)
    found = sorted(event for event in known if event.order > after)
    # Whoever begins gets what is kept. Whoever goes on gets all that came since.
    gone = after > START and any(log.dropped > after for log in logs)
    if (gone and all(event.order > after for event in waiting)) or (live and live.broken):
        return [lost(), *found]
    return found


_current: LocalBus | None = None


def current() -> LocalBus:
    """The bus of this process."""
    global _current
    if _current is None:
        _current = LocalBus()
    return _current


def reset(keep_seconds: float, redis_url: str | None = None, prefix: str | None = None) -> None:
    """Start afresh, as a new process would.

    Args:
        keep_seconds: How long a finished run's stream can still be resumed.
        redis_url: The Redis through which several processes share one database.
        prefix: What all keys and channels there begin with.
    """
    global _current
    if redis_url is None:
        _current = LocalBus(keep_seconds)
    else:
        from langgraph_runtime_sql.redis_bus import RedisBus

        _current = RedisBus(redis_url, keep_seconds, prefix=prefix)
