"""A subscription reads the log and then live events: none is missing, none comes twice."""

import asyncio
import random
import threading
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraph_runtime_sql.database.outage import Outage
from langgraph_runtime_sql.events import subscription as module
from langgraph_runtime_sql.events.event import CONTROL, DONE, START, Event, Order
from langgraph_runtime_sql.events.log import Page
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from tests.support.streams import of_run, of_thread

RUN, OTHER = "run", "other"
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


class Source:
    """A bus: events that are published, and a part of them stored in the log.

    Attributes:
        page_size: The number of events that one read returns.
        reading: Called during each read of the log.
        dropped: Rows of deleted events.
    """

    def __init__(self, page_size: int = 4) -> None:
        self.lock = threading.Lock()
        self.outage = Outage()
        self.page_size = page_size
        self.events: list[Event] = []
        self.log: list[Event] = []
        self.reads = 0
        self.reading: Any = lambda: None
        self.dropped: list[dict[str, object]] = []
        self.followers: list[Subscription] = []

    def follow(self, key: StreamKey, after: Order | None = None, **more: Any) -> Subscription:
        found = Subscription(self, key, after, **more)
        self.followers.append(found)
        return found

    def logs(self, *, resumable: bool) -> bool:
        return resumable

    def unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self.followers:
            self.followers.remove(subscription)

    def publish(self, count: int = 1, *, run: str = RUN, **more: Any) -> list[Event]:
        """Publish events; `store` stores them."""
        made = []
        with self.lock:
            for _ in range(count):
                number = self.events[-1].order[1] + 1 if self.events else 1
                fields = {"name": "values", "data": b"%d" % number, "resumable": True, "at": number}
                event = Event((7, number), run, **{**fields, **more})
                self.events.append(event)
                made.append(event)
                for each in self.followers:
                    if each.key.run_id in (THREAD, run):
                        each.push(event)
        return made

    def store(self) -> None:
        """Store all that is published, except what nobody can resume."""
        self.log = [each for each in self.events if each.resumable]

    def unstored(self, key: StreamKey) -> list[Event]:
        last = self.log[-1].order if self.log else START
        return [e for e in self._of(key, self.events) if e.resumable and e.order > last]

    async def read_log(self, key: StreamKey, after: Order) -> Page:
        self.reads += 1
        found = [each for each in self._of(key, self.log) if each.order > after]
        page = found[: self.page_size]
        self.reading()
        await asyncio.sleep(0)
        dropped, self.dropped = self.dropped, []
        position = page[-1].order if page else after
        return Page(page, position, dropped, len(page) == self.page_size)

    def _of(self, key: StreamKey, events: Iterable[Event]) -> Iterable[Event]:
        return (each for each in events if key.run_id in (THREAD, each.run_id))


@pytest.fixture
def source() -> Source:
    return Source()


async def rest(reader: Subscription) -> list[Event]:
    """Return the events until none comes."""
    found = []
    while (event := await reader.get(0)) is not None:
        found.append(event)
    return found


# --- catching up


async def test_live_reader_gets_only_later_events_of_its_run(source: Source) -> None:
    source.publish()
    reader = source.follow(of_run(RUN))
    source.publish(run=OTHER)
    expected = source.publish(2)
    assert await rest(reader) == expected
    assert source.reads == 0


async def test_reader_from_the_beginning_gets_pages_and_then_unstored_events(
    source: Source,
) -> None:
    source.publish(11)
    source.store()
    source.publish(3)
    reader = source.follow(of_run(RUN), START)
    assert await rest(reader) == source.events
    assert source.reads == 3
    # From now on it is live.
    later = source.publish(2)
    assert await rest(reader) == later
    assert source.reads == 3


@pytest.mark.parametrize("seen", range(9))
async def test_reader_resumes_after_any_event(source: Source, seen: int) -> None:
    source.publish(6)
    source.store()
    source.publish(3)
    after = source.events[seen].order
    assert await rest(source.follow(of_thread("t"), after)) == source.events[seen + 1 :]


async def test_events_during_a_read_come_once_and_in_order(source: Source) -> None:
    """They are published, or stored, while the log is read."""
    source.publish(5)
    source.store()
    reader = source.follow(of_run(RUN), START)

    def meanwhile() -> None:
        if source.reads < 4:
            source.publish(3)
        if source.reads % 2:
            source.store()

    source.reading = meanwhile
    assert await rest(reader) == source.events
    assert len(source.events) > 5


async def test_event_that_is_stored_by_others_during_a_read_comes(source: Source) -> None:
    """A process that begins to write a thread tells its followers that the log has more."""
    source.publish(3)
    source.store()
    reader = source.follow(of_run(RUN), START)

    def meanwhile() -> None:
        source.reading = lambda: None
        with source.lock:
            reader.fall_behind()
        # Another process has stored an event that is not delivered here.
        source.followers.remove(reader)
        source.publish(1)
        source.store()
        source.followers.append(reader)
        source.publish(1)

    source.reading = meanwhile
    assert await rest(reader) == source.events
    assert len(source.events) == 5


