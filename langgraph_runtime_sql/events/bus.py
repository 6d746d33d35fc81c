"""Bus: wake-ups, control messages and event streams within one process.

`SharedBus` (shared.py) also carries them to other processes.

A follower gets an event at once. Events of resumable streams are also stored in the log, by the
next commit of their run or some milliseconds later.
"""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from uuid import UUID

from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.event import CONTROL, DONE, Event, Order
from langgraph_runtime_sql.events.log import Page
from langgraph_runtime_sql.events.segment import SEGMENT_EVENTS, Segment
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.tasks import end_all
from langgraph_runtime_sql.events.topic import Topic, Topics
from langgraph_runtime_sql.events.writer import Writer
from langgraph_runtime_sql.request_context import own_write
from langgraph_runtime_sql.tenancy import scope

logger = logging.getLogger(__name__)

# How many early control messages, and how many ended runs, are remembered.
MAX_REMEMBERED = 10_000
# How often a follower checks the database, in case the end event was lost.
RECHECK_SECONDS = 15.0
# How long events wait to be stored together.
FLUSH_SECONDS = 0.03
# How long a stop waits for the last events to be stored.
STOP_SECONDS = 2.0
# The delay after a database error.
PAUSE_SECONDS = 0.5


class Control(NamedTuple):
    """A request to stop a run: `interrupt` or `rollback`, and the reason."""

    action: str
    reason: str | None


