"""Faults of similar servers with runs and their queue. Each docstring states the fault."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import bindparam

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.queue import queue
from tests.support import runtime, served
from tests.support.effort import ticks
from tests.support.processes import Running
from tests.support.served import Api

pytestmark = [
    pytest.mark.usefixtures("each_database"),
    pytest.mark.graphs("echo", "sleeper"),
]

LONG = {"seconds": 120}


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("runs")
    with served.served(folder, CRON_SCHEDULER_SLEEP_TIME="1") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with served.client(server) as client:
        yield client


async def _thread_status(api: Api, thread: str) -> str:
    return str((await api.get(f"/threads/{thread}"))["status"])


async def _rests(api: Api, thread: str) -> str:
    """Wait until no run keeps a thread busy. Return its status."""
    async with asyncio.timeout(served.PATIENCE):
        while (found := await _thread_status(api, thread)) == "busy":
            await asyncio.sleep(0.02)
    return found


async def _interrupted(api: Api) -> str:
    """Create a thread whose graph waits for an answer."""
    thread = await api.thread()
    run = await api.run(thread, "interrupt", {"questions": ["a", "b"]})
    assert await api.ended(thread, run) == "success"
    assert await _thread_status(api, thread) == "interrupted"
    return thread


# --- cancelling


@pytest.mark.parametrize("status", ["running", "all"])
async def test_cancelling_by_status_stops_running_runs(
    api: Api, tmp_path: Path, status: str
) -> None:
    """Runs cancelled by status get the status interrupted, but run to their end."""
    record = tmp_path / "record"
    threads = [await api.thread() for _ in range(2)]
    started = {"seconds": 120, "record": str(record)}
    runs = [await api.run(thread, "sleeper", started) for thread in threads]
    await served.lines(record, 2)
    await api.post("/runs/cancel", {"status": status})
    for thread, run in zip(threads, runs, strict=True):
        assert await api.ended(thread, run) == "interrupted"
    assert sorted((await served.lines(record, 6))[2:]) == ["cancelled"] * 2 + ["stopped"] * 2


async def test_cancelling_all_starts_no_pending_run(api: Api, tmp_path: Path) -> None:
    """A pending run starts, and succeeds, as soon as the run before it is cancelled."""
    record = tmp_path / "record"
    threads = [await api.thread() for _ in range(8)]
    started = {"seconds": 120, "record": str(record)}
    for thread in threads:
        await api.run(thread, "sleeper", started)
    waiting = [
        (thread, await api.run(thread, "echo", {"value": 1}, multitask_strategy="enqueue"))
        for thread in threads
    ]
    await served.lines(record, 8)
    await api.post("/runs/cancel", {"status": "all"})
    ends = [await api.ended(thread, run) for thread, run in waiting]
    assert ends == ["interrupted"] * 8


async def test_cancelling_several_runs_stops_pending_and_running_ones(
    api: Api, tmp_path: Path
) -> None:
    """Pending runs of a thread start while its running run is being cancelled."""
    record = tmp_path / "record"
    thread = await api.thread()
    body = {"seconds": 120, "record": str(record)}
    runs = [await api.run(thread, "sleeper", body, multitask_strategy="enqueue") for _ in range(4)]
    await served.lines(record, 1)
    await api.post("/runs/cancel", {"thread_id": thread, "run_ids": runs})
    assert [await api.ended(thread, run) for run in runs] == ["interrupted"] * 4
    assert await _rests(api, thread) != "busy"
    assert record.read_text().splitlines() == ["started", "cancelled", "stopped"]
    again = await api.http.post("/runs/cancel", json={"thread_id": thread, "run_ids": runs})
    assert again.status_code == 404


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
@pytest.mark.parametrize("state", ["pending", "running"])
async def test_cancel_with_wait_returns_when_the_run_has_ended(
    api: Api, tmp_path: Path, action: str, state: str
) -> None:
    """A cancellation that waits for the end of the run never returns."""
    record = tmp_path / "record"
    thread = await api.thread()
    first = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
    await served.lines(record, 1)
    second = await api.run(thread, "echo", {"value": 1}, multitask_strategy="enqueue")
    run = first if state == "running" else second
    path = f"/threads/{thread}/runs/{run}/cancel?wait=true&action={action}"
    async with asyncio.timeout(served.PATIENCE):
        await api.post(path)
    expected = "interrupted" if action == "interrupt" else None
    assert await api.ended(thread, run) == expected
    if state == "pending":
        await api.post(f"/threads/{thread}/runs/{first}/cancel?wait=true")
    else:
        assert await api.ended(thread, second) == "success"
    assert await _rests(api, thread) != "busy"


async def test_running_run_stays_running_until_its_worker_ends_it(api: Api, tmp_path: Path) -> None:
    """A cancelled run is marked interrupted at once, so the next run starts while it still executes."""
    record, stopped = tmp_path / "record", tmp_path / "stopped"
    thread = await api.thread()
    body = {"seconds": 120, "record": str(record), "stopping": str(stopped)}
    first = await api.run(thread, "sleeper", body)
    await served.lines(record, 1)
    second = await api.run(
        thread,
        "sleeper",
        {"seconds": 0, "record": str(record)},
        multitask_strategy="interrupt",
    )
    assert (await served.lines(record, 2))[-1] == "cancelled"
    assert await api.status(thread, first) == "running"
    assert await api.status(thread, second) == "pending"
    stopped.touch()
    assert await api.ended(thread, second) == "success"
    assert await api.status(thread, first) == "interrupted"
    order = ["started", "cancelled", "stopped", "started", "finished"]
    assert await served.lines(record, 5) == order


async def test_interrupting_run_supersedes_running_and_pending_runs(
    api: Api, tmp_path: Path
) -> None:
    """A run that replaces all others leaves pending runs, which then execute before it."""
    record = tmp_path / "record"
    for strategy, left in (("interrupt", "interrupted"), ("rollback", None)):
        record.unlink(missing_ok=True)
        thread = await api.thread()
        body = {"seconds": 120, "record": str(record)}
        old = [
            await api.run(thread, "sleeper", body, multitask_strategy="enqueue") for _ in range(3)
        ]
        await served.lines(record, 1)
        last = await api.run(thread, "echo", {"value": 1}, multitask_strategy=strategy)
        assert await api.ended(thread, last) == "success"
        assert [await api.status(thread, run) for run in old] == [left] * 3
        assert record.read_text().splitlines() == ["started", "cancelled", "stopped"]
        assert await _rests(api, thread) == "idle"


@pytest.mark.parametrize("way", ["rollback", "delete"])
@pytest.mark.parametrize("state", ["pending", "running"])
async def test_rolling_back_or_deleting_an_unwatched_run_frees_its_thread(
    api: Api, tmp_path: Path, way: str, state: str
) -> None:
    """The thread of a rolled-back or deleted run stays busy if no client follows its stream."""
    record = tmp_path / "record"
    thread = await api.thread()
    body = {"seconds": 120, "record": str(record)}
    if state == "running":
        run = await api.run(thread, "sleeper", body)
        await served.lines(record, 1)
    else:
        run = await api.run(thread, "sleeper", body, after_seconds=3600)
        assert await _thread_status(api, thread) == "busy"
    if way == "rollback":
        await api.post(f"/threads/{thread}/runs/{run}/cancel?action=rollback")
    else:
        assert (await api.http.delete(f"/threads/{thread}/runs/{run}")).is_success
    assert await api.ended(thread, run) is None
    assert await _rests(api, thread) == "idle"
    if state == "running":
        assert (await served.lines(record, 2))[-1] == "cancelled"
    assert await api.get(f"/threads/{thread}/history") == []
    after = await api.run(thread, "echo", {"value": 7})
    assert await api.ended(thread, after) == "success"


async def test_joining_and_streaming_end_when_the_run_is_deleted(api: Api, tmp_path: Path) -> None:
    """A client that follows a deleted run waits forever."""
    record = tmp_path / "record"
    thread = await api.thread()
    run = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
    await served.lines(record, 1)
    path = f"/threads/{thread}/runs/{run}"
    async with api.stream("GET", f"{path}/stream") as stream:
        joined = asyncio.create_task(api.http.get(f"{path}/join"))
        assert (await api.http.delete(path)).is_success
        async with asyncio.timeout(served.PATIENCE):
            assert [event.name async for event in stream if event.name != "metadata"] == []
            assert (await joined).status_code == 200
    assert await _rests(api, thread) == "idle"


async def test_streams_end_with_an_error_when_the_thread_is_deleted(
    api: Api, tmp_path: Path
) -> None:
    """A client that follows a run of a deleted thread waits forever, and the run continues."""
    record = tmp_path / "record"
    thread = await api.thread()
    running = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
    await served.lines(record, 1)
    waiting = await api.run(thread, "echo", {"value": 1}, multitask_strategy="enqueue")
    async with (
        api.stream("GET", f"/threads/{thread}/runs/{running}/stream") as first,
        api.stream("GET", f"/threads/{thread}/runs/{waiting}/stream") as second,
    ):
        assert (await api.http.delete(f"/threads/{thread}")).is_success
        async with asyncio.timeout(served.PATIENCE):
            for stream in (first, second):
                [event] = [event async for event in stream if event.name != "metadata"]
                assert event.name == "error" and "Run not found" in event.data
    assert await served.lines(record, 3) == ["started", "cancelled", "stopped"]
    assert (await api.http.get(f"/threads/{thread}")).status_code == 404


# --- the thread of a removed run


@pytest.mark.parametrize("way", ["interrupt", "rollback", "delete"])
async def test_removing_a_pending_run_restores_the_interrupted_thread(api: Api, way: str) -> None:
    """Cancelling a pending run makes an interrupted thread idle, and its interrupt is lost."""
    thread = await _interrupted(api)
    before = await api.get(f"/threads/{thread}")
    resume = {"command": {"resume": "yes"}, "after_seconds": 3600}
    run = await api.run(thread, "interrupt", **resume)
    assert await _thread_status(api, thread) == "busy"
    if way == "delete":
        assert (await api.http.delete(f"/threads/{thread}/runs/{run}")).is_success
    else:
        await api.post(f"/threads/{thread}/runs/{run}/cancel?action={way}")
    after = await api.get(f"/threads/{thread}")
    for key in ("status", "interrupts", "values", "error"):
        assert after[key] == before[key]


async def test_cancelling_a_pending_run_keeps_a_stopped_thread_interrupted(
    api: Api, tmp_path: Path
) -> None:
    """A stopped thread gets the status error when a pending run is cancelled."""
    record = tmp_path / "record"
    thread = await api.thread()
    run = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
    await served.lines(record, 1)
    await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
    before = await api.get(f"/threads/{thread}")
    assert before["status"] == "interrupted"
    later = await api.run(thread, "echo", after_seconds=3600)
    await api.post(f"/threads/{thread}/runs/{later}/cancel")
    assert await _thread_status(api, thread) == "interrupted"


async def test_deleting_a_resume_run_restores_its_interrupt(api: Api) -> None:
    """A thread is idle although its graph waits for the answer that was deleted."""
    thread = await _interrupted(api)
    before = await api.get(f"/threads/{thread}")
    first = await api.run(thread, "interrupt", command={"resume": "yes"})
    assert await api.ended(thread, first) == "success"
    last = await api.run(thread, "interrupt", command={"resume": "no"})
    assert await api.ended(thread, last) == "success"
    assert await _thread_status(api, thread) == "idle"
    assert (await api.http.delete(f"/threads/{thread}/runs/{last}")).is_success
    found = await api.get(f"/threads/{thread}")
    assert found["status"] == "interrupted"
    assert [each["value"] for [each] in found["interrupts"].values()] == [{"question": "b"}]
    assert (await api.http.delete(f"/threads/{thread}/runs/{first}")).is_success
    after = await api.get(f"/threads/{thread}")
    for key in ("status", "interrupts", "values"):
        assert after[key] == before[key]
    state_now = await api.get(f"/threads/{thread}/state")
    assert [task["name"] for task in state_now["tasks"]] == ["ask"]


async def test_deleting_the_last_run_removes_its_values_from_the_thread(api: Api) -> None:
    """A thread shows the values of a deleted run, while its state shows the older ones."""
    thread = await api.thread()
    first = await api.run(thread, "echo", {"value": "first"})
    assert await api.ended(thread, first) == "success"
    last = await api.run(thread, "echo", {"value": "last"})
    assert await api.ended(thread, last) == "success"
    assert (await api.http.delete(f"/threads/{thread}/runs/{last}")).is_success
    expected = {"messages": [], "value": "first", "count": 1}
    assert (await api.get(f"/threads/{thread}/state"))["values"] == expected
    assert (await api.get(f"/threads/{thread}"))["values"] == expected
    assert (await api.http.delete(f"/threads/{thread}/runs/{first}")).is_success
    emptied = await api.get(f"/threads/{thread}")
    assert (emptied["values"], emptied["status"]) == (None, "idle")


async def test_deleting_an_earlier_run_does_not_change_the_thread(api: Api) -> None:
    """A thread whose last run failed loses the status error when an earlier run is deleted."""
    thread = await api.thread()
    first = await api.run(thread, "echo", {"value": 1})
    assert await api.ended(thread, first) == "success"
    last = await api.run(thread, "failing", {"message": "as asked"})
    assert await api.ended(thread, last) == "error"
    before = await api.get(f"/threads/{thread}")
    assert before["status"] == "error"
    assert (await api.http.delete(f"/threads/{thread}/runs/{first}")).is_success
    assert await api.get(f"/threads/{thread}") == before


# --- the queue


@pytest.fixture
async def db(settings: None, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "runs.db") as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


async def test_silent_run_can_be_cancelled_at_any_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four minutes without a message the worker misses the cancellation."""
    run = await runtime.start_run(uuid4(), "echo", {})
    await db.write(lambda conn: run_claim.claim(conn, 1))
    loop = asyncio.get_running_loop()
    async with Runs.enter(run["run_id"], run["thread_id"], loop, False) as stop:
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 1_000_000)
        for _ in range(20):
            await asyncio.sleep(0)  # Any deadline passes now.
        await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"], reason="enough")
        async with asyncio.timeout(served.PATIENCE):
            error = await stop.wait()
    assert type(error).__name__ == "UserInterrupt"
    assert "enough" in str(error)


