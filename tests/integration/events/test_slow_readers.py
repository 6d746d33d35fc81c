"""A subscriber that reads too slowly gets an error for the missed events, and the result."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from langgraph_runtime_sql.events import subscription
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import runtime

pytestmark = pytest.mark.usefixtures("each_database")

GRAPHS = ("tokens",)
TOKENS = 300
INPUT = {"n": TOKENS, "size": 100, "mode": "custom"}
ALL = {"stream_mode": ["custom", "values"], "stream_resumable": True}


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving(*GRAPHS):
        yield


@pytest.fixture(params=["alone", "redis"], autouse=True)
async def opened(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[None]:
    """The runtime of one process, alone or beside others; little may wait for a reader."""
    monkeypatch.setattr(subscription, "WAITING_BYTES", 20_000)
    async with runtime.opened(tmp_path / "slow.db"):
        await runtime.register(GRAPHS)
        if request.param == "alone":
            yield
            return
        here = RedisBus(redis_url, 60, prefix=f"slow:{uuid4().hex}")
        await here.start()
        monkeypatch.setattr(current(), "bus", here)
        yield
        await here.stop()


async def made(thread: UUID) -> UUID:
    """Create a run that no worker takes."""
    run = await runtime.start_run(thread, "tokens", INPUT, **ALL)
    return UUID(str(run["run_id"]))


async def joined(run: UUID, thread: UUID, channel: Any = None, **more: Any) -> list[Any]:
    channel = channel or await Runs.Stream.subscribe(run, thread)
    events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, **more)
    async with asyncio.timeout(runtime.PATIENCE):
        return [event async for event in events]


async def test_slow_run_subscriber_gets_an_error_and_the_result() -> None:
    thread = uuid4()
    run = await made(thread)
    channel = await Runs.Stream.subscribe(run, thread)
    async with runtime.working():
        assert await runtime.ended(run) == "success"
        while not any(event.is_end for event in channel.waiting()):
            await asyncio.sleep(0.01)
        error, result = await joined(run, thread, channel)
        assert error[0] == b"error"
        told = orjson.loads(error[1])
        assert told["error"] == "EventsLost"
        assert "stored state is complete" in told["message"]
        assert result[0] == b"values"
        assert orjson.loads(result[1]) == (await runtime.thread(thread))["values"]
        # Every event is kept for a client that resumes.
        first, *rest = await joined(run, thread, last_event_id="-1")
        names = [name for name, _, _ in rest]
        assert names.count(b"custom") == TOKENS
        assert b"error" not in names
        assert await joined(run, thread, last_event_id=first[2].decode()) == rest


async def test_slow_thread_subscriber_gets_an_error_and_the_result() -> None:
    thread = uuid4()
    run = await made(thread)
    events = Threads.Stream.join(thread, stream_modes=["run_modes"])
    async with asyncio.timeout(runtime.PATIENCE):
        begun = asyncio.ensure_future(anext(events))
        while str(thread) not in current().bus._by_thread:
            await asyncio.sleep(0.01)
        async with runtime.working():
            await begun
            assert await runtime.ended(run) == "success"
            names = [(name, b"run_done" in data) async for name, data, _ in events]
    assert names[-3:] == [(b"error", False), (b"values", False), (b"metadata", True)]
    assert len(names) < TOKENS
