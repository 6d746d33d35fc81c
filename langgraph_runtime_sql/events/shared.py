"""SharedBus: the bus of several processes on one Postgres database.

Followers in this process get its events directly. Those in other processes read the log when the
wire says that it has grown. With Redis, events also travel on the wire itself: a follower that gets
the next number need not read the log. Without any wire, followers look at the log regularly.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Text, bindparam, select

from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import database_settings
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events import log, wire
from langgraph_runtime_sql.events.bus import Control, LocalBus, milliseconds
from langgraph_runtime_sql.events.event import START, Event, Order
from langgraph_runtime_sql.events.postgres_wire import PostgresWire
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.events.topic import Topic
from langgraph_runtime_sql.events.wire import EventWire, Message
from langgraph_runtime_sql.events.writer import Writer
from langgraph_runtime_sql.request_context import own_write
from langgraph_runtime_sql.tenancy import scope

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How often followers look at the log and the database, with and without messages.
WELL_RECHECK_SECONDS = 5.0
AWAY_RECHECK_SECONDS = 1.0
# How much older than a subscription its first event may be, because clocks differ.
BEFORE = timedelta(seconds=2)
# Events of the wire that wait for earlier ones from the log.
MAX_EARLY = 1_000
# For how many milliseconds an event of the wire is kept. By then it is stored, or never.
FAST_MS = 60_000
# Threads that one transaction reads.
PULLED = 50
PAUSE_SECONDS = 0.5

_KEY = "wire_key"
_FIND_KEY = Prepared(select(database_settings.c.value).where(database_settings.c.name == _KEY))
_NEW_KEY = Prepared(
    InsertNew(database_settings).values(name=_KEY, value=bindparam("secret", type_=Text))
)


def signing_key(conn: Connection) -> bytes:
    """Return the key with which the processes of this database sign messages."""
    conn.execute(_NEW_KEY, {"secret": secrets.token_hex(32)})
    return bytes.fromhex(conn.scalar(_FIND_KEY))


class SharedBus(LocalBus):
    """The bus of one of several processes.

    Args:
        database: Where the log is.
        name: The unique name of this process, under which it claims runs.
        dsn: The connection string of the database.
        redis: Makes the wire over Redis, if there is one, from this bus and the signing key.
    """

    shared = True

    def __init__(
        self,
        database: Database,
        name: str,
        dsn: str,
        redis: "Callable[[SharedBus, bytes], EventWire] | None" = None,
    ) -> None:
        super().__init__(database, name)
        self._postgres = PostgresWire(dsn, self.name, self.receive, self.look_again)
        self._make_redis = redis
        self._redis: EventWire | None = None
        self._outdated: set[str] = set()
        self._pull_due = asyncio.Event()
        # By topic: events that came too early, and those that were delivered before they were stored.
        self._early: dict[str, deque[tuple[int, Event]]] = {}
        self._fast: dict[str, deque[Event]] = {}
        self._working: set[asyncio.Future[None]] = set()

    async def start(self) -> None:
        """Start to store events, and connect to the other processes.

        Raises:
            BadRedis: this Redis can never work.
        """
        if self._make_redis is not None:
            key = await self._database.write(signing_key)
            self._redis = self._make_redis(self, key)
            await self._redis.look()
        await super().start()
        self._tasks += [
            asyncio.create_task(self._pull_all(), name="log-reader"),
            asyncio.create_task(self._recheck(), name="log-recheck"),
        ]
        for each in (self._postgres, self._redis):
            self._tasks += [asyncio.create_task(loop) for loop in (each.loops() if each else ())]

    async def stop(self) -> None:
        await super().stop()
        if self._redis is not None:
            await self._redis.close()

    def health(self) -> dict[str, str]:
        """Return the state of Redis: `ok`, `away` or `refusing`."""
        return {} if self._redis is None else {"redis": self._redis.state}

    @property
    def recheck_seconds(self) -> float:
        return WELL_RECHECK_SECONDS if self._is_well else AWAY_RECHECK_SECONDS

    @property
    def _is_well(self) -> bool:
        return self._postgres.well or (self._redis is not None and self._redis.well)

    def logs(self, *, resumable: bool) -> bool:
        """Return True: followers in other processes read all events in the log."""
        return True

    # --- messages

    def _tell(self, message: Message) -> None:
        """Send a message to the other processes, from any thread."""
        self._on_loop(self._send_message, message)

    def _send_message(self, message: Message) -> None:
        self._postgres.send(message)
        if self._redis is not None:
            self._redis.send(message)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def receive(self, message: Message) -> None:
        """Handle a message of another process. It may be repeated, late, or of a newer version."""
        kind, *args = message
        if kind == wire.WAKE:
            super().wake()
        elif kind == wire.CONTROL and len(args) == 3 and args[1] in ("interrupt", "rollback"):
            if str(args[0]) in self._listeners:
                super().send_control(str(args[0]), Control(str(args[1]), args[2]))
        elif kind == wire.DROP and len(args) == 2:
            self._drop_topic(str(args[0]), str(args[1]))
        elif kind == wire.LOG and len(args) == 1:
            self._look_at(str(args[0]))

    def look_again(self) -> None:
        """Look at all that a lost message may have told."""
        super().wake()
        with self.lock:
            self._outdated.update(each.key.topic for each in self._topics.followed())
        self._pull_due.set()

    def wake(self) -> None:
        super().wake()
        self._tell(wire.wake())

    def send_control(self, run_id: str, control: Control) -> None:
        """Ask a run's worker in any process to stop."""
        is_ours = run_id in self._listeners
        super().send_control(run_id, control)
        if not is_ours:
            self._tell(wire.control(run_id, control))

    def drop(self, key: StreamKey) -> None:
        """End the streams of a deleted run or thread in every process."""
        super().drop(key)
        self._tell(wire.drop(key.topic, key.run_id))

    def _drop_topic(self, topic: str, run_id: str) -> None:
        with self.lock:
            found = self._topics.find(topic)
        if found is not None:
            self._drop(found.key._replace(run_id=run_id))

    # --- publishing

    def _send(self, topic: Topic, writer: Writer, event: Event) -> None:
        super()._send(topic, writer, event)
        if self._redis is not None:
            self._on_loop(self._redis.send_event, topic.key.topic, writer.base[1], event)

    def _noticed(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._tell(wire.stored(topic))

    def _deliver_placed(self, topic: Topic, event: Event) -> None:
        # Numbers have no gap. Events of another process that have not arrived yet come first.
        if event.order[1] == topic.position[1] + 1:
            topic.deliver(event)
        else:
            self._on_loop(self._look_at, topic.key.topic)

    def _thread_is_gone(self, key: StreamKey, events: list[Event]) -> None:
        for each in events:
            if each.is_end:
                self._tell(wire.drop(key.topic, each.run_id))

    def _must_wait(self, key: StreamKey, events: list[Event]) -> None:
        # The writer may be in this process.
        self._on_loop(self._look_at, key.topic)
        self._noticed([key.topic])

    # --- following

    async def follow_run(
        self, key: StreamKey, after: Order | None = None, *, whole_since: object = None
    ) -> Subscription:
        return await self._follow(Subscription(self, key, after, whole_since=whole_since))

    async def follow_thread(
        self, key: StreamKey, after: Order | None = None, asked_at: int | None = None
    ) -> Subscription:
        if after is not None or asked_at is None:
            return await self._follow(Subscription(self, key, after))
        since = datetime.fromtimestamp(asked_at / 1000, UTC) - BEFORE
        thread_id = UUID(key.thread_id)
        before = await self._read(lambda conn: log.before(conn, thread_id, since))
        published_after = int(since.timestamp() * 1000)
        return await self._follow(Subscription(self, key, before, published_after=published_after))

    async def _follow(self, subscription: Subscription) -> Subscription:
        """Add a subscription from the position that the log has now."""
        topic = subscription.topic
        if self._redis is not None:
            await self._redis.follow(topic)
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
        self._look_at(topic)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        super().unsubscribe(subscription)
        if self._redis is not None and not self._is_followed(subscription.topic):
            self._on_loop(self._unfollow, subscription.topic)

    def _is_followed(self, topic: str) -> bool:
        with self.lock:
            found = self._topics.find(topic)
            return found is not None and bool(found.subscriptions)

    def _unfollow(self, topic: str) -> None:
        if self._redis is not None and not self._is_followed(topic):
            self._early.pop(topic, None)
            self._fast.pop(topic, None)
            self._background(self._redis.unfollow(topic))

    def run_created(self, key: StreamKey, *, resumable: bool) -> None:
        super().run_created(key, resumable=resumable)
        if self._redis is not None and self.follows(key.run_id):
            self._on_loop(self._follow_topic, key.topic)

    def _follow_topic(self, topic: str) -> None:
        if self._redis is not None:
            self._background(self._redis.follow(topic))
        self._look_at(topic)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    # --- the log

    def _look_at(self, topic: str) -> None:
        """Read the log of a thread soon, if it is followed or written here."""
        with self.lock:
            found = self._topics.find(topic)
        if found is not None:
            self._outdated.add(topic)
            self._pull_due.set()

    async def refresh(self, subscription: Subscription) -> None:
        """Deliver what other processes have stored on the thread."""
        with self.lock:
            topic = self._topics.find(subscription.topic)
            if topic is not None and topic.writer is not None:
                # The followers of a writer do not read the log. This one may be superseded.
                subscription.fall_behind()
                return
        if topic is not None:
            await self._pull([topic])

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(self.recheck_seconds)
            with self.lock:
                self._outdated.update(each.key.topic for each in self._topics.followed())
            self._pull_due.set()

    async def _pull_all(self) -> None:
        with outage.waited_for():
            await self._pull_due_topics()

    async def _pull_due_topics(self) -> None:
        while True:
            await self._pull_due.wait()
            self._pull_due.clear()
            names, self._outdated = list(self._outdated), set()
            try:
                for start in range(0, len(names), PULLED):
                    with self.lock:
                        found = map(self._topics.find, names[start : start + PULLED])
                        topics = [each for each in found if each is not None]
                    await self._pull(topics)
            except RuntimeSqlError as error:
                logger.info("Reading the event log failed: %s", error)
                self._outdated.update(names)
                await asyncio.sleep(PAUSE_SECONDS)
                self._pull_due.set()

    async def _pull(self, topics: list[Topic]) -> None:
        """Read the log of threads after their positions, and deliver the events."""
        for topic in topics:
            if topic.writer is not None:
                await self._place_waiting(topic)
        wanted = [each for each in topics if each.writer is None and each.subscriptions]
        while wanted:
            asked = [(each, each.position) for each in wanted]

            def fn(conn: Connection, asked: list[tuple[Topic, Order]] = asked) -> list[log.Page]:
                return [log.read(conn, topic.key, position) for topic, position in asked]

            pages = await self._read(fn)
            for (topic, after), page in zip(asked, pages, strict=True):
                self._deliver(topic, after, page)
            wanted = [t for t, page in zip(wanted, pages, strict=True) if page.more]

    def _deliver(self, topic: Topic, after: Order, page: log.Page) -> None:
        with self.lock:
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

    async def _place_waiting(self, topic: Topic) -> None:
        """Take over the events that other processes have published on a thread written here."""
        thread_id = UUID(topic.key.thread_id)

        def fn(conn: Connection) -> None:
            log.lock(conn, thread_id)
            waiting = log.take_waiting(conn, thread_id)
            conn.after_commit(lambda: self._take_over(topic.key, waiting))

        with scope.within(scope.EVERYTHING), own_write("events"):
            await self._database.write(fn)

    def claimed(self, conn: Connection, key: StreamKey, run: Row) -> None:
        # Both before the first answer, for one round trip less. The lock comes before the look.
        log.lock(conn, run["thread_id"])
        found = log.prefetch_waiting(conn, run["thread_id"])
        super().claimed(conn, key, run)
        if waiting := log.taken(conn, found):
            conn.after_commit(lambda: self._take_over(key.thread, waiting))

    def end(self, conn: Connection, key: StreamKey, *, resumable: bool) -> None:
        super().end(conn, key, resumable=resumable)
        # What others stored after the writer's last look. It would wait for the thread's next run.
        if log.prefetch_waiting(conn, UUID(key.thread_id)).all():
            conn.after_commit(partial(self._on_loop, self._place_soon, key.thread))

    def _place_soon(self, thread: StreamKey) -> None:
        self._background(self._place_rest(thread))

    async def _place_rest(self, thread: StreamKey) -> None:
        """Place the events that still wait on a thread whose run has ended."""
        try:
            with scope.within(scope.EVERYTHING), own_write("events"):
                await self._database.write(lambda conn: self._place(conn, thread, []))
        except RuntimeSqlError as error:
            logger.warning("Events of a thread wait for its next run: %s", error)

    def receive_events(self, topic: str, base: int, events: list[Event]) -> None:
        """Deliver events that came over the wire, if no earlier one is missing."""
        with self.lock:
            found = self._topics.find(topic)
            if found is None or found.writer is not None or not found.subscriptions:
                return
            early = self._early.setdefault(topic, deque(maxlen=MAX_EARLY))
            early.extend((base, each) for each in events)
            is_missing = self._deliver_early(found)
        if is_missing:
            self._look_at(topic)

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
        fast = self._fast.get(key.topic, ())
        of_key = [each for each in fast if key.run_id in (THREAD, each.run_id)]
        return [*super().unstored(key), *of_key]

    async def _read(self, fn: Callable[[Connection], T]) -> T:
        with scope.within(scope.EVERYTHING):
            return await self._database.read(fn)

    # --- runs

    def _take_turn(self, topic: Topic, writer: Writer) -> None:
        if topic.position[1] != writer.number:
            # Events of the last writer have not arrived yet. The followers find them in the log.
            for each in topic.subscriptions:
                # The creator of a run that only begins can have missed nothing of it. The log of a
                # stateless run is deleted at its end.
                if not (each.by_creator and each.key == writer.key and writer.attempt == 1):
                    each.fall_behind()
        topic.position = max(topic.position, writer.base)

    def run_released(self, run_id: str, attempt: int | None = None) -> None:
        """Release the run: another process may continue it, and its end may not arrive here."""
        with self.lock:
            writer = self._writers.get(run_id)
            if attempt is None or writer is None or writer.attempt <= attempt:
                self._release(run_id)

    def release_others(self, executed: Collection[str]) -> None:
        """Release runs that were lost or handed back. Other processes announce their end."""
        with self.lock:
            for run_id in {*self._live, *self._writers}.difference(executed):
                self._release(run_id)

    def _release(self, run_id: str) -> None:
        self._live.pop(run_id, None)
        if (writer := self._writers.get(run_id)) is not None:
            self._close_writer(writer.key)