async def _pile_up(db: Database, like: Row, count: int) -> None:
    """Queue `count` copies of a run behind it."""

    def fn(conn: Connection) -> None:
        insert = Prepared(runs.insert().values({n: bindparam(n) for n in run_rows.FIELDS}))
        waiting = {**like, "status": "pending", "multitask_strategy": "enqueue"}
        copies = ({**waiting, "run_id": uuid4(), "created_at": now()} for _ in range(count))
        conn.executemany(insert, [*copies])

    await db.write(fn)


async def test_thousand_pending_runs_of_a_thread_do_not_delay_another_thread(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pending runs of a busy thread block the runs of all other threads."""
    # The blocking run would use up the grace period at the end.
    runtime.set_options(monkeypatch, grace_seconds=0)
    async with runtime.working(2):
        blocking = await runtime.start_run(uuid4(), "sleeper", LONG)
        await _until_running(blocking["run_id"])
        await _pile_up(db, blocking, 1000)
        free = await runtime.start_run(uuid4(), "echo", {})
        async with asyncio.timeout(served.PATIENCE):
            assert await runtime.ended(free["run_id"]) == "success"
        pending = await db.read(lambda conn: len(run_rows.in_flight(conn, blocking["thread_id"])))
        assert pending == 1001


async def test_run_starts_as_soon_as_a_slot_is_free(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that arrives while all slots are taken waits longer than until one is free."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 600.0)  # Only the end of a run wakes the queue.
    end = tmp_path / "end"
    async with runtime.working(1):
        first = await runtime.start_run(uuid4(), "sleeper", {**LONG, "until": str(end)})
        await _until_running(first["run_id"])
        late = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(3)]
        late.append(await runtime.start_run(uuid4(), "echo", {}, after_seconds=1))
        end.touch()
        for run in (first, *late):
            assert await runtime.ended(run["run_id"]) == "success"


async def _until_running(run_id: Any) -> None:
    async with asyncio.timeout(served.PATIENCE):
        while await runtime.status(run_id) != "running":
            await asyncio.sleep(0.005)


def _effort(conn: Connection) -> tuple[int, int]:
    """Claim runs. Return how many it found, and its effort in thousands of SQLite instructions."""
    claimed, counted = ticks(conn, lambda: run_claim.claim(conn, 10), 1000)
    return len(claimed.runs), counted


@pytest.mark.only("sqlite")  # SQLite counts its instructions; a clock would measure the machine.
async def test_claim_that_finds_only_blocked_runs_is_cheap(db: Database) -> None:
    """Each claim compares all pending runs with each other."""
    blocking = await runtime.start_run(uuid4(), "sleeper", LONG)
    await db.write(lambda conn: run_claim.claim(conn, 1))
    await _pile_up(db, blocking, 5_000)
    _, half = await db.write(_effort)
    await _pile_up(db, blocking, 5_000)
    found, whole = await db.write(_effort)
    assert found == 0
    assert whole <= 200  # 20 instructions a run
    assert whole <= 2.5 * half


@pytest.mark.only("sqlite")  # As above.
async def test_claim_of_the_first_of_ten_thousand_pending_runs_is_cheap(db: Database) -> None:
    """The claim of a run takes longer the more runs of its thread are pending."""
    await _pile_up(db, await runtime.start_run(uuid4(), "sleeper", LONG), 10_000)
    found, effort = await db.write(_effort)
    assert found == 1
    # One statement claims for all free slots, so it also passes over the thread's other runs.
    assert effort <= 400  # 40 instructions a run


async def test_enqueueing_a_run_reads_no_other_pending_run(db: Database) -> None:
    """Each further pending run of a thread costs more than the one before it."""
    blocking = await runtime.start_run(uuid4(), "sleeper", LONG)
    await _pile_up(db, blocking, 5_000)
    read = 0
    plain = run_rows.in_flight

    def reading(conn: Connection, thread_id: Any) -> list[Row]:
        nonlocal read
        found = plain(conn, thread_id)
        read += len(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_rows, "in_flight", reading)
        await runtime.start_run(blocking["thread_id"], "echo", {}, multitask_strategy="enqueue")
    assert read == 0


async def test_graph_that_raises_cancelled_error_fails_its_run_only(
    api: Api, tmp_path: Path
) -> None:
    """A graph that raises CancelledError is mistaken for a shutdown, and retried forever."""
    record = tmp_path / "record"
    body = {"error": "CancelledError", "record": str(record)}
    thread = await api.thread()
    run = await api.run(thread, "failing", body)
    assert await api.ended(thread, run) == "error"
    assert 1 <= len(record.read_text().splitlines()) <= 3
    assert await _thread_status(api, thread) == "error"
    after = await api.run(thread, "echo", {"value": 1})
    assert await api.ended(thread, after) == "success"


async def test_status_of_a_run_is_stored_before_its_stream_ends(api: Api) -> None:
    """A stream ends before the status of its run is stored, so its client finds the run running."""
    for _ in range(10):
        thread = await api.thread()
        body = {"assistant_id": "echo", "input": {"value": 1}}
        events = await api.events("POST", f"/threads/{thread}/runs/stream", body)
        run = json.loads(events[0].data)["run_id"]
        assert await api.status(thread, run) == "success"
        assert await _thread_status(api, thread) == "idle"


async def test_stream_of_a_stateless_run_is_complete_although_its_thread_is_deleted(
    api: Api,
) -> None:
    """Deleting the thread of a stateless run cuts off the end of the stream."""
    for _ in range(10):
        async with asyncio.timeout(served.PATIENCE):
            body = {"assistant_id": "echo", "input": {"value": 5}, "stream_mode": "values"}
            async with api.http.stream("POST", "/runs/stream", json=body) as answer:
                thread = answer.headers["content-location"].split("/")[2]
                text = (await answer.aread()).decode()
        assert '"value":5' in text.rpartition("event: values")[2]
        assert (await api.http.get(f"/threads/{thread}")).status_code == 404
    waited = await api.post("/runs/wait", {"assistant_id": "echo", "input": {"value": 6}})
    assert waited["value"] == 6


async def test_run_cancelled_before_its_first_step_keeps_the_values_of_the_thread(
    db: Database,
) -> None:
    """A run that is cancelled before its first step erases the values of its thread."""
    from langgraph_api.errors import UserInterrupt

    thread = uuid4()
    first = await runtime.start_run(thread, "echo", {})
    checkpoint = {"values": {"value": 1}, "next": [], "tasks": []}
    await Threads.set_joint_status(None, thread, first["run_id"], "success", "echo", checkpoint)
    second = await runtime.start_run(thread, "echo", {})
    error = UserInterrupt("enough")
    await Threads.set_joint_status(
        None, thread, second["run_id"], "interrupted", "echo", None, error
    )
    row = await runtime.thread(thread)
    assert (row["status"], row["values"]) == ("idle", {"value": 1})
    assert row["error"]["error"] == "UserInterrupt"
    third = await runtime.start_run(thread, "echo", {})
    await Threads.set_joint_status(None, thread, third["run_id"], "success", "echo", checkpoint)
    assert (await runtime.thread(thread))["error"] is None


async def test_rejected_run_does_not_change_its_thread(api: Api, tmp_path: Path) -> None:
    """A run that is rejected because another is in flight changes the thread first."""
    record = tmp_path / "record"
    thread = await api.thread()
    run = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
    await served.lines(record, 1)
    before = await api.get(f"/threads/{thread}")
    body = {
        "assistant_id": "echo",
        "metadata": {"mine": True},
        "config": {"configurable": {"x": 1}},
        "multitask_strategy": "reject",
    }
    assert (await api.http.post(f"/threads/{thread}/runs", json=body)).status_code == 409
    assert await api.get(f"/threads/{thread}") == before
    assert len(await api.get(f"/threads/{thread}/runs")) == 1
    await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")


async def test_one_of_many_concurrent_reject_runs_is_accepted(api: Api) -> None:
    """Two concurrent runs with the strategy reject are both accepted."""
    thread = await api.thread()
    body = {"assistant_id": "sleeper", "input": LONG, "multitask_strategy": "reject"}
    answers = await asyncio.gather(
        *(api.http.post(f"/threads/{thread}/runs", json=body) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    [run] = await api.get(f"/threads/{thread}/runs")
    await api.post(f"/threads/{thread}/runs/{run['run_id']}/cancel?wait=true")


async def test_cron_with_an_end_time_fires_and_delays_no_other(api: Api) -> None:
    """An end time, which clients send as text, stops the scheduler for all crons."""
    threads = [await api.thread() for _ in range(2)]
    body = {"assistant_id": "echo", "input": {"value": 1}, "schedule": "* * * * * *"}
    ends = {"end_time": "2999-01-01T00:00:00Z"}
    crons = [
        await api.post(f"/threads/{thread}/runs/crons", {**body, **extra})
        for thread, extra in zip(threads, (ends, {}), strict=True)
    ]
    try:
        async with asyncio.timeout(served.PATIENCE):
            for thread in threads:
                while not await api.get(f"/threads/{thread}/runs"):
                    await asyncio.sleep(0.05)
    finally:
        for cron in crons:
            await api.http.delete(f"/runs/crons/{cron['cron_id']}")


async def test_rolled_back_run_leaves_no_checkpoint(api: Api) -> None:
    """The checkpoints of a rolled-back run are not found, and stay in the history."""
    thread = await api.thread()
    first = await api.run(thread, "steps", {"count": 2})
    assert await api.ended(thread, first) == "success"
    before = await api.get(f"/threads/{thread}/history?limit=100")
    run = await api.run(thread, "steps", {"count": 1000, "delay": 0.02})
    async with asyncio.timeout(served.PATIENCE):
        while len(await api.get(f"/threads/{thread}/history?limit=100")) < len(before) + 4:
            await asyncio.sleep(0.02)
    await api.post(f"/threads/{thread}/runs/{run}/cancel?action=rollback&wait=true")
    assert await api.get(f"/threads/{thread}/history?limit=100") == before


# --- limits that are set


@pytest.fixture(scope="module")
def strict(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("strict")
    with served.served(
        folder,
        # Enough for a short run on a busy machine.
        BG_JOB_TIMEOUT_SECS="15",
        FF_CRONS_ENABLED="false",
        CRON_SCHEDULER_SLEEP_TIME="1",
    ) as started:
        yield started


async def test_run_past_its_time_limit_is_cancelled_with_status_timeout(
    strict: Running, tmp_path: Path
) -> None:
    """A run continues past its time limit, or its thread stays busy."""
    record = tmp_path / "record"
    async with served.client(strict) as api:
        thread = await api.thread()
        run = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
        assert await api.ended(thread, run) == "timeout"
        assert (await served.lines(record, 2))[-1] == "cancelled"
        assert await _thread_status(api, thread) == "error"
        after = await api.run(thread, "echo", {"value": 1})
        assert await api.ended(thread, after) == "success"


async def test_crons_do_not_fire_where_they_are_disabled(strict: Running) -> None:
    """Crons fire although they are disabled on this server."""
    async with served.client(strict) as api:
        thread = await api.thread()
        body = {"assistant_id": "echo", "input": {}, "schedule": "* * * * * *"}
        cron = await api.post(f"/threads/{thread}/runs/crons", body)
        due = datetime.fromisoformat(cron["next_run_date"])
        # Long enough for a scheduler that looks every second to have looked twice.
        await asyncio.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + 2.5)
        assert await api.get(f"/threads/{thread}/runs") == []
