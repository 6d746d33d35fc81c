"""A subscriber that reads too slowly continues in the log, and misses only what is not stored."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from langgraph_runtime_sql.events import subscription
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import runtime

GRAPHS = ("tokens",)
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]

TOKENS = 300
INPUT = {"n": TOKENS, "size": 100, "mode": "custom"}
ALL = {"stream_mode": ["custom", "values"], "stream_resumable": True}


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The runtime of one process; little may wait for a reader."""
    monkeypatch.setattr(subscription, "WAITING_BYTES", 20_000)
    async with runtime.opened(tmp_path / "slow.db"):
        await runtime.register(GRAPHS)
        yield


async def made(thread: UUID, **more: Any) -> UUID:
    """Create a run that no worker takes."""
    run = await runtime.start_run(thread, "tokens", INPUT, **{**ALL, **more})
    return UUID(str(run["run_id"]))


async def joined(run: UUID, thread: UUID, channel: Any = None, **more: Any) -> list[Any]:
    channel = channel or await Runs.Stream.subscribe(run, thread)
    events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, **more)
    async with asyncio.timeout(runtime.PATIENCE):
        return [event async for event in events]


async def test_slow_run_subscriber_gets_every_event_of_a_resumable_run() -> None:
    thread = uuid4()
    run = await made(thread)
    channel = await Runs.Stream.subscribe(run, thread)
    async with runtime.working():
        assert await runtime.ended(run) == "success"
        # The events do not wait in memory.
        assert sum(event.size for event in channel.waiting()) <= 2 * 20_000
        seen = await joined(run, thread, channel)
        names = [name for name, _, _ in seen]
        assert names.count(b"custom") == TOKENS
        assert b"error" not in names
        # A client that resumes gets the same.
        assert await joined(run, thread, last_event_id="-1") == seen
        for place in (0, TOKENS // 2, TOKENS):
            last = seen[place][2].decode()
            assert await joined(run, thread, last_event_id=last) == seen[place + 1 :]


async def test_slow_thread_subscriber_gets_every_event_of_resumable_runs() -> None:
    thread = uuid4()
    events = Threads.Stream.join(thread, stream_modes=["run_modes"])
    begun = asyncio.ensure_future(anext(events))
    while current().bus.followers._topics.find(str(thread)) is None:
        await asyncio.sleep(0.01)
    runs = [await made(thread)]
    async with asyncio.timeout(runtime.PATIENCE), runtime.working():
        seen = [await begun]
        assert await runtime.ended(runs[0]) == "success"
        runs.append(await made(thread))
        assert await runtime.ended(runs[1]) == "success"
        ends = 0
        while ends < 2:
            seen.append(await anext(events))
            ends += b"run_done" in seen[-1][1]
    ids = [tuple(map(int, event_id.decode().split("-"))) for _, _, event_id in seen]
    assert ids == sorted(set(ids))
    assert [name for name, _, _ in seen].count(b"custom") == 2 * TOKENS
    assert b"error" not in [name for name, _, _ in seen]


@pytest.mark.only("sqlite")
async def test_slow_subscriber_of_unstored_events_gets_the_result() -> None:
    """One process on SQLite stores no events of a run that is not resumable."""
    thread = uuid4()
    run = await made(thread, stream_resumable=False)
    channel = await Runs.Stream.subscribe(run, thread)
    async with runtime.working():
        assert await runtime.ended(run) == "success"
        error, result = await joined(run, thread, channel)
    assert error[0] == b"error"
    told = orjson.loads(error[1])
    assert told["error"] == "EventsLost"
    assert "stored state is complete" in told["message"]
    assert result[0] == b"values"
    assert orjson.loads(result[1]) == (await runtime.thread(thread))["values"]
