"""Runs and their queue: what goes wrong elsewhere, and does not here."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import bindparam

from langgraph_runtime_sql import options
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

pytestmark = pytest.mark.usefixtures("each_database")

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
    """A thread's status once no run keeps it busy."""
    async with asyncio.timeout(served.PATIENCE):
        while (found := await _thread_status(api, thread)) == "busy":
            await asyncio.sleep(0.02)
    return found


async def _interrupted(api: Api) -> str:
    """A thread whose graph waits for an answer."""
    thread = await api.thread()
    run = await api.run(thread, "interrupt", {"questions": ["a", "b"]})
    assert await api.ended(thread, run) == "success"
    assert await _thread_status(api, thread) == "interrupted"
    return thread


# --- cancelling


@pytest.mark.parametrize("status", ["running", "all"])
async def test_cancelling_by_status_stops_the_runs_themselves(
    api: Api, tmp_path: Path, status: str
) -> None:
    """Runs that are cancelled by status are only called interrupted, and work on to the end."""
    record = tmp_path / "record"
    threads = [await api.thread() for _ in range(2)]
    started = {"seconds": 120, "record": str(record)}
    runs = [await api.run(thread, "sleeper", started) for thread in threads]
    await served.lines(record, 2)
    await api.post("/runs/cancel", {"status": status})
    for thread, run in zip(threads, runs, strict=True):
        assert await api.ended(thread, run) == "interrupted"
    assert sorted((await served.lines(record, 6))[2:]) == ["cancelled"] * 2 + ["stopped"] * 2


async def test_cancelling_all_starts_none_of_those_that_wait(api: Api, tmp_path: Path) -> None:
    """What waits behind a run starts, and ends well, once that run is told to stop."""
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


async def test_cancelling_many_takes_those_that_wait_and_those_that_run(
    api: Api, tmp_path: Path
) -> None:
    """Of several runs of a thread, those that wait start while the one that ran is stopping."""
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
async def test_a_cancellation_that_waits_ends_with_the_run(
    api: Api, tmp_path: Path, action: str, state: str
) -> None:
    """Whoever cancels a run and waits for its end waits for ever."""
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
    """A cancelled run is called interrupted at once, so its thread's next run starts beside it."""
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


async def test_a_new_run_supersedes_the_running_and_the_waiting(api: Api, tmp_path: Path) -> None:
    """A run that is to replace all others leaves those that wait, which then run before it."""
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
async def test_undoing_a_run_nobody_watches_frees_its_thread(
    api: Api, tmp_path: Path, way: str, state: str
) -> None:
    """The thread of a rolled-back or deleted run stays busy if nobody follows its stream."""
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


async def test_joiners_of_a_deleted_run_are_let_go(api: Api, tmp_path: Path) -> None:
    """Whoever follows a run that is deleted waits for ever."""
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


async def test_followers_of_a_deleted_threads_runs_are_let_go(api: Api, tmp_path: Path) -> None:
    """Whoever follows a run of a thread that is deleted waits for ever, and the run goes on."""
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


# --- what a thread is when a run of it is gone


@pytest.mark.parametrize("way", ["interrupt", "rollback", "delete"])
async def test_a_waiting_run_that_is_gone_leaves_the_thread_as_it_was(api: Api, way: str) -> None:
    """Cancelling a run that waits makes an interrupted thread idle, and its question is lost."""
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


async def test_a_thread_stopped_by_its_user_stays_so_when_a_waiting_run_is_cancelled(
    api: Api, tmp_path: Path
) -> None:
    """A thread that a user stopped midway is called failed once a run that waits is cancelled."""
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


async def test_deleting_an_answer_asks_again(api: Api) -> None:
    """A thread is called idle although, without the answer, its graph waits for one again."""
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


async def test_deleting_the_last_run_takes_its_values_from_the_thread(api: Api) -> None:
    """A thread shows the values of a run that was deleted, and its state those from before."""
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


async def test_deleting_an_earlier_run_leaves_the_thread_as_the_last_one_did(api: Api) -> None:
    """A thread whose last run has failed is no longer called failed when another is deleted."""
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


@pytest.fixture(scope="module")
def settings() -> Iterator[None]:
    with runtime.serving("echo", "sleeper"):
        yield


@pytest.fixture
async def db(settings: None, tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "runs.db") as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


