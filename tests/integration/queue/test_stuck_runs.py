"""Runs that continue after their cancellation: the log and metrics name them."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.graph import END, START, StateGraph
from prometheus_client import REGISTRY
from typing_extensions import TypedDict

from langgraph_runtime_sql import lifespan
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.queue import queue, stuck_runs
from tests.support import runtime

GRAPHS = ("echo", "sleeper")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]


class Clock:
    """The clock of the search for stuck runs, which reads it once a sweep.

    Attributes:
        step: Seconds from one reading to the next. The clock stands still until a test sets it.
        readings: How often the clock was read.
    """

    def __init__(self) -> None:
        self.step = 0.0
        self.readings = 0
        self._now = 0.0

    def __call__(self) -> float:
        self.readings += 1
        self._now += self.step
        return self._now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sweep often. A run becomes late when its test says so, however busy the machine is."""
    clock = Clock()
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(stuck_runs, "elapsed", clock)
    return clock


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "stuck_runs.db") as opened:
        await runtime.register(GRAPHS)
        yield opened


async def until(condition: Any) -> None:
    async with asyncio.timeout(runtime.PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


def count(keeps: str) -> float:
    """Return the number of stuck runs that `/metrics` shows."""
    return REGISTRY.get_sample_value("threadhold_stuck_runs", {"keeps": keeps}) or 0


async def cancel(run: Row) -> None:
    await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])


def told(caplog: pytest.LogCaptureFixture, run: Row) -> list[str]:
    """Return the log messages about a run."""
    said = [str(each.msg) for each in caplog.records if each.name == stuck_runs.__name__]
    return [each for each in said if str(run["run_id"]) in each]


@pytest.mark.parametrize("isolated", [False, True])
async def test_run_that_ignores_its_cancellation_is_logged_once(
    isolated: bool,
    db: database.Database,
    clock: Clock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    record, stopping = tmp_path / "record", tmp_path / "stopping"
    asked = {"seconds": runtime.PATIENCE, "record": str(record), "stopping": str(stopping)}
    run = await runtime.start_run(uuid4(), "sleeper", asked)
    async with runtime.working(2, isolated=isolated):
        await until(lambda: record.exists() and "started" in record.read_text())
        await cancel(run)
        clock.step = stuck_runs.LATE_SECONDS
        await until(lambda: count("slot") == 1)
        clock.step, seen = 0.0, clock.readings
        other = await runtime.start_run(uuid4(), "echo", {"value": "x"})
        assert await runtime.ended(other["run_id"]) == "success"
        await until(lambda: clock.readings >= seen + 3)
        [said] = told(caplog, run)
        assert "'keeps': 'slot'" in said
        stopping.touch()
        assert await runtime.ended(run["run_id"]) == "interrupted"
        await until(lambda: count("slot") == 0)
    assert told(caplog, other) == []
    assert len(told(caplog, run)) == 1


@pytest.mark.parametrize("isolated", [False, True])
async def test_sync_node_that_outlives_its_run_is_logged(
    isolated: bool,
    db: database.Database,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph_api import graph

    started, go_on = threading.Event(), threading.Event()

    class State(TypedDict, total=False):
        value: str

    def work(state: State) -> State:
        started.set()
        go_on.wait(runtime.PATIENCE * 2)
        return state

    plain = StateGraph(State).add_node(work).add_edge(START, "work").add_edge("work", END)
    monkeypatch.setitem(graph.GRAPHS, "echo", plain.compile())
    lifespan._widen_executor(2)
    try:
        async with runtime.working(2, isolated=isolated) as work_queue:
            run = await runtime.start_run(uuid4(), "echo", {"value": "x"})
            await until(started.is_set)
            await cancel(run)
            # The slot of the run is free at once.
            assert await runtime.ended(run["run_id"]) == "interrupted"
            await until(lambda: not work_queue.active)
            clock.step = stuck_runs.LATE_SECONDS
            await until(lambda: count("thread") == 1)
            [said] = told(caplog, run)
            assert "'keeps': 'thread'" in said
            go_on.set()
            await until(lambda: count("thread") == 0)
    finally:
        go_on.set()
    assert len(told(caplog, run)) == 1
