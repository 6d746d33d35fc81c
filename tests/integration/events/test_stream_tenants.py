"""A caller that sees every tenant follows the runs of one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops.assistants.assistants import system_id
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.tenancy import scope
from tests.support import runtime
from tests.support.operations import row, rows
from tests.support.runtime import set_options

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module", autouse=True)
def serving() -> Iterator[None]:
    with runtime.serving("echo"):
        yield


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    set_options(monkeypatch, tenant_key="org")
    monkeypatch.setattr(scope, "current", lambda tenant_key: scope.EVERYTHING)
    async with runtime.opened(tmp_path / "streams.db") as opened:
        await runtime.register(["echo"])
        yield opened


async def start(thread: UUID, run: UUID) -> StreamKey:
    """Create a resumable run on a thread of the tenant "acme"; return its key."""
    await row(Threads.put(None, thread, metadata={"org": "acme"}, if_exists="raise"))
    kwargs = {"resumable": True}
    await rows(
        Runs.put(
            None,
            system_id("echo"),
            kwargs,
            thread_id=thread,
            run_id=run,
            metadata={},
            prevent_insert_if_inflight=True,
        )
    )
    return StreamKey("acme", str(thread), str(run))


async def first(run: UUID, thread: UUID, channel: Any, **more: Any) -> bytes:
    """Return the data of the first event that a follower gets."""
    events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, **more)
    async with asyncio.timeout(30), aclosing(events) as following:  # type: ignore[type-var]
        async for _, data, _ in following:
            return data
    raise AssertionError("The stream has no event")


@pytest.mark.only("sqlite")  # With other processes a follower reads where the log ends.
async def test_new_run_costs_its_follower_no_read(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read is a hop to another thread, which costs a busy server a tenth of a run."""
    thread, run, read, reads = uuid4(), uuid4(), db.read, 0

    async def counted(fn: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(fn)

    with monkeypatch.context() as patch:
        patch.setattr(db, "read", counted)
        channel = await Runs.Stream.subscribe(run, thread)
        key = await start(thread, run)
        current().bus.publisher.publish(key, "values", b"1", resumable=True)
        assert await first(run, thread, channel) == b"1"
    assert reads == 0


async def test_later_follower_gets_events_before_it_joins(db: Database) -> None:
    thread, run = uuid4(), uuid4()
    key = await start(thread, run)
    channel = await Runs.Stream.subscribe(run, thread)
    current().bus.publisher.publish(key, "values", b"2", resumable=True)
    assert await first(run, thread, channel) == b"2"


async def test_stored_events_of_an_ended_run_are_found(db: Database) -> None:
    thread, run = uuid4(), uuid4()
    key = await start(thread, run)
    current().bus.publisher.publish(key, "values", b"3", resumable=True)
    current().bus.writers.ended(key, resumable=True)
    channel = await Runs.Stream.subscribe(run, thread)
    assert await first(run, thread, channel, last_event_id="-1") == b"3"
