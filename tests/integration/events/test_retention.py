"""Retention deletes old events of ended runs, and readers learn of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from sqlalchemy import select, update

from langgraph_runtime_sql import lifespan
from langgraph_runtime_sql.database.schema import event_segments, runs
from langgraph_runtime_sql.events import log, retention
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.segment import Segment
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.tasks import end_all
from langgraph_runtime_sql.events.usage import Usage
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.options import Retention
from langgraph_runtime_sql.runtime import current
from tests.support import checkpoints, runtime

pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs("steps")]
TTL_SECONDS = 120.0
DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    fresh = Usage()
    monkeypatch.setattr(log, "usage", fresh)
    monkeypatch.setattr(retention, "usage", fresh)
    async with runtime.opened(tmp_path / "retention.db"):
        await runtime.register(["steps"])
        await current().bus.start()
        yield
        await current().bus.stop()


async def swept(after_seconds: float = 0.0, **settings: Any) -> int:
    """Return how many segments a sweep deletes that begins this long from now."""
    now = datetime.now(UTC) + timedelta(seconds=after_seconds)
    kept = Retention(**settings)
    return await retention.sweep(current().database, kept, ttl_seconds=TTL_SECONDS, now=now)


async def segments(thread: UUID) -> list[tuple[int, int, bool, bool]]:
    """Return first and last number, whether resumable, and whether events are there."""
    statement = (
        select(event_segments)
        .where(event_segments.c.thread_id == thread)
        .order_by(event_segments.c.epoch, event_segments.c.first)
    )
    found = await current().database.read(lambda conn: conn.fetchall(statement))
    for row in found:
        assert (row["size"] == 0) is (row["events"] is None)
    return [
        (row["first"], row["last"], bool(row["resumable"]), row["events"] is not None)
        for row in found
    ]


async def stored(
    thread: UUID, run_id: str, numbers: range, *, resumable: bool = True, size: int = 100
) -> None:
    """Store one segment for each number."""
    key = StreamKey(None, str(thread))
    made = [
        Segment(key, [Event((1, n), run_id, "custom", b"%d" % n * size, resumable, 1)])
        for n in numbers
    ]
    await current().database.write(lambda conn: log.store(conn, made))


async def ended(thread: UUID) -> UUID:
    """Create a resumable run, and return it after its end."""
    run = await runtime.start_run(
        thread, "steps", {"count": 3}, stream_mode="values", stream_resumable=True
    )
    run_id = UUID(str(run["run_id"]))
    async with runtime.working():
        await runtime.ended(run_id)
    await current().bus.publisher.flush()
    return run_id


async def joined(run: UUID, thread: UUID, last: str) -> list[tuple[str, Any, str | None]]:
    channel = await Runs.Stream.subscribe(run, thread)
    found = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, last_event_id=last)
    return [
        (name.decode(), orjson.loads(data), event_id and event_id.decode())
        async for name, data, event_id in found
    ]


async def thread_with_run(*, status: str) -> tuple[UUID, str]:
    """Return a thread and its run, which has this status."""
    claim = await checkpoints.start_run(current().database)
    run = UUID(str(claim.run_id))
    mine = runs.c.run_id == run
    await current().database.write(
        lambda conn: conn.execute(update(runs).where(mine).values(status=status))
    )
    found = await current().database.read(
        lambda conn: conn.fetchone(select(runs.c.thread_id).where(mine))
    )
    assert found is not None
    return found["thread_id"], str(run)


async def test_reader_of_deleted_events_is_told_and_gets_the_result() -> None:
    thread = uuid4()
    run = await ended(thread)
    whole = await joined(run, thread, "-1")
    first = next(each for _, _, each in whole if each)
    assert await swept(2.9 * DAY) == 0
    assert await joined(run, thread, "-1") == whole
    assert await swept(3.1 * DAY) > 0
    assert [each[2:] for each in await segments(thread)] == [(True, False)]
    for last in ("-1", first):
        (error, result) = await joined(run, thread, last)
        assert (error[0], error[1]["error"]) == ("error", "EventsLost")
        assert (result[0], result[1]["done"]) == ("values", [0, 1, 2])


async def test_numbers_continue_after_all_events_were_deleted() -> None:
    thread = uuid4()
    await ended(thread)
    [*_, (_, last, _, _)] = await segments(thread)
    await swept(4 * DAY)
    run = await ended(thread)
    [(_, kept, *_), (first, *_), *_] = await segments(thread)
    assert (kept, first) == (last, last + 1)
    # Its own events are there.
    assert not any(name == "error" for name, _, _ in await joined(run, thread, "-1"))


@pytest.mark.parametrize("status", ["running", "pending"])
async def test_events_of_runs_in_flight_stay(status: str) -> None:
    thread, run = await thread_with_run(status=status)
    await stored(thread, run, range(1, 4))
    await stored(thread, str(uuid4()), range(4, 6))
    assert await swept(4 * DAY, events_bytes=1) == 2
    assert await segments(thread) == [
        *((n, n, True, True) for n in range(1, 4)),
        (5, 5, True, False),
    ]


async def test_events_of_runs_that_are_not_resumable_go_first() -> None:
    thread, run = await thread_with_run(status="success")
    await stored(thread, run, range(1, 4), resumable=False)
    await stored(thread, run, range(4, 6))
    assert await swept(TTL_SECONDS - 10) == 0
    assert await swept(TTL_SECONDS + 10) == 3
    assert await segments(thread) == [
        (3, 3, False, False),
        (4, 4, True, True),
        (5, 5, True, True),
    ]


@pytest.mark.parametrize("own", [range(1, 4), range(0)], ids=["begun", "not begun"])
async def test_reader_of_a_run_in_flight_misses_no_events_of_other_runs(own: range) -> None:
    """Such as the end of a run that was cancelled while it waited for this one."""
    thread, run = await thread_with_run(status="running")
    await stored(thread, run, own)
    await stored(thread, str(uuid4()), range(4, 6))
    assert await swept(4 * DAY) == 2
    assert await missing(thread, run, 1) == []


async def test_reader_of_an_ended_run_misses_only_its_own_events() -> None:
    thread, run = await thread_with_run(status="success")
    other, last = str(uuid4()), str(uuid4())
    await stored(thread, run, range(1, 4))
    await stored(thread, other, range(4, 6))
    await stored(thread, last, range(6, 8))
    assert await missing(thread, run, 1) == []
    await deleted(thread, 4, 5)
    assert await missing(thread, run, 1) == []
    assert await missing(thread, run, 3) == []
    assert await missing(thread, other, 4) == [5]
    await deleted(thread, 1, 6)
    # One row stands for what was deleted of all three.
    assert await missing(thread, run, 1) == [6]
    assert await missing(thread, other, 4) == [6]
    assert await missing(thread, last, 6) == []
    assert await missing(thread, None, 1) == [6]


async def missing(thread: UUID, run: str | None, seen: int) -> list[int]:
    """Return the numbers at which a reader of a run, or of the thread, learns of a loss."""
    key = StreamKey(None, str(thread))
    wanted = key if run is None else key._replace(run_id=run)
    page = await current().database.read(lambda conn: log.read(conn, wanted, (1, seen)))
    return [row["last"] for row in page.dropped]


async def deleted(thread: UUID, first: int, last: int) -> None:
    """Delete the segments with these numbers, as retention does."""
    mine = (event_segments.c.thread_id == thread, event_segments.c.first.between(first, last))
    await current().database.write(
        lambda conn: retention._delete(conn.fetchall(select(event_segments).where(*mine)), conn)
    )


async def test_only_the_newest_deleted_segment_keeps_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "BATCH", 100)
    thread, run = await thread_with_run(status="success")
    await stored(thread, run, range(1, 251))
    assert await swept(4 * DAY) == 250
    assert await segments(thread) == [(250, 250, True, False)]
    await stored(thread, run, range(251, 253))
    assert await swept(4 * DAY) == 2
    assert await segments(thread) == [(252, 252, True, False)]
    assert await swept(4 * DAY) == 0


async def test_thread_keeps_its_newest_events_up_to_the_size() -> None:
    thread, run = await thread_with_run(status="success")
    other, its_run = await thread_with_run(status="success")
    await stored(thread, run, range(1, 301))
    await stored(other, its_run, range(1, 3))
    [row] = await current().database.read(
        lambda conn: conn.fetchall(
            select(event_segments.c.size).where(
                event_segments.c.thread_id == thread, event_segments.c.first == 300
            )
        )
    )
    limit = 10 * row["size"]
    assert await swept(events_bytes=limit) == 290
    assert await segments(thread) == [
        (290, 290, True, False),
        *((n, n, True, True) for n in range(291, 301)),
    ]
    assert len(await segments(other)) == 2
    # Neither thread has grown since.
    assert await swept(events_bytes=1) == 0


async def test_server_applies_its_settings_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifespan, "EVENT_SWEEP_SECONDS", 0.01)
    runtime.set_options(monkeypatch, retention=Retention(events_seconds=2 * DAY))
    thread, run = await thread_with_run(status="success")
    await stored(thread, run, range(1, 4))
    tasks = [asyncio.create_task(each) for each in lifespan._sweeps(current())]
    try:
        for days, events in ((1, True), (3, False)):
            then = datetime.now(UTC) - timedelta(days=days)
            old = update(event_segments).values(created_at=then)
            await current().database.write(lambda conn, old=old: conn.execute(old))
            async with asyncio.timeout(runtime.PATIENCE):
                while (await segments(thread))[-1][3] is not events:
                    await asyncio.sleep(0.01)
    finally:
        await end_all(tasks)
    assert await segments(thread) == [(3, 3, True, False)]


async def test_usage_forgets_idle_threads_and_counts_growth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langgraph_runtime_sql.events.usage.MAX_THREADS", 2)
    a, b, c = uuid4(), uuid4(), uuid4()
    usage = Usage()
    usage.stored([(a, 5), (b, 5), (a, 5), (c, 20)])
    assert usage.take_grown(10) == [a, c]
    assert usage.take_grown(1) == []
