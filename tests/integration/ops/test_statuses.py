"""The runtime changes statuses as the diagrams in `statuses` say: each drawn change, and no other."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.statuses import (
    ENDED,
    ROLLBACK,
    RUN_TRANSITIONS,
    THREAD_TRANSITIONS,
    RunStatus,
    ThreadStatus,
)
from tests.support import runtime, status_changes
from tests.support.operations import rows

GRAPHS = ("echo", "interrupt", "failing")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "statuses.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(path) as opened:
        await runtime.register(GRAPHS)
        status_changes.record(path)
        yield opened


def drawn(transitions: Mapping[Any, Any], *first: str) -> set[tuple[str | None, str]]:
    """The changes of a diagram, and the statuses that a new row may have."""
    changes = {(old, new) for old, following in transitions.items() for new in following}
    return {*changes, *((None, status) for status in first)}


async def start(thread: UUID, db: Database) -> Claim:
    """Queue a run and claim it, as its worker would."""
    asked = await runtime.start_run(thread, "echo", {})
    [(run, attempt)] = (await db.write(lambda conn: run_claim.claim(conn, 1))).runs
    assert run["run_id"] == asked["run_id"]
    return Claim(str(run["run_id"]), attempt, owner=run_claim.OWNER)


async def end(thread: UUID, claim: Claim, status: str, error: Any = None) -> None:
    """End the run of a claim as its worker does."""
    held = request_context.claim.set(claim)
    try:
        await Threads.set_joint_status(None, thread, claim.run_id, status, "echo", None, error)
    finally:
        request_context.claim.reset(held)


async def test_runs_take_each_drawn_change_of_status_and_no_other(db: Database, path: Path) -> None:
    from langgraph_api.errors import UserInterrupt, UserRollback

    thread = uuid4()
    errors: dict[str, BaseException | None] = {
        RunStatus.SUCCESS: None,
        RunStatus.ERROR: ValueError("as asked"),
        RunStatus.TIMEOUT: TimeoutError("too long"),
        RunStatus.INTERRUPTED: UserInterrupt(),
    }
    assert set(errors) == ENDED
    for status, error in errors.items():
        claim = await start(thread, db)
        await end(thread, claim, status, error)
        assert await runtime.status(UUID(claim.run_id)) == status
    # Undone: the row goes.
    await end(thread, await start(thread, db), ROLLBACK, UserRollback())
    # Another attempt, cancelled before it starts.
    claim = await start(thread, db)
    held = request_context.claim.set(claim)
    await Runs.set_status(None, claim.run_id, RunStatus.PENDING)
    request_context.claim.reset(held)
    await Runs.cancel(None, [claim.run_id], thread_id=thread, action="interrupt")
    assert await runtime.status(UUID(claim.run_id)) == RunStatus.INTERRUPTED
    # Deleted: the row goes, too.
    claim = await start(thread, db)
    await rows(Runs.delete(None, claim.run_id, thread_id=thread))
    assert status_changes.recorded(path, "runs") == drawn(RUN_TRANSITIONS, RunStatus.PENDING)


async def write_state(thread: UUID, values: Any, **place: Any) -> None:
    """Write a state as a client does."""
    await Threads.State.post(None, {"configurable": {"thread_id": str(thread)}}, values, **place)


async def test_threads_take_each_drawn_change_of_status_and_no_other(
    db: Database, path: Path
) -> None:
    async def run(thread: UUID, graph: str, given: Any, left: ThreadStatus) -> None:
        asked = await runtime.start_run(thread, graph, given)
        assert (await runtime.thread(thread))["status"] == ThreadStatus.BUSY
        await runtime.ended(asked["run_id"])
        assert (await runtime.thread(thread))["status"] == left

    copies = {}
    questions = {"questions": ["a"]}
    async with runtime.working():
        for graph, given, left in (
            ("echo", {}, ThreadStatus.IDLE),
            ("interrupt", questions, ThreadStatus.INTERRUPTED),
            ("failing", {}, ThreadStatus.ERROR),
        ):
            thread = uuid4()
            await run(thread, graph, given, left)
            await run(thread, graph, given, left)
            [copied] = await rows(Threads.copy(None, thread))
            assert copied["status"] == left
            copies[left] = copied["thread_id"]
        # A client answers the question itself, and asks it again.
        asked = copies[ThreadStatus.INTERRUPTED]
        await write_state(asked, None, as_node="__end__")
        assert (await runtime.thread(asked))["status"] == ThreadStatus.IDLE
        await write_state(asked, questions, as_node="__start__")
        assert (await runtime.thread(asked))["status"] == ThreadStatus.INTERRUPTED
        failed = copies[ThreadStatus.ERROR]
        await write_state(failed, {}, as_node="__start__")
        assert (await runtime.thread(failed))["status"] == ThreadStatus.INTERRUPTED
        failed = (await rows(Threads.copy(None, failed)))[0]["thread_id"]
        await run(failed, "failing", {}, ThreadStatus.ERROR)
        await write_state(failed, None, as_node="__end__")
        assert (await runtime.thread(failed))["status"] == ThreadStatus.IDLE
    assert status_changes.recorded(path, "threads") == drawn(THREAD_TRANSITIONS, *ThreadStatus)
