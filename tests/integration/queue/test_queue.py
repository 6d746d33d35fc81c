"""The queue: one attempt at a time, no run lost, and no attempt counted for a shutdown."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph.graph import END, START, StateGraph
from sqlalchemy import func, select
from starlette.exceptions import HTTPException
from typing_extensions import TypedDict

from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, thread_checkpoints, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import DatabaseBusy
from langgraph_runtime_sql.events.controls import Controls
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.queue.isolated_loops import IsolatedLoops
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.operations import rows
from tests.support.runtime import set_options

GRAPHS = ("echo", "steps", "sleeper")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shut down without a grace period for runs."""
    set_options(monkeypatch, grace_seconds=0)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "queue.db") as opened:
        await runtime.register(GRAPHS)
        yield opened


async def all_runs() -> list[Row]:
    return await current().database.read(lambda conn: conn.fetchall(select(runs)))


async def until(condition: Any) -> None:
    async with asyncio.timeout(runtime.PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


class Overlap:
    """A graph of one node that counts its concurrent executions.

    Args:
        errors: What the first runs of the node raise, in turn.
        together: The first ones wait for each other until there are so many.

    Attributes:
        errors: What the first runs of the node raise, in turn.
        most: How often it has run at the same time.
        calls: How often it has run.
    """

    def __init__(self, *errors: BaseException, together: int = 1) -> None:
        self.errors = list(errors)
        self.now = self.most = self.calls = 0

        met = asyncio.Event()

        class State(TypedDict, total=False):
            calls: int

        async def work(state: State) -> State:
            self.now += 1
            self.calls += 1
            self.most = max(self.most, self.now)
            if self.now >= together:
                met.set()
            try:
                async with asyncio.timeout(runtime.PATIENCE):
                    await met.wait()
                await asyncio.sleep(0.05)
                if self.errors:
                    raise self.errors.pop(0)
            finally:
                self.now -= 1
            return {"calls": self.calls}

        graph = StateGraph(State).add_node(work).add_edge(START, "work").add_edge("work", END)
        self.graph = graph.compile()

    @asynccontextmanager
    async def served(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
        from langgraph_api import graph

        monkeypatch.setitem(graph.GRAPHS, "echo", self.graph)
        yield


# --- one attempt at a time


async def test_sweep_does_not_free_runs_that_are_about_to_start(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.0)
    record = tmp_path / "record"
    async with runtime.working(50):
        started = [
            await runtime.start_run(
                uuid4(), "steps", {"count": 3, "record": str(record)}, multitask_strategy="enqueue"
            )
            for _ in range(40)
        ]
        assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 40
    assert {row["attempt"] for row in await all_runs()} == {1}
    assert len(record.read_text().splitlines()) == 120


async def test_attempts_of_a_run_do_not_overlap(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.001)
    graph = Overlap(DatabaseBusy(), DatabaseBusy())
    async with graph.served(monkeypatch), runtime.working():
        run = await runtime.start_run(uuid4(), "echo", {})
        assert await runtime.ended(run["run_id"]) == "success"
    assert (graph.most, graph.calls) == (1, 3)
    assert [row["attempt"] for row in await all_runs()] == [3]


async def test_thread_runs_one_run_at_a_time_in_order(
    db: database.Database, tmp_path: Path
) -> None:
    thread, record = uuid4(), tmp_path / "record"
    async with runtime.working(20):
        started = [
            await runtime.start_run(
                thread,
                "steps",
                {"count": 2, "delay": 0.005, "record": str(record)},
                multitask_strategy="enqueue",
            )
            for _ in range(15)
        ]
        assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 15
    lines = [line.split() for line in record.read_text().splitlines()]
    assert lines == [[str(run["run_id"]), step] for run in started for step in ("0", "1")]


# --- stops


async def test_stop_at_any_moment_loses_no_run(
    db: database.Database, rng: Any, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    started = []
    for _ in range(25):
        async with runtime.working():
            started.append(
                await runtime.start_run(
                    uuid4(), "steps", {"count": 4, "delay": 0.01, "record": str(record)}
                )
            )
            await asyncio.sleep(rng.choice([0, 0, 0.001, 0.005, 0.02]))
        left = [row for row in await all_runs() if row["status"] == "running"]
        assert left == []
        assert {row["attempt"] for row in await all_runs() if row["status"] == "pending"} <= {0}
    async with runtime.working(50):
        assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 25
    for run in started:
        thread = await runtime.thread(run["thread_id"])
        assert (thread["status"], thread["values"]["done"]) == ("idle", [0, 1, 2, 3])


async def test_run_continues_after_any_number_of_stops(
    db: database.Database, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    asked = {"count": 12, "delay": 0.02, "record": str(record)}
    run = await runtime.start_run(uuid4(), "steps", asked, durability="sync")
    for stop in range(5):
        async with runtime.working():
            await until(lambda n=stop: record.exists() and len(_steps(record)) >= 2 * n + 2)
    async with runtime.working():
        assert await runtime.ended(run["run_id"]) == "success"
    executed = Counter(_steps(record))
    assert set(executed) == set(range(12))
    # Each stop may repeat the step that it interrupted.
    assert sum(executed.values()) <= 12 + 5
    assert [row["attempt"] for row in await all_runs()] == [1]


def _steps(record: Path) -> list[int]:
    return [int(line.split()[1]) for line in record.read_text().splitlines()]


async def test_cancelled_run_that_is_handed_back_is_not_retried(
    db: database.Database,
) -> None:
    """Its worker stops or is lost before it receives the cancellation."""
    run = await runtime.start_run(uuid4(), "echo", {})
    claimed = await db.write(lambda conn: run_claim.claim(conn, 1))
    await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])
    [(row, attempt)] = claimed.runs
    await db.write(lambda conn: run_claim.release(conn, row["run_id"], attempt))
    assert await runtime.status(run["run_id"]) == "interrupted"
    assert (await runtime.thread(run["thread_id"]))["status"] == "idle"


async def test_cancelled_runs_are_not_retried_when_their_worker_dies(
    db: database.Database,
) -> None:
    kept = await runtime.start_run(uuid4(), "echo", {})
    undone = await runtime.start_run(uuid4(), "echo", {})
    await db.write(lambda conn: run_claim.claim(conn, 2))
    await Runs.cancel(None, [kept["run_id"]], thread_id=kept["thread_id"])
    await Runs.cancel(None, [undone["run_id"]], thread_id=undone["thread_id"], action="rollback")
    await recovery.recover()
    assert await runtime.status(kept["run_id"]) == "interrupted"
    assert await runtime.status(undone["run_id"]) is None
    for run in (kept, undone):
        assert (await runtime.thread(run["thread_id"]))["status"] == "idle"
    assert (await db.write(lambda conn: run_claim.claim(conn, 9))).runs == []


async def test_cancelled_stateless_run_leaves_no_thread(db: database.Database) -> None:
    run = await runtime.start_run(None, "echo", {}, after_seconds=60)
    await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])
    assert await runtime.thread(run["thread_id"]) is None
    assert await all_runs() == []