class LocalBus:
    """The bus of one process.

    Args:
        database: Where the log is.
        name: The unique name of this process, under which it claims runs.

    Attributes:
        shared: Whether other processes take part.
        name: The name of this process.
        lock: Held while events are published, delivered or subscribed to.
    """

    shared = False

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self.lock = threading.Lock()
        self._database = database
        self._topics = Topics()
        # Writers with events that are not stored, also those that are closed.
        self._unstored: list[Writer] = []
        # Events of threads without a writer here.
        self._others: list[tuple[StreamKey, Event]] = []
        # The writers of runs that this process executes.
        self._writers: dict[str, Writer] = {}
        self._live: dict[str, bool] = {}
        # On Postgres a run's creation may be announced after its end.
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._controls: OrderedDict[str, Control] = OrderedDict()
        self._listeners: dict[str, Callable[[Control], None]] = {}
        self._wakers: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due, self._full = asyncio.Event(), asyncio.Event()
        self._is_due = False
        self._flushing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start to store events, and connect to other processes if there are any."""
        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._flush_all(), name="event-log")]

    async def stop(self) -> None:
        """Store the remaining events, and disconnect from other processes. Repeatable."""
        tasks, self._tasks = self._tasks, []
        if tasks:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self.flush()
            except (RuntimeSqlError, TimeoutError) as error:
                logger.warning("The last events were not stored: %r", error)
        await end_all(tasks)

    def health(self) -> dict[str, str]:
        """Return the state of each connection by name."""
        return {}

    # --- publishing

    @property
    def recheck_seconds(self) -> float:
        """How long a follower waits for events before it checks the database."""
        return RECHECK_SECONDS

    def logs(self, *, resumable: bool) -> bool:
        """Return whether the events of a stream are stored."""
        return resumable

    def publish(
        self,
        key: StreamKey,
        name: str,
        data: bytes,
        *,
        resumable: bool = False,
        attempt: int = 0,
    ) -> int:
        """Send an event to the followers of the run and of its thread, from any thread.

        Args:
            resumable: Whether the event is kept for clients that reconnect.
            attempt: The attempt of the worker that publishes; 0 outside of a worker. Events of a
                superseded attempt are dropped.

        Returns:
            How many of the run's events are not stored yet.
        """
        at = milliseconds()
        with self.lock:
            topic = self._topics.find(key.topic)
            writer = None if topic is None else topic.writer
            is_own = writer is not None and writer.key.run_id == key.run_id
            if topic is None or writer is None or (writer.is_ending and not is_own):
                event = Event((at, 0), key.run_id, name, data, resumable, at=at)
                self._publish_without_writer(key, event)
                return 0
            if is_own:
                if 0 < attempt < writer.attempt:
                    return 0
                # A run that still publishes has not ended: its end could not be stored.
                writer.is_ending = False
                # Its worker publishes the error of a resumable run without this mark.
                resumable = resumable or writer.resumable
            event = writer.next(key.run_id, name, data, resumable=resumable, attempt=attempt, at=at)
            self._send(topic, writer, event)
            if not self.logs(resumable=resumable):
                return 0
            waiting = writer.add(event)
            if writer not in self._unstored:
                self._unstored.append(writer)
            if not self._is_due or waiting == SEGMENT_EVENTS:
                self._flush_soon(now=waiting == SEGMENT_EVENTS)
            return waiting

    def _send(self, topic: Topic, writer: Writer, event: Event) -> None:
        topic.deliver(event)

    def _publish_without_writer(self, key: StreamKey, event: Event) -> None:
        """Send an event that gets its place in the log when it is stored."""
        topic = self._topics.find(key.topic)
        if self.logs(resumable=event.resumable):
            self._others.append((key, event))
            # A writer that is ending gets the time to end.
            self._flush_soon(now=topic is None or topic.writer is None)
        elif topic is not None:
            self._deliver_unstored(topic, event)

    def _deliver_unstored(self, topic: Topic, event: Event) -> None:
        """Deliver an event without a place in the log."""
        epoch = max(event.at, topic.position[0] + 1)
        topic.deliver(event._replace(order=(epoch, topic.position[1])))

    def publish_state(self, key: StreamKey, name: str, data: bytes) -> None:
        """Send an event that belongs to a thread, but to none of its runs."""
        self.publish(key, name, data, resumable=True)

    # --- storing

    def unstored(self, key: StreamKey) -> list[Event]:
        """Return the events of a run or thread that may not be stored yet, with the lock held."""
        writers = [each for each in self._unstored if each.key.topic == key.topic]
        found = [event for writer in writers for event in writer.unstored()]
        of_thread = key == key.thread
        return found if of_thread else [each for each in found if each.run_id == key.run_id]

    async def read_log(self, key: StreamKey, after: Order) -> Page:
        """Read a page of the stored events of a run or thread."""
        # The caller's permission was checked: the platform reads for it.
        with scope.within(scope.SystemScope(turn=key.tenant)):
            return await self._database.read(lambda conn: log.read(conn, key, after))

    def store(self, conn: Connection, run_id: str) -> None:
        """Store the events of a run in a transaction of its worker, which checks the claim."""
        with self.lock:
            writer = self._writers.get(run_id)
            if writer is None or writer.is_stored:
                return
            segments = writer.cut()
        self._store(conn, writer, segments)

    def _store(self, conn: Connection, writer: Writer, segments: list[Segment]) -> None:
        log.store(conn, segments)
        conn.after_commit(partial(self._stored, writer, segments))

    def _stored(self, writer: Writer, segments: list[Segment]) -> None:
        with self.lock:
            writer.stored(segments)
            if writer.is_stored and writer in self._unstored:
                self._unstored = [each for each in self._unstored if each is not writer]
        self._noticed([writer.key.topic])

    def _noticed(self, topics: Iterable[str]) -> None:
        """Tell other processes that the log of these threads has grown."""

    def _flush_soon(self, *, now: bool) -> None:
        self._is_due = True
        loop = self._loop
        if loop is None:
            return
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(self._set_due, now)

    def _set_due(self, now: bool) -> None:
        self._due.set()
        if now:
            self._full.set()

    async def _flush_all(self) -> None:
        with outage.waited_for():
            await self._flush_due()

    async def _flush_due(self) -> None:
        while True:
            await self._due.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._full.wait()
            try:
                await self.flush()
            except Exception:
                logger.exception("Storing events failed")
                await asyncio.sleep(PAUSE_SECONDS)
                self._due.set()

    async def flush(self) -> None:
        """Wait until all published events are stored.

        Raises:
            RuntimeSqlError: the database did not store them. They are stored later.
        """
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            # A worker on a loop of its own. The lock belongs to the bus's loop.
            await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._flush_now(), self._loop)
            )
            return
        await self._flush_now()

    async def _flush_now(self) -> None:
        if self._flushing.locked() and not self._database.outage.is_waited_for():
            # The flush that holds the lock may wait for the end of an outage.
            self._database.outage.refuse()
        async with self._flushing:
            self._due.clear()
            self._full.clear()
            with self.lock:
                self._is_due = False
                writers, others = list(self._unstored), self._others
                self._others = []
            if not (writers or others):
                return
            try:
                with scope.within(scope.EVERYTHING), own_write("events"):
                    await self._database.write(partial(self._flush, writers, others))
            except BaseException:
                with self.lock:
                    self._others = others + self._others
                raise

    def _flush(
        self, writers: list[Writer], others: list[tuple[StreamKey, Event]], conn: Connection
    ) -> None:
        writers = sorted(writers, key=lambda each: each.key.run_id)
        asked = [log.ask_held(conn, w.key.run_id, w.attempt, self.name) for w in writers]
        groups: dict[StreamKey, list[Event]] = {}
        for writer, held in zip(writers, asked, strict=True):
            with self.lock:
                segments = writer.cut()
            if held.one() is not None:
                self._store(conn, writer, segments)
            else:
                # Superseded, or the run was deleted: of its stream only the end remains.
                conn.after_commit(partial(self._stored, writer, segments))
                thread = writer.key.thread
                ends = [e for each in segments for e in each.events if e.is_end or not e.attempt]
                if ends and log.close(conn, thread, ends):
                    conn.after_commit(partial(self._noticed, [thread.topic]))
                elif ends:
                    groups.setdefault(thread, []).extend(ends)
        for key, event in others:
            groups.setdefault(key.thread, []).append(event)
        for thread, events in groups.items():
            self._place(conn, thread, events)

    def _place(self, conn: Connection, key: StreamKey, events: list[Event]) -> None:
        """Store events of a thread that has no writer here, then deliver them."""
        placed = log.place(conn, key, events, shared=self.shared)

        def deliver() -> None:
            with self.lock:
                topic = self._topics.find(key.topic)
                for event in placed.events if topic is not None else ():
                    if topic is not None and event.order > topic.position:
                        self._deliver_placed(topic, event)
                if topic is not None and placed.is_gone:
                    for event in events:
                        self._deliver_unstored(topic, event)
            if placed.is_gone:
                self._thread_is_gone(key, events)
            elif placed.waits:
                self._must_wait(key, events)
            else:
                self._noticed([key.topic])

        conn.after_commit(deliver)

    def _deliver_placed(self, topic: Topic, event: Event) -> None:
        """Deliver an event that has just got its place in the log, with the lock held."""
        topic.deliver(event)

    def _thread_is_gone(self, key: StreamKey, events: list[Event]) -> None:
        """Tell other processes of events that have no log."""

    def _must_wait(self, key: StreamKey, events: list[Event]) -> None:
        """Let the writer, which has begun meanwhile, place events of others."""
        with self.lock:
            topic = self._topics.find(key.topic)
            if topic is None or topic.writer is None:
                # A run without a worker, which is recovered soon.
                self._others += [(key._replace(run_id=each.run_id), each) for each in events]
                self._flush_soon(now=False)
                return
        self._take_over(key, events)

    def _take_over(self, key: StreamKey, events: Iterable[Event]) -> None:
        for each in events:
            self.publish(
                key._replace(run_id=each.run_id), each.name, each.data, resumable=each.resumable
            )

    # --- following

    async def follow_run(
        self, key: StreamKey, after: Order | None = None, *, whole_since: object = None
    ) -> Subscription:
        """Follow a run, which need not exist yet, from `after` or from now.

        Args:
            whole_since: The run's date of creation, if the follower needs all events after
                `after`: deleted ones are reported as lost.
        """
        return self._subscribe(Subscription(self, key, after, whole_since=whole_since))

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        """Follow all runs of a thread, future ones too, from `after` or from now.

        Args:
            asked_at: The time of the request, in milliseconds by this machine's clock; default now.
                Events that other processes published since then are included.
        """
        return self._subscribe(Subscription(self, key, after))

    def _subscribe(self, subscription: Subscription) -> Subscription:
        with self.lock:
            self._topics.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscription. Repeatable."""
        with self.lock:
            self._topics.remove(subscription)

    @property
    def outage(self) -> outage.Outage:
        """The state of the database."""
        return self._database.outage

    def wake_followers(self) -> None:
        """Let all followers look at the state of the database."""
        with self.lock:
            for topic in self._topics.followed():
                for subscription in topic.subscriptions:
                    subscription.notify()

    async def refresh(self, subscription: Subscription) -> None:
        """Deliver what other processes have stored on the thread."""

    def drop(self, key: StreamKey) -> None:
        """End the streams of a deleted run or thread everywhere."""
        self._drop(key)

    def _drop(self, key: StreamKey) -> None:
        with self.lock:
            for subscription in self._topics.of(key):
                subscription.drop()

    # --- runs

    def run_created(self, key: StreamKey, *, resumable: bool) -> None:
        """Note a committed run. Its followers have created it: no other client knew its id."""
        with self.lock:
            for subscription in self._topics.of_run(key.run_id):
                subscription.by_creator = True
                if subscription.key != key:
                    # The follower did not know its thread or tenant.
                    self._topics.move(subscription, key)
            # With other processes, only the one that claims the run is sure of its end.
            if not self.shared and key.run_id not in self._ended:
                self._live[key.run_id] = resumable

    def claimed(self, conn: Connection, key: StreamKey, run: Row) -> None:
        """Make this process the writer of the thread, with the commit of its claim.

        Args:
            key: The key of the run.
            run: The claimed run, with its attempt.
        """
        asked = log.ask_head(conn, run["thread_id"])
        resumable = bool(run["kwargs"].get("resumable"))
        writer = Writer(key, run["attempt"], log.new_head(conn, asked), resumable=resumable)
        conn.after_commit(partial(self.run_started, writer))

    def run_started(self, writer: Writer) -> None:
        """Note a run that this process executes: it is live until its end."""
        key = writer.key
        with self.lock:
            if key.run_id in self._ended:
                return
            self._live[key.run_id] = writer.resumable
            topic = self._topics.open(key)
            if topic.writer is not None:
                writer.number = max(writer.number, topic.writer.number)
                writer.epoch = max(writer.epoch, topic.writer.epoch + 1)
            # Events without a place in the log may be ahead of the clock.
            writer.epoch = max(writer.epoch, topic.position[0])
            self._take_turn(topic, writer)
            topic.writer = self._writers[key.run_id] = writer

    def _take_turn(self, topic: Topic, writer: Writer) -> None:
        """Note that a writer is about to write a thread."""

    def run_released(self, run_id: str, attempt: int | None = None) -> None:
        """Note that this process no longer executes the run, which may continue elsewhere.

        Args:
            attempt: The attempt that is over. A later one that this process has claimed goes on.
        """

    def is_live(self, run_id: str) -> bool:
        """Return whether this process knows that the run has not ended."""
        return run_id in self._live

    def ended_here(self, run_id: str) -> bool:
        """Return whether this process has recently announced the run's end."""
        return run_id in self._ended

    def follows(self, run_id: str) -> bool:
        """Return whether this process has a follower of the run."""
        return bool(self._topics.of_run(run_id))

    def is_resumable(self, run_id: str) -> bool:
        """Return whether a live run keeps its stream."""
        return self._live.get(run_id, False)

    def end(self, conn: Connection, key: StreamKey, *, resumable: bool) -> None:
        """Announce a run's end with the commit of `conn`, and store it in the same transaction."""
        with self.lock:
            topic = self._topics.find(key.topic)
            writer = None if topic is None else topic.writer
            is_own = writer is not None and writer.key.run_id == key.run_id
            if not self.logs(resumable=resumable) or (writer is not None and not is_own):
                # The writer of another run places the end among its own events.
                conn.after_commit(partial(self.run_ended, key, resumable=resumable))
                return
            end = Event((0, 0), key.run_id, CONTROL, DONE, resumable, at=milliseconds())
            if writer is not None:
                writer.is_ending = True
                segments = writer.cut()
                end = end._replace(order=(writer.epoch, writer.number + 1), attempt=writer.attempt)
        if writer is None:
            self._place(conn, key.thread, [end])
            conn.after_commit(partial(self._note_end, key))
            return
        log.lock(conn, UUID(key.thread_id))
        log.store(conn, [*segments, Segment(key.thread, [end])])
        conn.after_commit(partial(self._ended_by_writer, writer, segments, end))

    def _ended_by_writer(self, writer: Writer, segments: list[Segment], end: Event) -> None:
        with self.lock:
            self._send(self._topics.open(writer.key), writer, end)
        self._stored(writer, segments)
        self._note_end(writer.key)

    def run_ended(self, key: StreamKey, *, resumable: bool) -> None:
        """Announce a run's end, unless that is done. Call it after the commit of its status."""
        if not self.ended_here(key.run_id):
            self.publish(key, CONTROL, DONE, resumable=resumable)
        self._note_end(key)

    def _note_end(self, key: StreamKey) -> None:
        run_id = key.run_id
        with self.lock:
            self._ended[run_id] = None
            while len(self._ended) > MAX_REMEMBERED:
                self._ended.popitem(last=False)
            self._live.pop(run_id, None)
            self._controls.pop(run_id, None)
            self._close_writer(key)

    def _close_writer(self, key: StreamKey) -> None:
        """Let another process or run write the thread. Events that are not stored are kept."""
        self._writers.pop(key.run_id, None)
        topic = self._topics.find(key.topic)
        if topic is not None:
            if topic.writer is not None and topic.writer.key.run_id == key.run_id:
                topic.writer = None
            self._topics.forget(topic)

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
        with self.lock:
            listener = self._listeners.get(run_id)
            if listener is None:
                self._controls[run_id] = control
                while len(self._controls) > MAX_REMEMBERED:
                    self._controls.popitem(last=False)
        if listener is not None:
            listener(control)

    def listen(self, run_id: str, listener: Callable[[Control], None]) -> Callable[[], None]:
        """Receive a run's control messages, also an early one. Return a function that stops it."""
        with self.lock:
            self._listeners[run_id] = listener
            early = self._controls.pop(run_id, None)
        if early is not None:
            listener(early)
        return lambda: self._stop_listening(run_id, listener)

    def _stop_listening(self, run_id: str, listener: Callable[[Control], None]) -> None:
        with self.lock:
            if self._listeners.get(run_id) is listener:
                del self._listeners[run_id]

    # --- upkeep

    def release_others(self, executed: Collection[str]) -> None:
        """Release the runs that other processes execute now. Concurrent claims are not allowed.

        Without other processes there are none.

        Args:
            executed: The ids of the runs that this process executes.
        """


def milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