async def test_a_run_can_be_cancelled_however_long_it_has_been_quiet(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four minutes without a message the worker no longer hears that it is to stop."""
    run = await runtime.start_run(uuid4(), "echo", {})
    await db.write(lambda conn: run_claim.claim(conn, 1))
    loop = asyncio.get_running_loop()
    async with Runs.enter(run["run_id"], run["thread_id"], loop, False) as stop:
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 1_000_000)
        for _ in range(20):
            await asyncio.sleep(0)  # Whatever has a deadline meets it now.
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


async def test_a_thread_with_a_thousand_waiting_runs_does_not_delay_another(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that wait for their thread stand in the way of the runs of all other threads."""
    # The blocking run would use up the grace period at the end.
    monkeypatch.setattr(options, "_current", options.Options(grace_seconds=0))
    async with runtime.working(2):
        blocking = await runtime.start_run(uuid4(), "sleeper", LONG)
        await _until_running(blocking["run_id"])
        await _pile_up(db, blocking, 1000)
        free = await runtime.start_run(uuid4(), "echo", {})
        async with asyncio.timeout(served.PATIENCE):
            assert await runtime.ended(free["run_id"]) == "success"
        pending = await db.read(lambda conn: len(run_rows.in_flight(conn, blocking["thread_id"])))
        assert pending == 1001


async def test_a_run_that_comes_when_no_slot_is_free_starts_when_one_is(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that comes while all workers are busy waits longer than for one of them."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 600.0)  # Nothing but the end of a run helps it.
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
    """How many runs a claim finds, and how many thousands of SQLite's instructions it takes."""
    claimed, counted = ticks(conn, lambda: run_claim.claim(conn, 10), 1000)
    return len(claimed.runs), counted


@pytest.mark.only("sqlite")  # Its machine counts steps; a clock would measure this one.
async def test_looking_for_work_behind_ten_thousand_waiting_runs_is_cheap(db: Database) -> None:
    """Each look at the queue compares all waiting runs with each other."""
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
async def test_taking_the_first_of_ten_thousand_waiting_runs_is_cheap(db: Database) -> None:
    """Working off what waits for one thread takes longer the more waits."""
    await _pile_up(db, await runtime.start_run(uuid4(), "sleeper", LONG), 10_000)
    found, effort = await db.write(_effort)
    assert found == 1
    assert effort <= 200


async def test_queueing_behind_many_runs_reads_none_of_them(db: Database) -> None:
    """Each further run of a thread costs more than the one before it."""
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


async def test_a_graph_that_raises_cancelled_error_only_fails_its_run(
    api: Api, tmp_path: Path
) -> None:
    """A graph that raises CancelledError by itself is taken for a shutdown, and run for ever."""
    record = tmp_path / "record"
    body = {"error": "CancelledError", "record": str(record)}
    thread = await api.thread()
    run = await api.run(thread, "failing", body)
    assert await api.ended(thread, run) == "error"
    assert 1 <= len(record.read_text().splitlines()) <= 3
    assert await _thread_status(api, thread) == "error"
    after = await api.run(thread, "echo", {"value": 1})
    assert await api.ended(thread, after) == "success"


async def test_who_sees_the_end_of_a_run_finds_its_status(api: Api) -> None:
    """A stream ends before the status of its run is written, so its client finds it running."""
    for _ in range(10):
        thread = await api.thread()
        body = {"assistant_id": "echo", "input": {"value": 1}}
        events = await api.events("POST", f"/threads/{thread}/runs/stream", body)
        run = json.loads(events[0].data)["run_id"]
        assert await api.status(thread, run) == "success"
        assert await _thread_status(api, thread) == "idle"


async def test_the_stream_of_a_stateless_run_outlives_its_thread(api: Api) -> None:
    """The thread of a stateless run goes, and with it the end of the stream."""
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


async def test_an_interruption_is_told_as_an_error_and_values_need_a_checkpoint(
    db: Database,
) -> None:
    """A run that is cancelled before its first step wipes out the values of its thread."""
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


async def test_a_rejected_run_leaves_its_thread_untouched(api: Api, tmp_path: Path) -> None:
    """A run that is refused because another is in flight has already changed the thread."""
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


async def test_of_many_runs_at_once_one_is_accepted_and_the_rest_rejected(api: Api) -> None:
    """Two runs that are to be alone on their thread are both accepted."""
    thread = await api.thread()
    body = {"assistant_id": "sleeper", "input": LONG, "multitask_strategy": "reject"}
    answers = await asyncio.gather(
        *(api.http.post(f"/threads/{thread}/runs", json=body) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    [run] = await api.get(f"/threads/{thread}/runs")
    await api.post(f"/threads/{thread}/runs/{run['run_id']}/cancel?wait=true")


async def test_a_cron_with_an_end_fires_and_does_not_hold_up_the_others(api: Api) -> None:
    """The end of a cron, which clients send as text, stops the scheduler for all crons."""
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


async def test_a_rolled_back_run_leaves_no_checkpoint(api: Api) -> None:
    """The checkpoints of a run that is rolled back are not found, and its steps stay."""
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
        # For what a run needs that does little, on a machine that does much else.
        BG_JOB_TIMEOUT_SECS="5",
        FF_CRONS_ENABLED="false",
        CRON_SCHEDULER_SLEEP_TIME="1",
    ) as started:
        yield started


async def test_a_run_that_takes_too_long_times_out(strict: Running, tmp_path: Path) -> None:
    """A run goes on past the time it may take, or its thread is left busy."""
    record = tmp_path / "record"
    async with served.client(strict) as api:
        thread = await api.thread()
        run = await api.run(thread, "sleeper", {"seconds": 120, "record": str(record)})
        assert await api.ended(thread, run) == "timeout"
        assert (await served.lines(record, 2))[-1] == "cancelled"
        assert await _thread_status(api, thread) == "error"
        after = await api.run(thread, "echo", {"value": 1})
        assert await api.ended(thread, after) == "success"


async def test_crons_that_are_switched_off_do_not_fire(strict: Running) -> None:
    """Crons fire although the server was told that it is not the one to do so."""
    async with served.client(strict) as api:
        thread = await api.thread()
        body = {"assistant_id": "echo", "input": {}, "schedule": "* * * * * *"}
        cron = await api.post(f"/threads/{thread}/runs/crons", body)
        due = datetime.fromisoformat(cron["next_run_date"])
        # Long enough for a scheduler that looks every second to have looked twice.
        await asyncio.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + 2.5)
        assert await api.get(f"/threads/{thread}/runs") == []
