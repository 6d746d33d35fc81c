"""Publisher: gives events of this process to their followers, and stores them in the log.

A follower gets an event at once. Events of resumable streams, and with other processes all events,
are also stored: by the next commit of their run or some milliseconds later.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from uuid import UUID

from langgraph_runtime_sql.clock import milliseconds
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events import log, wire
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.segment import SEGMENT_EVENTS, Segment
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.topic import Topic, Topics
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.events.writer import Writer
from langgraph_runtime_sql.request_context import own_write
from langgraph_runtime_sql.tenancy import scope

logger = logging.getLogger(__name__)

# How long events wait to be stored together.
FLUSH_SECONDS = 0.03
# How long a stop waits for the last events to be stored.
STOP_SECONDS = 2.0
# The delay after a database error.
PAUSE_SECONDS = 0.5


class Publisher:
    """The events that this process publishes.

    Args:
        database: Where the log is.
        name: The unique name of this process, under which it claims runs.
        topics: The followers and writers in this process.
        wires: The wires to other processes.
    """

    def __init__(self, database: Database, name: str, topics: Topics, wires: Wires) -> None:
        self._database, self._name = database, name
        self._topics, self._wires = topics, wires
        # Writers with events that are not stored, also those that are closed.
        self._unstored: list[Writer] = []
        # Events of threads without a writer here.
        self._others: list[tuple[StreamKey, Event]] = []
        self._due, self._full = asyncio.Event(), asyncio.Event()
        self._is_due = False
        self._flushing = asyncio.Lock()

    def logs(self, *, resumable: bool) -> bool:
        """Return whether the events of a stream are stored: other processes read all of them."""
        return resumable or self._wires.shared

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
        with self._topics.lock:
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
            self.send(topic, writer, event)
            if not self.logs(resumable=resumable):
                return 0
            waiting = writer.add(event)
            if writer not in self._unstored:
                self._unstored.append(writer)
            if not self._is_due or waiting == SEGMENT_EVENTS:
                self._flush_soon(now=waiting == SEGMENT_EVENTS)
            return waiting

    def send(self, topic: Topic, writer: Writer, event: Event) -> None:
        """Deliver an event of a writer in every process, with the lock held."""
        topic.deliver(event)
        self._wires.send_event(topic.key.topic, writer.base[1], event)

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

    def take_over(self, key: StreamKey, events: Iterable[Event]) -> None:
        """Publish events again that waited for a place among those of the thread's writer."""
        for each in events:
            self.publish(
                key._replace(run_id=each.run_id), each.name, each.data, resumable=each.resumable
            )

    # --- storing

    def unstored(self, key: StreamKey) -> list[Event]:
        """Return the events of a run or thread that may not be stored yet, with the lock held."""
        writers = [each for each in self._unstored if each.key.topic == key.topic]
        found = [event for writer in writers for event in writer.unstored()]
        of_thread = key == key.thread
        return found if of_thread else [each for each in found if each.run_id == key.run_id]

    def store(self, conn: Connection, writer: Writer, segments: list[Segment]) -> None:
        """Store segments of a writer in a transaction that holds its claim."""
        log.store(conn, segments)
        conn.after_commit(partial(self.stored, writer, segments))

    def stored(self, writer: Writer, segments: list[Segment]) -> None:
        """Forget committed segments of a writer."""
        with self._topics.lock:
            writer.stored(segments)
            if writer.is_stored and writer in self._unstored:
                self._unstored = [each for each in self._unstored if each is not writer]
        self._wires.tell(wire.stored(writer.key.topic))

    def _flush_soon(self, *, now: bool) -> None:
        self._is_due = True
        self._wires.soon(self._set_due, now)

    def _set_due(self, now: bool) -> None:
        self._due.set()
        if now:
            self._full.set()

    async def run(self) -> None:
        """Store events until cancelled."""
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

    async def flush_in_time(self) -> None:
        """Try for a short time to store all published events."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.flush()
        except (RuntimeSqlError, TimeoutError) as error:
            logger.warning("The last events were not stored: %r", error)

    async def flush(self) -> None:
        """Wait until all published events are stored.

        Raises:
            RuntimeSqlError: the database did not store them. They are stored later.
        """
        loop = self._wires.loop
        if loop is not None and loop is not asyncio.get_running_loop():
            # A worker on a loop of its own. The lock belongs to the bus's loop.
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._flush_now(), loop))
            return
        await self._flush_now()

    async def _flush_now(self) -> None:
        if self._flushing.locked() and not self._database.outage.is_waited_for():
            # The flush that holds the lock may wait for the end of an outage.
            self._database.outage.refuse()
        async with self._flushing:
            self._due.clear()
            self._full.clear()
            with self._topics.lock:
                self._is_due = False
                writers, others = list(self._unstored), self._others
                self._others = []
            if not (writers or others):
                return
            try:
                with scope.within(scope.EVERYTHING), own_write("events"):
                    await self._database.write(partial(self._flush, writers, others))
            except BaseException:
                with self._topics.lock:
                    self._others = others + self._others
                raise

    def _flush(
        self, writers: list[Writer], others: list[tuple[StreamKey, Event]], conn: Connection
    ) -> None:
        writers = sorted(writers, key=lambda each: each.key.run_id)
        asked = [log.ask_held(conn, w.key.run_id, w.attempt, self._name) for w in writers]
        groups: dict[StreamKey, list[Event]] = {}
        for writer, held in zip(writers, asked, strict=True):
            with self._topics.lock:
                segments = writer.cut()
            if held.one() is not None:
                self.store(conn, writer, segments)
            else:
                # Superseded, or the run was deleted: of its stream only the end remains.
                conn.after_commit(partial(self.stored, writer, segments))
                thread = writer.key.thread
                ends = [e for each in segments for e in each.events if e.is_end or not e.attempt]
                if ends and log.close(conn, thread, ends):
                    conn.after_commit(partial(self._wires.tell, wire.stored(thread.topic)))
                elif ends:
                    groups.setdefault(thread, []).extend(ends)
        for key, event in others:
            groups.setdefault(key.thread, []).append(event)
        for thread, events in groups.items():
            self.place(conn, thread, events)

    # --- events without a writer

    def place(self, conn: Connection, key: StreamKey, events: list[Event]) -> None:
        """Store events of a thread that has no writer here, then deliver them."""
        placed = log.place(conn, key, events, shared=self._wires.shared)

        def deliver() -> None:
            with self._topics.lock:
                topic = self._topics.find(key.topic)
                for event in placed.events if topic is not None else ():
                    if topic is not None and event.order > topic.position:
                        self._deliver_placed(topic, event)
                if topic is not None and placed.is_gone:
                    for event in events:
                        self._deliver_unstored(topic, event)
            if placed.is_gone:
                for each in events:
                    if each.is_end:
                        self._wires.tell(wire.drop(key.topic, each.run_id))
            elif placed.waits:
                self._must_wait(key, events)
            else:
                self._wires.tell(wire.stored(key.topic))

        conn.after_commit(deliver)

    def _deliver_placed(self, topic: Topic, event: Event) -> None:
        """Deliver an event that has just got its place in the log, with the lock held."""
        if self._wires.shared and event.order[1] != topic.position[1] + 1:
            # Numbers have no gap. Events of another process that have not arrived yet come first.
            self._wires.soon(self._topics.look_at, topic.key.topic)
        else:
            topic.deliver(event)

    def _must_wait(self, key: StreamKey, events: list[Event]) -> None:
        """Let the writer, which has begun meanwhile, place events of others."""
        if self._wires.shared:
            # The writer may be in this process.
            self._wires.soon(self._topics.look_at, key.topic)
            self._wires.tell(wire.stored(key.topic))
            return
        with self._topics.lock:
            topic = self._topics.find(key.topic)
            if topic is None or topic.writer is None:
                # A run without a worker, which is recovered soon.
                self._others += [(key._replace(run_id=each.run_id), each) for each in events]
                self._flush_soon(now=False)
                return
        self.take_over(key, events)

    async def place_waiting(self, key: StreamKey) -> None:
        """Take over the events that other processes have published on a thread written here."""
        thread_id = UUID(key.thread_id)

        def fn(conn: Connection) -> None:
            log.lock(conn, thread_id)
            waiting = log.take_waiting(conn, thread_id)
            conn.after_commit(lambda: self.take_over(key, waiting))

        with scope.within(scope.EVERYTHING), own_write("events"):
            await self._database.write(fn)

    async def place_rest(self, thread: StreamKey) -> None:
        """Place the events that still wait on a thread whose run has ended."""
        try:
            with scope.within(scope.EVERYTHING), own_write("events"):
                await self._database.write(lambda conn: self.place(conn, thread, []))
        except RuntimeSqlError as error:
            logger.warning("Events of a thread wait for its next run: %s", error)