@settings(max_examples=60)
@given(
    page_size=st.integers(1, 3),
    stored=st.integers(0, 7),
    steps=st.lists(
        st.sampled_from(["log", "plain", "other", "store", "read", "behind", "fail"]), max_size=40
    ),
    during=st.lists(st.sampled_from(["log", "plain", "behind"]), max_size=6),
)
async def test_reader_of_the_log_gets_events_that_the_log_never_has(
    page_size: int, stored: int, steps: list[str], during: list[str]
) -> None:
    """On SQLite these are the events of runs that nobody can resume, also their ends."""
    source = Source(page_size)
    source.publish(stored)
    source.store()
    reader = source.follow(of_thread("t"), START)
    seen = []

    def do(step: str) -> None:
        if step == "behind":
            with source.lock:
                reader.fall_behind()
        elif step == "store":
            source.store()
        else:
            source.publish(2, run=OTHER if step == "other" else RUN, resumable=step == "log")

    def reading() -> None:
        if during:
            do(during.pop())

    def fail() -> None:
        source.reading = reading
        do("plain")
        raise OSError("no database")

    source.reading = reading
    for step in steps:
        if step == "read":
            if (event := await reader.get(0)) is not None:
                seen.append(event)
        elif step == "fail":
            source.reading = fail
            with suppress(OSError):
                seen += [each for each in [await reader.get(0)] if each is not None]
            source.reading = reading
        else:
            do(step)
    seen += await rest(reader)
    assert seen == source.events
    assert not reader.broken


async def test_slow_reader_continues_in_the_log_and_keeps_what_is_not_there(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 2_000)
    slow = source.follow(of_thread("t"))
    source.publish(3, resumable=False)
    source.publish(30, run=OTHER)
    source.store()
    source.publish(2, resumable=False)
    assert await rest(slow) == source.events
    assert not slow.broken


async def test_reader_that_never_reads_holds_a_limited_number_of_events(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 2_000)
    reader = source.follow(of_thread("t"), START)
    source.publish(100, resumable=False)
    end = source.publish(name=CONTROL, data=DONE, resumable=False)
    found = await rest(reader)
    assert found[0].is_loss
    assert found[-1:] == end
    assert len(found) < 10
    assert reader.broken


async def test_failed_read_loses_nothing(source: Source) -> None:
    source.publish(2)
    source.store()
    reader = source.follow(of_run(RUN), START)

    def fail() -> None:
        source.publish(1)
        source.reading = lambda: None
        raise OSError("no database")

    source.reading = fail
    with pytest.raises(OSError, match="no database"):
        await reader.get(0)
    assert await rest(reader) == source.events
    assert len(source.events) == 3


async def test_cancelled_read_loses_nothing(source: Source) -> None:
    source.publish(2)
    source.store()
    reader = source.follow(of_run(RUN), START)
    task = asyncio.create_task(reader.get())
    await asyncio.sleep(0)
    source.publish(1)
    task.cancel()
    await asyncio.wait([task])
    assert await rest(reader) == source.events


async def test_live_reader_skips_events_up_to_its_position(source: Source) -> None:
    reader = source.follow(of_run(RUN))
    reader.begin_after((7, 2))
    source.publish(4)
    assert [each.order for each in await rest(reader)] == [(7, 3), (7, 4)]


async def test_events_that_were_published_before_the_request_are_skipped(source: Source) -> None:
    source.publish(4)
    source.store()
    reader = source.follow(of_thread("t"), START, published_after=3)
    assert [each.at for each in await rest(reader)] == [3, 4]


async def test_publishing_in_another_thread_wakes_the_reader(source: Source) -> None:
    reader = source.follow(of_run(RUN))
    waiting = asyncio.create_task(reader.get(60))
    await asyncio.sleep(0)
    published = await asyncio.to_thread(source.publish)
    assert await waiting == published[0]


async def test_events_that_are_published_in_another_thread_come_once_and_in_order(
    source: Source, rng: random.Random
) -> None:
    total = 3_000

    def publish() -> None:
        for number in range(total):
            source.publish()
            if number % 7 == 0:
                with source.lock:
                    source.store()

    publisher = threading.Thread(target=publish)
    readers = [source.follow(of_run(RUN), START)]
    publisher.start()
    while publisher.is_alive():
        readers.append(source.follow(of_run(RUN), START))
        await asyncio.sleep(rng.random() / 1000)
    publisher.join()
    for reader in readers:
        assert [int(each.data) for each in await rest(reader)] == list(range(1, total + 1))


# --- slow readers


def limit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES", size)