async def test_lost_and_cancelled_stateless_run_leaves_no_thread(
    db: database.Database,
) -> None:
    run = await runtime.start_run(None, "echo", {})
    await db.write(lambda conn: run_claim.claim(conn, 1))
    await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])
    await recovery.recover()
    assert await runtime.thread(run["thread_id"]) is None


# --- retries


async def test_retriable_error_is_not_sent_to_followers(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Overlap(DatabaseBusy())
    async with graph.served(monkeypatch):
        run = await runtime.start_run(uuid4(), "echo", {}, stream_mode=["values"])
        channel = await Runs.Stream.subscribe(run["run_id"], run["thread_id"])
        async with runtime.working(), asyncio.timeout(runtime.PATIENCE):
            events = [
                (name.decode(), json.loads(data))
                async for name, data, _ in Runs.Stream.join(
                    run["run_id"], stream_channel=channel, thread_id=run["thread_id"]
                )
            ]
    assert [data["attempt"] for name, data in events if name == "metadata"] == [1, 2]
    assert "error" not in [name for name, _ in events]
    assert events[-1] == ("values", {"calls": 2})


async def test_run_past_its_retries_ends_in_error(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Overlap(*[DatabaseBusy() for _ in range(9)])
    async with graph.served(monkeypatch), runtime.working():
        run = await runtime.start_run(uuid4(), "echo", {})
        assert await runtime.ended(run["run_id"]) == "error"
    assert graph.calls == 3
    thread = await runtime.thread(run["thread_id"])
    assert thread["status"] == "error"
    assert "exceeded max attempts (3)" in thread["error"]["message"]


async def test_runs_lost_twice_run_one_at_a_time(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may have killed the process; it must not take the others with it again."""
    graph = Overlap()
    async with graph.served(monkeypatch):
        started = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(4)]
        for _ in range(2):
            assert len((await db.write(lambda conn: run_claim.claim(conn, 9))).runs) == 4
            await recovery.recover()
        fresh = [await runtime.start_run(uuid4(), "steps", {"delay": 0.01}) for _ in range(3)]
        async with runtime.working():
            assert [await runtime.ended(run["run_id"]) for run in fresh] == ["success"] * 3
            assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 4
    assert graph.most == 1


async def test_long_run_lost_twice_does_not_block_the_others_forever(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_claim, "APART_SECONDS", 0.2)
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    long = await runtime.start_run(uuid4(), "sleeper", {"seconds": 60})
    short = await runtime.start_run(uuid4(), "echo", {})
    for _ in range(2):
        assert len((await db.write(lambda conn: run_claim.claim(conn, 9))).runs) == 2
        await recovery.recover()
    async with runtime.working():
        assert await runtime.ended(short["run_id"]) == "success"
        assert await runtime.status(long["run_id"]) == "running"


async def test_runs_lost_once_run_together(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Overlap(together=4)
    async with graph.served(monkeypatch):
        started = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(4)]
        await db.write(lambda conn: run_claim.claim(conn, 9))
        await recovery.recover()
        async with runtime.working():
            assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 4
    assert graph.most == 4


# --- nothing blocks the queue


async def test_invalid_runs_do_not_block_valid_ones(db: database.Database) -> None:
    """There are more invalid runs than slots, and they are older than the valid one."""
    bad = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(6)]
    ids = [run["run_id"] for run in bad]

    def spoil(conn: Connection) -> None:
        conn.execute(runs.update().where(runs.c.run_id.in_(ids[:3])).values(kwargs={}))
        unknown = {"config": {"configurable": {"graph_id": "gone"}}}
        conn.execute(runs.update().where(runs.c.run_id.in_(ids[3:])).values(kwargs=unknown))

    await db.write(spoil)
    good = await runtime.start_run(uuid4(), "echo", {"value": 1})
    async with runtime.working(2):
        assert await runtime.ended(good["run_id"]) == "success"
        assert [await runtime.ended(run_id) for run_id in ids] == ["error"] * 6
    for run in bad:
        assert (await runtime.thread(run["thread_id"]))["status"] == "error"


async def test_sweep_starts_runs_whose_wake_up_was_lost(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    async with runtime.working():
        monkeypatch.setattr(current().bus.controls, "wake", lambda: None)
        run = await runtime.start_run(uuid4(), "echo", {})
        assert await runtime.ended(run["run_id"]) == "success"


async def test_run_with_after_seconds_starts_when_it_is_due(db: database.Database) -> None:
    async with runtime.working():
        loop = asyncio.get_running_loop()
        before = loop.time()
        late = await runtime.start_run(uuid4(), "echo", {}, after_seconds=600)
        soon = await runtime.start_run(uuid4(), "echo", {}, after_seconds=1)
        now = await runtime.start_run(uuid4(), "echo", {})
        assert await runtime.ended(now["run_id"]) == "success"
        assert await runtime.ended(soon["run_id"]) == "success"
        assert loop.time() - before >= 1
        assert await runtime.status(late["run_id"]) == "pending"


async def test_clock_set_back_keeps_the_order_of_runs(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import datetime as dates

    from langgraph_runtime_sql import clock

    class Clock(dates.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dates.datetime.now(tz) - dates.timedelta(hours=2)

    thread, record = uuid4(), tmp_path / "record"
    asked = {"count": 1, "record": str(record)}
    started = [await runtime.start_run(thread, "steps", asked, multitask_strategy="enqueue")]
    monkeypatch.setattr(clock, "datetime", Clock)
    started += [
        await runtime.start_run(thread, "steps", asked, multitask_strategy="enqueue")
        for _ in range(2)
    ]
    async with runtime.working():
        assert [await runtime.ended(run["run_id"]) for run in started] == ["success"] * 3
    order = [line.split()[0] for line in record.read_text().splitlines()]
    assert order == [str(run["run_id"]) for run in started]


# --- isolated loops


async def test_runs_on_isolated_loops_are_handed_back_at_shutdown(
    db: database.Database, tmp_path: Path
) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    asked = {"count": 8, "record": str(record), "gate": str(gate)}
    run = await runtime.start_run(uuid4(), "steps", asked, durability="sync")
    for stop in range(3):
        gate.write_text(str(2 * stop + 2))
        async with runtime.working(2, isolated=True):
            await until(lambda n=stop: record.exists() and 2 * n + 2 in _steps(record))
        assert await runtime.status(run["run_id"]) == "pending"
    gate.write_text("8")
    async with runtime.working(2, isolated=True):
        assert await runtime.ended(run["run_id"]) == "success"
    assert set(_steps(record)) == set(range(8))
    assert len(_steps(record)) <= 8 + 3


async def test_isolated_loop_is_free_only_after_its_work_has_stopped() -> None:
    loops, stopped = IsolatedLoops(1), asyncio.Event()
    here, started = asyncio.get_running_loop(), asyncio.Event()

    async def slow_to_stop() -> None:
        here.call_soon_threadsafe(started.set)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            here.call_soon_threadsafe(stopped.set)

    try:
        task = asyncio.create_task(loops.run(slow_to_stop()))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert stopped.is_set()
    finally:
        loops.close()


# --- what runs do to their thread


async def test_deleting_the_thread_of_a_working_run_is_no_failure(
    db: database.Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker ends before it receives the cancellation.
    monkeypatch.setattr(Controls, "send", lambda *_: None)
    async with runtime.working() as work:
        for wanted in ("with the thread", "alone"):
            run = await runtime.start_run(uuid4(), "steps", {"count": 99, "delay": 0.01})
            where: Any = _config(run["thread_id"])
            async with asyncio.timeout(runtime.PATIENCE):
                while not (await Threads.State.get(None, where)).values.get("done"):
                    await asyncio.sleep(0.01)
            if wanted == "alone":
                await rows(Runs.delete(None, run["run_id"], thread_id=run["thread_id"]))
            else:
                await rows(Threads.delete(None, run["thread_id"]))
            async with asyncio.timeout(runtime.PATIENCE):
                while work.active:
                    await asyncio.sleep(0.01)
    said = [each for each in caplog.records if each.name == queue.__name__]
    assert [each.levelname for each in said] == ["INFO", "INFO"]


async def test_rolled_back_run_leaves_no_stale_values(db: database.Database) -> None:
    thread = uuid4()
    async with runtime.working():
        first = await runtime.start_run(thread, "steps", {"count": 2})
        assert await runtime.ended(first["run_id"]) == "success"
        before = await runtime.thread(thread)
        second = await runtime.start_run(thread, "steps", {"count": 99, "delay": 0.02})
        async with asyncio.timeout(runtime.PATIENCE):
            while len((await Threads.State.get(None, _config(thread))).values["done"]) < 4:
                await asyncio.sleep(0.01)
        await Runs.cancel(None, [second["run_id"]], thread_id=thread, action="rollback")
        assert await runtime.ended(second["run_id"]) is None
    after = await runtime.thread(thread)
    assert (after["values"], after["status"]) == (before["values"], "idle")
    state = await Threads.State.get(None, _config(thread))
    assert state.values["done"] == [0, 1]
    assert state.next == ()


def _config(thread: UUID) -> Any:
    return {"configurable": {"thread_id": str(thread)}}


async def test_subscriber_from_before_the_run_misses_no_event(db: database.Database) -> None:
    """The client subscribes before the run is committed and reads after it has ended."""
    run_id, thread = uuid4(), uuid4()
    channel = await Runs.Stream.subscribe(run_id, thread)
    from langgraph_api.models.run import create_valid_run

    async with runtime.working():
        body: Any = {"assistant_id": "echo", "input": {"value": 7}, "if_not_exists": "create"}
        await create_valid_run(None, str(thread), body, {}, run_id=run_id)  # type: ignore[arg-type]
        assert await runtime.ended(run_id) == "success"
        async with asyncio.timeout(runtime.PATIENCE):
            events = [
                name
                async for name, _, _ in Runs.Stream.join(
                    run_id, stream_channel=channel, thread_id=thread
                )
            ]
    assert events[0] == b"metadata"
    assert b"values" in events


# langgraph warns about every run without checkpoints.
@pytest.mark.filterwarnings("ignore:`durability` has no effect:UserWarning")
async def test_creator_of_a_deleted_stateless_run_still_gets_its_stream(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread is deleted before the creator reads; other clients find no such thread."""

    async def only_own(*_: Any) -> Visible:
        return Visible({"user_id": "ada"})

    run_id = uuid4()
    channels = [await Runs.Stream.subscribe(run_id) for _ in range(2)]
    from langgraph_api.models.run import create_valid_run

    async with runtime.working(), asyncio.timeout(runtime.PATIENCE):
        body: Any = {"assistant_id": "echo", "input": {"value": 7}}
        run = await create_valid_run(None, None, body, {}, run_id=run_id)  # type: ignore[arg-type]
        assert await runtime.ended(run_id) is None
        assert await runtime.thread(run["thread_id"]) is None
        monkeypatch.setattr(reads, "admit", only_own)

        async def follow(ignore_404: bool) -> list[bytes]:
            joined = Runs.Stream.join(
                run_id,
                stream_channel=channels.pop(),
                thread_id=run["thread_id"],
                ignore_404=ignore_404,
            )
            return [name async for name, _, _ in joined]

        assert b"values" in await follow(ignore_404=True)
        with pytest.raises(HTTPException, match="Thread not found"):
            await follow(ignore_404=False)


async def test_repeated_prune_keeps_one_checkpoint(db: database.Database) -> None:
    thread = uuid4()
    counts = []
    async with runtime.working():
        for _ in range(4):
            run = await runtime.start_run(thread, "steps", {"count": 3})
            assert await runtime.ended(run["run_id"]) == "success"
            await Threads.prune([thread], strategy="keep_latest")
            counts.append(
                await db.read(
                    lambda conn: conn.scalar(select(func.count()).select_from(thread_checkpoints))
                )
            )
    assert counts == [1, 1, 1, 1]
    state = await Threads.State.get(None, _config(thread))
    assert len(state.values["done"]) == 12


async def test_threads_are_idle_after_their_runs(db: database.Database) -> None:
    def statuses(conn: Connection) -> list[Row]:
        return conn.fetchall(select(threads.c.status))

    async with runtime.working(3):
        started = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(20)]
        for run in started:
            await runtime.ended(run["run_id"])
    assert {row["status"] for row in await db.read(statuses)} == {"idle"}
