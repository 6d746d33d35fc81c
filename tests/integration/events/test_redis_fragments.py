"""Streams of ended runs of which Redis holds only a part."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from sqlalchemy import update

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.events.redis.bus import RedisBus
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.redis import started
from tests.support.streams import of_run

pytestmark = pytest.mark.usefixtures("each_database")

GRAPHS = ("echo", "functional")


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving(*GRAPHS):
        yield


@pytest.fixture
async def run(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[tuple[UUID, UUID]]:
    """Create a run that ended long ago, and its thread; `request.param` is its graph and inputs."""
    graph, *inputs = getattr(request, "param", ("echo", {"value": 1}))
    thread = uuid4()
    async with runtime.opened(tmp_path / "fragments.db"):
        await runtime.register(GRAPHS)
        async with runtime.working():
            for asked in inputs:
                made = await runtime.start_run(thread, graph, asked, stream_resumable=True)
                assert await runtime.ended(made["run_id"]) == "success"
        aged = update(runs).values(updated_at=now() - timedelta(hours=1))
        await current().database.write(lambda conn: conn.execute(aged))
        yield made["run_id"], thread


@pytest.fixture
async def elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: tuple[UUID, UUID]
) -> AsyncIterator[RedisBus]:
    """Return the bus of another process; this process has its own."""
    with started(tmp_path) as valkey:
        other, here = RedisBus(valkey.url, 60), RedisBus(valkey.url, 60)
        await other.start()
        await here.start()
        monkeypatch.setattr(current(), "bus", here)
        yield other
        await here.stop()
        await other.stop()


async def told(run: UUID, thread: UUID) -> list[tuple[bytes, bytes]]:
    """Return what a client receives that reads the stream from its beginning."""
    channel = await Runs.Stream.subscribe(run, thread)
    joined = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, last_event_id="-1")
    return [(name, data) async for name, data, _ in joined]


async def names(run: UUID, thread: UUID) -> list[bytes]:
    return [name for name, _ in await told(run, thread)]


async def test_truncated_stream_ends_with_an_error_and_the_result(
    run: tuple[UUID, UUID], elsewhere: RedisBus
) -> None:
    run_id, thread = map(str, run)
    elsewhere.publish(of_run(run_id, thread), "custom", b"1", resumable=True)
    await elsewhere.flush()
    # The result comes after the error, from the database.
    assert await names(*run) == [b"custom", b"error", b"values"]
    elsewhere.run_ended(of_run(run_id, thread), resumable=True)
    await elsewhere.flush()
    assert await names(*run) == [b"custom"]


@pytest.mark.parametrize(
    "run", [("functional", {}, {"question": "who?"})], indirect=True, ids=["functional"]
)
async def test_interrupt_is_sent_although_the_state_is_no_mapping(
    run: tuple[UUID, UUID], elsewhere: RedisBus
) -> None:
    run_id, thread = map(str, run)
    assert (await runtime.thread(run[1]))["values"] == "done"
    elsewhere.publish(of_run(run_id, thread), "custom", b"1", resumable=True)
    await elsewhere.flush()
    *before, (name, data) = await told(*run)
    assert [each for each, _ in before] == [b"custom", b"error"]
    assert name == b"values"
    [asked] = orjson.loads(data)["__interrupt__"]
    assert asked["value"] == "who?"


async def test_expired_stream_is_empty(run: tuple[UUID, UUID], elsewhere: RedisBus) -> None:
    assert await names(*run) == []


async def test_thread_stream_subscribes_before_its_response_begins(
    run: tuple[UUID, UUID], elsewhere: RedisBus
) -> None:
    made, thread = str(uuid4()), run[1]
    events = Threads.Stream.join(thread, stream_modes=["run_modes"])
    # The client starts a run as soon as the response has begun, before it reads.
    elsewhere.publish(of_run(made, str(thread)), "custom", b"1")
    await elsewhere.flush()
    async with asyncio.timeout(60):
        assert (await anext(events))[:2] == (b"custom", b"1")


async def test_thread_stream_includes_a_run_that_ends_while_it_waits_for_redis(
    run: tuple[UUID, UUID], elsewhere: RedisBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream sent nothing more: the run had ended at its first query of the database."""
    here, asked, is_over = current().bus, asyncio.Event(), asyncio.Event()
    follow = here.follow_thread

    async def slowly(*arguments: Any) -> Any:
        asked.set()
        await is_over.wait()
        return await follow(*arguments)

    async def followed() -> list[bytes]:
        events = Threads.Stream.join(run[1], stream_modes=["run_modes"])
        return [name async for name, _, _ in events]

    monkeypatch.setattr(here, "follow_thread", slowly)
    following = asyncio.create_task(followed())
    await asyncio.wait_for(asked.wait(), runtime.PATIENCE)
    # The events of the other process never arrive.
    await elsewhere.stop()
    monkeypatch.setattr(current(), "bus", elsewhere)
    async with asyncio.timeout(runtime.PATIENCE), runtime.working():
        made = await runtime.start_run(run[1], "echo", {"value": 2})
        assert await runtime.ended(made["run_id"]) == "success"
    monkeypatch.setattr(current(), "bus", here)
    is_over.set()
    async with asyncio.timeout(runtime.PATIENCE):
        assert await following == [b"error", b"values", b"metadata"]