async def test_slow_reader_continues_in_the_log_without_a_loss(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 2_000)
    slow, fast = source.follow(of_run(RUN)), source.follow(of_run(RUN))
    for _ in range(100):
        [sent] = source.publish()
        assert await fast.get(0) == sent
        assert sum(each.size for each in slow.waiting()) <= 2_000 + sent.size
        if sent.order[1] % 5 == 0:
            source.store()
    end = source.publish(name=CONTROL, data=DONE)
    assert await rest(slow) == source.events
    assert await rest(fast) == end
    assert not slow.broken


@settings(max_examples=60)
@given(
    page_size=st.integers(1, 5),
    size=st.sampled_from([300, 1_000, 10_000]),
    stored=st.integers(0, 10),
    unstored=st.integers(0, 3),
    steps=st.lists(st.sampled_from(["publish", "other", "store", "read", "behind"]), max_size=60),
)
async def test_any_reader_gets_every_event_once_and_in_order(
    page_size: int, size: int, stored: int, unstored: int, steps: list[str]
) -> None:
    source = Source(page_size)
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, size)
        source.publish(stored)
        source.store()
        source.publish(unstored)
        reader = source.follow(of_run(RUN), START)
        seen = []
        for step in steps:
            if step == "publish":
                source.publish(3)
            elif step == "other":
                source.publish(run=OTHER)
            elif step == "store":
                source.store()
            elif step == "read":
                if (event := await reader.get(0)) is not None:
                    seen.append(event)
            else:
                with source.lock:
                    reader.fall_behind()
        seen += await rest(reader)
    assert seen == [each for each in source.events if each.run_id == RUN]
    assert not reader.broken


async def test_single_event_may_exceed_the_limit(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 100)
    reader = source.follow(of_run(RUN))
    for _ in range(3):
        [sent] = source.publish(data=b"x" * 1_000)
        assert await reader.get(0) == sent
    assert source.reads == 0


async def test_slow_reader_of_events_that_are_not_stored_learns_of_its_loss_and_the_end(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 2_000)
    slow = source.follow(of_run(RUN))
    source.publish(100, resumable=False)
    end = source.publish(name=CONTROL, data=DONE, resumable=False)
    found = await rest(slow)
    assert slow.broken
    assert [each.is_loss for each in found].count(True) == 1
    assert found[0].is_loss
    assert found[-1:] == end
    assert len(found) < 50


# --- deleted events


def deleted(**more: object) -> list[dict[str, object]]:
    return [{"resumable": True, "created_at": CREATED, **more}]


async def test_deleted_events_are_a_loss_for_a_reader_that_resumes(source: Source) -> None:
    source.publish(3)
    source.store()
    source.dropped = deleted()
    reader = source.follow(of_run(RUN), (6, 1))
    first, *others = await rest(reader)
    assert first.is_loss
    assert reader.broken
    assert others == source.events


async def test_deleted_events_are_no_loss_for_a_reader_from_the_beginning(source: Source) -> None:
    """A thread has no fixed beginning: retention deletes its older events."""
    source.publish(3)
    source.store()
    source.dropped = deleted()
    reader = source.follow(of_thread("t"), START)
    assert await rest(reader) == source.events
    assert not reader.broken


@pytest.mark.parametrize(("created", "lost"), [(-1, True), (1, False)])
async def test_deleted_events_of_the_whole_run_are_a_loss(
    source: Source, created: int, lost: bool
) -> None:
    """Only if they are younger than the run."""
    source.publish(3)
    source.store()
    source.dropped = deleted()
    since = CREATED + timedelta(seconds=created)
    reader = source.follow(of_run(RUN), START, whole_since=since)
    found = await rest(reader)
    assert found[0].is_loss is reader.broken is lost
    assert found[lost:] == source.events


async def test_deleted_events_that_nobody_may_resume_are_no_loss(source: Source) -> None:
    source.dropped = deleted(resumable=False)
    reader = source.follow(of_run(RUN), (6, 1))
    assert await rest(reader) == []
    assert not reader.broken


async def test_loss_is_reported_once(source: Source) -> None:
    source.publish(9)
    source.store()
    source.dropped = deleted() * 3
    source.reading = lambda: source.dropped.extend(deleted())
    found = await rest(source.follow(of_run(RUN), (6, 1)))
    assert [each.is_loss for each in found] == [True] + [False] * 9


# --- the end


async def test_dropped_stream_ends_after_its_last_event(source: Source) -> None:
    reader = source.follow(of_run(RUN))
    waiting = asyncio.create_task(reader.get(60))
    await asyncio.sleep(0)
    reader.drop()
    assert await waiting is None
    [sent] = source.publish()
    assert await reader.get(60) == sent
    assert await reader.get(60) is None


async def test_left_reader_gets_nothing(source: Source) -> None:
    async with source.follow(of_run(RUN)) as reader:
        pass
    source.publish()
    assert reader.waiting() == []
    reader.close()
