"""Threads match their runs after any mixture of starting, resuming, cancelling and deleting."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.statuses import RUN_TRANSITIONS, RunStatus
from tests.support import runtime, status_changes
from tests.support.operations import rows

GRAPHS = ("echo", "steps", "interrupt", "sleeper", "failing")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]

# The server refuses so if the thread or run was changed or deleted meanwhile.
REFUSALS = (404, 409)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "mixtures.db"
    async with runtime.opened(path) as opened:
        await runtime.register(GRAPHS)
        status_changes.record(path)
        yield opened
        for old, new in status_changes.recorded(path, "runs"):
            assert old is None or RunStatus(new) in RUN_TRANSITIONS[RunStatus(old)], (old, new)


class Mixture:
    """Random clients of a few threads, each of one graph.

    Attributes:
        graphs: Thread to graph.
        started: Every run that was accepted.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.graphs: dict[UUID, str] = {uuid4(): graph for graph in (*GRAPHS, "interrupt")}
        self.started: list[tuple[UUID, UUID]] = []

    async def act(self) -> None:
        """Send one random request."""
        thread = self.rng.choice(list(self.graphs))
        mine = [run for of, run in self.started if of == thread]
        action = self.rng.choice(["start"] * 4 + ["cancel", "cancel", "delete", "state"])
        try:
            if action == "start" or not mine:
                await self._start(thread)
            elif action == "cancel":
                chosen = self.rng.sample(mine, min(len(mine), self.rng.randrange(1, 3)))
                how = self.rng.choice(["interrupt", "rollback"])
                await Runs.cancel(None, chosen, thread_id=thread, action=how)
            elif action == "delete":
                await rows(Runs.delete(None, self.rng.choice(mine), thread_id=thread))
            else:
                await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})
        except HTTPException as error:
            assert error.status_code in REFUSALS, error

    async def _start(self, thread: UUID) -> None:
        graph = self.graphs[thread]
        asked: dict[str, Any] = {
            "multitask_strategy": self.rng.choice(["enqueue", "interrupt", "rollback", "reject"]),
            "after_seconds": self.rng.choice([0, 0, 0, 0.05]),
        }
        inputs: dict[str, Any] = {
            "echo": {"value": self.rng.random()},
            "steps": {"count": 3, "delay": 0.01},
            "interrupt": {"questions": ["a", "b"]},
            "sleeper": {"seconds": 0.05},
            "failing": {"message": "as asked"},
        }
        given = inputs[graph]
        if graph == "interrupt" and self.rng.random() < 0.6:
            given, asked["command"] = None, {"resume": self.rng.random()}
        run = await runtime.start_run(thread, graph, given, **asked)
        self.started.append((thread, run["run_id"]))


async def _quiet(db: Database) -> None:
    """Wait until no run is in flight."""
    async with asyncio.timeout(runtime.PATIENCE):
        while await db.read(
            lambda conn: conn.fetchone(select(runs.c.seq).where(run_rows.IN_FLIGHT))
        ):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("isolated", [False, True])
async def test_threads_match_their_state_after_random_requests(
    db: Database, rng: random.Random, isolated: bool
) -> None:
    mixture = Mixture(rng)
    async with runtime.working(4, isolated=isolated):
        for _ in range(40):
            await asyncio.gather(*(mixture.act() for _ in range(rng.randrange(1, 5))))
            await asyncio.sleep(rng.choice([0, 0, 0.01, 0.05]))
        await _quiet(db)
    for thread, graph in mixture.graphs.items():
        row = await runtime.thread(thread)
        if row is None:
            continue
        state = await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})
        where = (graph, str(thread), row["status"], row["error"], state.next)
        assert row["status"] in ("idle", "interrupted", "error"), where
        assert row["status"] == row["resting_status"], where
        assert (row["values"] or {}) == (state.values if state.metadata else {}), where
        asked = {task.id for task in state.tasks if task.interrupts}
        assert set(row["interrupts"]) == asked, where
        if row["status"] != "error":
            assert (row["status"] == "interrupted") == bool(state.next), where


@pytest.mark.parametrize("told", [None, {"values": {"value": 9}, "next": [], "tasks": []}])
async def test_thread_of_a_cancelled_run_shows_its_stored_checkpoint(
    db: Database, told: Any
) -> None:
    """A cancelled run reports other values than were stored; the thread must not show them."""
    from langgraph_api.errors import UserInterrupt

    thread = uuid4()
    async with runtime.working():
        asked = await runtime.start_run(thread, "interrupt", {"questions": ["a"]})
        assert await runtime.ended(asked["run_id"]) == "success"
    before = await runtime.thread(thread)
    assert before["status"] == "interrupted"
    again = await runtime.start_run(thread, "interrupt", None, command={"resume": 1})
    await Threads.set_joint_status(
        *(None, thread, again["run_id"], "interrupted", "interrupt"), told, UserInterrupt("enough")
    )
    row = await runtime.thread(thread)
    for name in ("status", "values", "interrupts"):
        assert row[name] == before[name], name


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
@pytest.mark.parametrize("is_back", [False, True])
async def test_thread_shows_its_stored_checkpoint_if_its_worker_fails_while_cancelled(
    db: Database, is_back: bool, action: str
) -> None:
    """The run ends without another attempt, and the thread's row holds older values.

    Args:
        is_back: The worker hands the run back before it is cancelled.
    """
    thread = uuid4()
    asked = await runtime.start_run(thread, "interrupt", {"questions": ["a"]})
    async with runtime.working():
        assert await runtime.ended(asked["run_id"]) == "success"
    before = await runtime.thread(thread)
    again = await runtime.start_run(thread, "interrupt", None, command={"resume": 1})
    [(_, attempt)] = (await db.write(lambda conn: run_claim.claim(conn, 1))).runs
    behind = threads.update().values(values={"older": True}, status="busy", interrupts={})
    await db.write(lambda conn: conn.execute(behind))
    claim = Claim(str(again["run_id"]), attempt, owner=run_claim.OWNER)
    for step in ("hand back", "cancel") if is_back else ("cancel", "hand back"):
        held = request_context.claim.set(claim if step == "hand back" else None)
        if step == "cancel":
            await Runs.cancel(None, [again["run_id"]], thread_id=thread, action=action)
        else:
            await Runs.set_status(None, again["run_id"], "pending")
        request_context.claim.reset(held)
    wanted = None if action == "rollback" else "interrupted"
    assert await runtime.status(again["run_id"]) == wanted
    row = await runtime.thread(thread)
    for name in ("status", "values", "interrupts"):
        assert row[name] == before[name], name


@pytest.mark.parametrize("is_running", [False, True])
async def test_rolling_back_a_run_works_after_its_predecessor_was_deleted(
    db: Database, is_running: bool
) -> None:
    thread = uuid4()
    async with runtime.working():
        first = await runtime.start_run(thread, "sleeper", {"seconds": 0})
        assert await runtime.ended(first["run_id"]) == "success"
        later = {} if is_running else {"after_seconds": 600}
        second = await runtime.start_run(thread, "sleeper", {"seconds": 600}, **later)
        if is_running:
            async with asyncio.timeout(runtime.PATIENCE):
                while await runtime.status(second["run_id"]) != "running":
                    await asyncio.sleep(0.01)
        await rows(Runs.delete(None, first["run_id"], thread_id=thread))
        await Runs.cancel(None, [second["run_id"]], thread_id=thread, action="rollback")
        await _quiet(db)
    row = await runtime.thread(thread)
    state = await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})
    assert (row["status"], row["values"]) == ("idle", state.values if state.metadata else None)
