"""Messages between processes: their form, and what is ignored."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_runtime_sql.clock import elapsed, milliseconds
from langgraph_runtime_sql.events import postgres_wire, wire
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.postgres_wire import PostgresWire
from langgraph_runtime_sql.events.redis import wire as redis_wire
from langgraph_runtime_sql.events.redis.wire import RedisWire
from langgraph_runtime_sql.events.wire import Control, Message

MESSAGES = [
    wire.wake(),
    wire.control("run", Control("interrupt", None)),
    wire.control("run", Control("rollback", "reason \u2603")),
    wire.drop("acme/thread", "*"),
    wire.stored("thread"),
]
# Not late, however long these tests take.
EVENT = Event((7, 3), "run", "values", b"{}", True, 2, milliseconds() + 3_600_000)


def test_messages_are_the_same_after_they_are_sent() -> None:
    assert wire.unpack(wire.pack("me", MESSAGES)) == ("me", MESSAGES)


def test_long_reason_of_a_cancellation_is_shortened() -> None:
    """A notification of Postgres has a limit."""
    *_, reason = wire.control("run", Control("interrupt", "x" * 100_000))
    assert reason == "x" * 1_000


@pytest.mark.parametrize(
    "foreign",
    ["", "x", "{}", "[]", "null", '["me"]', '["me", "wake"]', '["me", [[]]]', '["", [1]]'],
)
def test_message_of_another_form_is_refused(foreign: str) -> None:
    with pytest.raises(ValueError):  # of JSON or ours
        wire.unpack(foreign)


@given(st.lists(st.text(max_size=200), max_size=300))
def test_notifications_are_small_enough_for_postgres(topics: list[str]) -> None:
    messages = [wire.stored(each) for each in topics]
    payloads = postgres_wire._payloads("me", messages)
    assert all(len(each.encode()) < 8_000 for each in payloads)
    assert [m for each in payloads for m in wire.unpack(each)[1]] == messages


class Receiver:
    """What a wire delivers."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.events: list[tuple[str, int, list[Event]]] = []

    def receive_events(self, *args: Any) -> None:
        self.events.append(args)


def over_postgres(to: Receiver) -> PostgresWire:
    return PostgresWire("", "me", to.messages.append, lambda: None)


async def test_foreign_notification_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    to = Receiver()
    for foreign in ("hello", "[1, 2]", '{"a": 1}'):
        over_postgres(to)._handle(foreign)
    assert to.messages == []
    assert caplog.text.count("Ignored a foreign notification") == 3


async def test_own_messages_are_ignored() -> None:
    to = Receiver()
    over_postgres(to)._handle(wire.pack("me", MESSAGES).decode())
    assert to.messages == []
    over_postgres(to)._handle(wire.pack("other", MESSAGES).decode())
    assert to.messages == MESSAGES


def over_redis(name: str, key: bytes = b"key", prefix: str = "p") -> tuple[RedisWire, Receiver]:
    to = Receiver()
    redis = RedisWire(
        "redis://127.0.0.1:1/0",
        name,
        key,
        to.messages.append,
        to.receive_events,
        lambda: None,
        prefix=prefix,
    )
    return redis, to


class Published:
    """Records what a wire publishes instead of sending it to Redis."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.done = asyncio.Event()

    def pipeline(self, **_: Any) -> "Published":
        return self

    def publish(self, channel: str, data: bytes) -> None:
        self.sent.append((channel, data))

    async def execute(self) -> None:
        self.done.set()


async def published(
    sender: RedisWire, monkeypatch: pytest.MonkeyPatch, *, count: int = 2
) -> list[tuple[str, bytes]]:
    """Return what a wire publishes of a message and an event."""
    there = Published()
    monkeypatch.setattr(sender.link, "commands", lambda: there)
    sender.send(wire.stored("thread"))
    sender.send_event("thread", 2, EVENT)
    task = asyncio.create_task(sender._send_all())
    async with asyncio.timeout(60):
        await there.done.wait()
    task.cancel()
    await asyncio.wait([task])
    assert len(there.sent) == count
    return there.sent


async def test_signed_message_in_redis_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    sender, own = over_redis("sender")
    other, to = over_redis("other")
    for channel, data in await published(sender, monkeypatch):
        other._handle(channel, data)
        sender._handle(channel, data)
    assert to.messages == [wire.stored("thread")]
    assert to.events == [("thread", 2, [EVENT])]
    # Not to the sender itself.
    assert own.messages == []
    assert own.events == []


async def test_process_that_was_stopped_sends_none_of_its_older_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process may have taken its run over."""
    sender, _ = over_redis("sender")
    other, to = over_redis("other")
    late = EVENT.at + redis_wire.LATE_MS + 1
    monkeypatch.setattr(redis_wire, "milliseconds", lambda: late)
    [(channel, data)] = await published(sender, monkeypatch, count=1)
    other._handle(channel, data)
    assert to.messages == [wire.stored("thread")]
    assert to.events == []


async def test_forged_message_in_redis_is_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another client of Redis signs with another key, changes a byte, or repeats it elsewhere."""
    caplog.set_level(logging.WARNING)
    stranger, _ = over_redis("sender", b"another key")
    sender, _ = over_redis("sender")
    other, to = over_redis("other")
    forged = await published(stranger, monkeypatch)
    [(all_, message), (events, said)] = await published(sender, monkeypatch)
    forged += [(all_, b""), (all_, b"x" * 16), (all_, message[16:])]
    forged += [(all_, message[:-1] + b"!"), (events, said[:-1] + bytes([said[-1] ^ 1]))]
    forged += [(events.replace("thread", "other-thread"), said), (events, message), (all_, said)]
    for channel, data in forged:
        other._handle(channel, data)
    assert to.messages == []
    assert to.events == []
    # A flood of them does not fill the log. The next report has their number.
    assert caplog.text.count("is forged") == 1
    monkeypatch.setattr(redis_wire, "elapsed", lambda: elapsed() + redis_wire.TELL_SECONDS)
    other._handle(all_, b"")
    assert f"Ignored messages in Redis: {len(forged)}, the last" in caplog.text
