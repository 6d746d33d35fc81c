"""The bus: order, replay without gaps or repeats, control messages, cleanup."""

import asyncio
import random
import threading

import pytest

from langgraph_runtime_sql.events import bus, subscription
from langgraph_runtime_sql.events import log as event_log
from langgraph_runtime_sql.events.bus import Control, LocalBus
from langgraph_runtime_sql.events.event import START, Event, parse_order
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.events.redis.entry import StoredEvent
from langgraph_runtime_sql.events.redis.subscription import ThreadSubscription
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.subscription import Subscription
from tests.support.streams import of_run, of_thread

WAIT_SECONDS = 60.0


@pytest.fixture
def local() -> LocalBus:
    return LocalBus(keep_seconds=60)


def _drain(subscription: Subscription) -> list[Event]:
    found = []
    while subscription.waiting():
        found.append(subscription._events.popleft())
    return found


async def test_event_numbers_increase_and_never_repeat(local: LocalBus) -> None:
    events = [local.publish(of_run("r", "t"), "values", b"{}") for _ in range(5_000)]
    orders = [event.order for event in events]
    assert orders == sorted(set(orders))
    assert len({event.id for event in events}) == len(events)


async def test_event_numbers_increase_when_the_clock_goes_back(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = local.publish(of_run("r", "t"), "values", b"")
    monkeypatch.setattr(bus.time, "time_ns", lambda: 0)
    assert local.publish(of_run("r", "t"), "values", b"").order > first.order


async def test_reader_gets_only_later_events_of_its_own_run(
    local: LocalBus,
) -> None:
    local.publish(of_run("r", "t"), "values", b"before")
    async with local.subscribe_run(of_run("r")) as reader:
        local.publish(of_run("other", "t"), "values", b"no")
        local.publish(of_run("r", "t"), "values", b"yes")
        assert [event.data for event in _drain(reader)] == [b"yes"]


async def test_reader_may_wait_before_the_run_exists(local: LocalBus) -> None:
    async with local.subscribe_run(of_run("r")) as reader:
        waiting = asyncio.ensure_future(reader.get(WAIT_SECONDS))
        await asyncio.sleep(0)
        local.publish(of_run("r", "t"), "values", b"x")
        event = await waiting
    assert event is not None
    assert event.data == b"x"


async def test_reader_returns_none_on_timeout(local: LocalBus) -> None:
    async with local.subscribe_run(of_run("r")) as reader:
        assert await reader.get(0) is None


@pytest.mark.parametrize("after", ["", "-", "-1"])
async def test_start_of_a_stream_has_several_names(local: LocalBus, after: str) -> None:
    sent = [local.publish(of_run("r", "t"), "values", b"%d" % n, resumable=True) for n in range(3)]
    async with local.subscribe_run(of_run("r"), parse_order(after)) as reader:
        assert _drain(reader) == sent


@pytest.mark.parametrize("garbage", ["abc", "1-x", "\u0661-x", "--", "1-2-3", "0x1"])
def test_invalid_event_id_is_parsed_as_none(garbage: str) -> None:
    assert parse_order(garbage) is None


def test_bare_number_sorts_before_the_first_event_of_its_millisecond() -> None:
    assert START < (5, -1) == parse_order("5") == parse_order(b"5-*") < (5, 0)


async def test_replay_joins_live_events_without_gap_or_repeat(
    local: LocalBus, rng: random.Random
) -> None:
    """Readers subscribe at random times while another thread publishes."""
    total = 3_000
    publisher = threading.Thread(
        target=lambda: [
            local.publish(of_run("r", "t"), "v", b"%d" % n, resumable=True) for n in range(total)
        ]
    )
    readers = [local.subscribe_run(of_run("r"), START)]
    publisher.start()
    while publisher.is_alive():
        readers.append(local.subscribe_run(of_run("r"), START))
        await asyncio.sleep(rng.random() / 1000)
    publisher.join()
    for reader in readers:
        assert [int(event.data) for event in _drain(reader)] == list(range(total))
        reader.close()


async def test_thread_reader_gets_events_of_all_its_runs(local: LocalBus) -> None:
    old = local.publish(of_run("r1", "t"), "values", b"1", resumable=True)
    state = local.publish_state(of_thread("t"), "state_update", b"2")
    async with local.subscribe_thread(of_thread("t"), START) as reader:
        new = local.publish(of_run("r2", "t"), "values", b"3")
        local.publish(of_run("r3", "elsewhere"), "values", b"4")
        assert [event.order for event in _drain(reader)] == [old.order, state.order, new.order]


async def test_publishing_from_another_thread_wakes_the_reader(local: LocalBus) -> None:
    async with local.subscribe_run(of_run("r")) as reader:
        waiting = asyncio.ensure_future(reader.get(WAIT_SECONDS))
        await asyncio.sleep(0)
        await asyncio.to_thread(local.publish, of_run("r"), "values", b"x")
        assert (await waiting) is not None


async def test_control_message_waits_for_its_worker(local: LocalBus) -> None:
    received: list[Control] = []
    local.send_control("r", Control("interrupt", "early"))
    forget = local.listen("r", received.append)
    local.send_control("r", Control("rollback", None))
    forget()
    local.send_control("r", Control("interrupt", "late"))
    assert received == [Control("interrupt", "early"), Control("rollback", None)]


async def test_undelivered_control_messages_are_bounded(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "MAX_REMEMBERED", 3)
    for number in range(10):
        local.send_control(str(number), Control("interrupt", None))
    received: list[Control] = []
    for number in range(10):
        local.listen(str(number), received.append)
    assert len(received) == 3


async def test_ended_run_sends_its_end_once_and_is_no_longer_live(local: LocalBus) -> None:
    local.run_started(of_run("r"), resumable=True)
    assert local.is_live("r")
    assert local.is_resumable("r")
    async with local.subscribe_run(of_run("r")) as reader:
        local.run_ended(of_run("r", "t"), resumable=True)
        assert [event.is_end for event in _drain(reader)] == [True]
    assert not local.is_live("r")
    assert not local.is_resumable("r")


async def test_expiry_removes_ended_streams_and_keeps_live_ones() -> None:
    local = LocalBus(keep_seconds=-1)
    for run in ("ended", "live"):
        local.publish(of_run(run, "t"), "values", b"x", resumable=True)
    local.publish_state(of_thread("t"), "state_update", b"")
    local.run_ended(of_run("ended", "t"), resumable=True)
    local.expire()
    async with local.subscribe_thread(of_thread("t"), START) as reader:
        assert [event.run_id for event in _drain(reader)] == ["live"]


async def test_event_log_is_bounded(local: LocalBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "LOG_BYTES", 100)
    sent = [local.publish(of_run("r", "t"), "v", b"x" * 10, resumable=True) for _ in range(50)]
    async with local.subscribe_thread(of_thread("t"), START) as reader:
        assert _drain(reader) == sent[-10:]


async def test_resuming_after_an_expired_event_reports_a_gap(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "LOG_BYTES", 100)
    sent = [local.publish(of_run("r", "t"), "v", b"x" * 10, resumable=True) for _ in range(50)]
    seen, last_gone, next_gone = sent[0].order, sent[39].order, sent[38].order
    for after, whole in ((seen, False), (next_gone, False), (last_gone, True)):
        for reader in (
            local.subscribe_run(of_run("r"), after),
            local.subscribe_thread(of_thread("t"), after),
        ):
            first, *rest = _drain(reader)
            assert first.is_loss is reader.broken is not whole
            assert rest == sent[41 if whole else 40 :]
    # A reader that was subscribed before still has all events.
    early = local.subscribe_run(of_run("q"))
    also = [local.publish(of_run("q", "t"), "v", b"x" * 10, resumable=True) for _ in range(50)]
    assert _drain(local.subscribe_run(of_run("q"), also[0].order, early)) == also[1:]


@pytest.mark.parametrize("end", [False, True])
async def test_reader_that_does_not_read_loses_waiting_events_and_learns_of_it(
    monkeypatch: pytest.MonkeyPatch, end: bool
) -> None:
    monkeypatch.setattr(subscription, "WAITING_BYTES", 10_000)
    for here in (LocalBus(keep_seconds=60), RedisBus("redis://127.0.0.1:1/0")):
        slow, reads = here.subscribe_run(of_run("r")), here.subscribe_run(of_run("r"))
        thread = here.subscribe_thread(of_thread("t"))
        sent = []
        for number in range(100):
            sent.append(here.publish(of_run("r", "t"), "values", b"%d" % number + b"x" * 100))
            assert await reads.get(0) == sent[-1]
            assert sum(event.size for event in slow.waiting()) <= 10_000
        if end:
            here.run_ended(of_run("r", "t"), resumable=False)
            here.run_ended(of_run("r", "t"), resumable=False)
        assert not reads.broken
        for reader in (slow, thread):
            found = _drain(reader)
            assert reader.broken
            assert found[0].is_loss
            assert [event.is_end for event in found[1:]] == [True] * end
        # A reader that continues from this one learns of the loss, too.
        begun = here.subscribe_run(of_run("r"), START, slow)
        assert begun.broken
        assert _drain(begun)[0].is_loss


async def test_single_event_may_exceed_the_waiting_limit(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "WAITING_BYTES", 100)
    async with local.subscribe_run(of_run("r")) as reader:
        for _ in range(3):
            sent = local.publish(of_run("r", "t"), "values", b"x" * 1_000)
            assert await reader.get(0) == sent
        assert not reader.broken


async def test_reading_a_run_whose_beginning_is_lost_reports_a_gap(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "LOG_BYTES", 1_000)
    sent = [local.publish(of_run("r", "t"), "v", b"x" * 100, resumable=True) for _ in range(50)]
    async with local.subscribe_run(of_run("r"), START) as reader:
        first, *rest = _drain(reader)
        assert first.is_loss
        assert rest == sent[-10:]
    # A thread has no fixed start: the logs of its runs expire.
    async with local.subscribe_thread(of_thread("t"), START) as reader:
        assert _drain(reader) == sent[-10:]


async def test_replayed_events_may_exceed_the_waiting_limit(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "WAITING_BYTES", 1_000)
    sent = [local.publish(of_run("r", "t"), "v", b"x" * 100, resumable=True) for _ in range(50)]
    async with local.subscribe_run(of_run("r"), START) as reader:
        sent.append(local.publish(of_run("r", "t"), "v", b"x", resumable=True))
        assert _drain(reader) == sent


async def test_eviction_frees_room_for_several_entries(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "ALL_LOGS_BYTES", 1_000)
    for number in range(100):
        run = str(number)
        local.publish(of_run(run, "t"), "v", b"x" * 10, resumable=True)
        local.run_ended(of_run(run, "t"), resumable=True)
        assert local._logs.size <= 1_000
    assert local._logs.size > 900 - 2 * 14


async def test_total_size_of_all_logs_is_bounded(
    local: LocalBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "ALL_LOGS_BYTES", 100)
    for run in ("first", "second", "third"):
        local.publish(of_run(run, "t"), "v", b"x" * 40, resumable=True)
        local.run_ended(of_run(run, "t"), resumable=True)
    async with local.subscribe_thread(of_thread("t"), START) as reader:
        assert {event.run_id for event in _drain(reader)} == {"second", "third"}


async def test_closed_readers_leave_nothing_behind(local: LocalBus) -> None:
    for number in range(100):
        async with (
            local.subscribe_run(of_run(str(number))),
            local.subscribe_thread(of_thread(str(number))),
        ):
            pass
    assert not local._by_run
    assert not local._by_thread


async def test_run_released_to_other_processes_is_not_live_on_redis() -> None:
    """Another process may end the run, so readers ask the database for its end."""
    here = RedisBus("redis://127.0.0.1:1/0")
    here.run_started(of_run("r"), resumable=True)
    assert here.is_live("r")
    here.run_released("r")
    assert not here.is_live("r")


async def test_run_stays_live_between_attempts_on_the_local_bus(
    local: LocalBus,
) -> None:
    local.run_started(of_run("r"), resumable=True)
    local.run_released("r")
    assert local.is_live("r")


def _thread_event(number: int) -> Event:
    return Event((number, 0), "r", "values", b"%d" % number, True)


async def test_thread_reader_breaks_when_an_earlier_event_arrives_late() -> None:
    """A client that resumes after the later event would miss the earlier one."""
    reader = ThreadSubscription(lambda _: None)
    for number in (1, 3, 4):
        reader.push(_thread_event(number))
    assert [event.data for event in reader.waiting()] == [b"1", b"3", b"4"]
    reader.push(_thread_event(2))
    assert reader.broken
    assert reader.waiting()[-1].is_loss


async def test_republished_events_are_sorted_before_delivery() -> None:
    reader = ThreadSubscription(lambda _: None)
    reader.push(_thread_event(1))
    reader.hold(WAIT_SECONDS)
    for number in (4, 2, 3):
        reader.push(_thread_event(number))
    assert reader.holds
    assert [event.data for event in reader.waiting()] == [b"1"]
    reader._release()
    assert not reader.holds
    assert [event.data for event in reader.waiting()] == [b"1", b"2", b"3", b"4"]
    assert not reader.broken
    reader.close()


async def test_resumed_thread_reader_joins_kept_and_new_events() -> None:
    reader = ThreadSubscription(lambda _: None)
    reader.hold_until_resumed()
    for number in (4, 5):
        reader.push(_thread_event(number))
    kept = [
        StoredEvent((number, 0), (number, 0), _thread_event(number), number == 1)
        for number in (2, 1, 3)
    ]
    reader.resume((1, 0), kept, (3, 0))
    assert [event.data for event in reader.waiting()] == [b"2", b"3", b"4", b"5"]
    for number in (3, 6):
        reader.push(_thread_event(number))
    assert [event.data for event in reader.waiting()][4:] == [b"6"]
    assert not reader.broken


STRANGERS = [
    StreamKey("other", "t", "r"),
    StreamKey(None, "t", "r"),
    StreamKey("mine", "other", "r"),
    StreamKey("mine", "t", "other"),
]


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
async def test_an_event_reaches_nobody_but_followers_of_its_tenant_thread_and_run(
    local: LocalBus, stranger: StreamKey
) -> None:
    key = StreamKey("mine", "t", "r")
    live = local.subscribe_run(stranger)
    sent = local.publish(key, "values", b"1", resumable=True)
    assert live.waiting() == []
    assert local.subscribe_run(stranger, START).waiting() == []
    if stranger.topic != key.topic:
        assert local.subscribe_thread(stranger.thread, START).waiting() == []
    assert local.subscribe_run(key, START).waiting() == [sent]
    assert local.subscribe_thread(key.thread, START).waiting() == [sent]


@pytest.mark.parametrize("whole", [True, False], ids=["thread", "run"])
async def test_what_was_deleted_is_forgotten_and_its_followers_hear_nothing_more(
    local: LocalBus, whole: bool
) -> None:
    gone, other = of_run("gone"), of_run("other")
    for key in (gone, other):
        local.publish(key, "values", b"1", resumable=True)
    run, thread = local.subscribe_run(gone, START), local.subscribe_thread(gone.thread, START)
    stays = local.subscribe_run(of_run("gone", "elsewhere"))
    waiting = asyncio.ensure_future(local.subscribe_run(gone).get())
    await asyncio.sleep(0)
    await asyncio.to_thread(local.drop, gone.thread if whole else gone)
    assert await waiting is None
    # What came before is read first.
    assert [await run.get() is None for _ in range(2)] == [False, True]
    assert (thread.dropped, stays.dropped) == (whole, False)
    assert local.subscribe_run(gone, START).waiting() == []
    assert len(local.subscribe_run(other, START).waiting()) == (0 if whole else 1)
    assert local._logs.size == (0 if whole else 1)


async def test_who_follows_a_run_before_it_is_made_is_its_maker(local: LocalBus) -> None:
    before = local.subscribe_run(of_run("r", "r"))
    local.run_created(StreamKey("mine", "t", "r"), resumable=False)
    after = local.subscribe_run(of_run("r"))
    assert (before.by_creator, after.by_creator) == (True, False)
    # Its thread and tenant were not known before.
    sent = local.publish(StreamKey("mine", "t", "r"), "values", b"1")
    assert before.waiting() == [sent]
    assert after.waiting() == []
