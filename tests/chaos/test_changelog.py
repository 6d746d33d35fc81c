"""Failures from the changelog of a comparable server, each tested here.

Failures of a single part are tested with that part; `ELSEWHERE` names these tests.
"""

import ast
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import bindparam, select

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.chaos.victim import lines, wait_for
from tests.support import databases, runtime
from tests.support.processes import GRAPHS, ROOT, environment, free_port, running

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.graphs("echo", "subgraph"),
]

ELSEWHERE = {
    "cancelled runs are retried if their worker died": (
        "integration/queue/test_queue.py::test_cancelled_runs_are_not_retried_when_their_worker_dies"
    ),
    "the queue is blocked by invalid runs": (
        "integration/queue/test_queue.py::test_invalid_runs_do_not_block_valid_ones"
    ),
    "crons fire twice": "integration/ops/test_crons.py::test_concurrent_schedulers_fire_each_cron_once",
    "keep_latest accumulates": (
        "integration/queue/test_queue.py::test_repeated_prune_keeps_one_checkpoint"
    ),
    "values are stale after a rollback": (
        "integration/queue/test_queue.py::test_rolled_back_run_leaves_no_stale_values"
    ),
    "a subscription races with the run": (
        "integration/queue/test_queue.py::test_subscriber_from_before_the_run_misses_no_event"
    ),
    "a retriable error is sent as the end": (
        "integration/queue/test_queue.py::test_retriable_error_is_not_sent_to_followers"
    ),
}


@pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE)
def test_failure_is_tested_elsewhere(place: str) -> None:
    path, _, name = place.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "changelog.db") as opened:
        await runtime.register(("echo", "subgraph"))
        yield opened


# --- checkpoint_map contamination after time travel


async def run(thread: UUID, graph: str, input: Any, **payload: Any) -> Any:
    """Run a graph to a successful end and return the stored run."""
    started = await runtime.start_run(thread, graph, input, **payload)
    assert await runtime.ended(started["run_id"]) == "success"
    by_id = select(runs).where(runs.c.run_id == started["run_id"])
    return await current().database.read(lambda conn: conn.fetchone(by_id))


def config(thread: UUID) -> Any:
    return {"configurable": {"thread_id": str(thread)}}


async def test_time_travel_leaves_no_checkpoint_map_behind(db: database.Database) -> None:
    thread = uuid4()
    async with runtime.working():
        await run(thread, "subgraph", {"topic": "cats"})
        asked = await Threads.State.get(None, config(thread), subgraphs=True)
        inner = asked.tasks[0].state.config["configurable"]
        assert inner["checkpoint_map"]
        await run(thread, "subgraph", None, command={"resume": "good"})
        # Travel back to the question and answer it differently.
        place = {key: inner[key] for key in ("checkpoint_map",)}
        place |= {"checkpoint_id": asked.config["configurable"]["checkpoint_id"]}
        await run(
            thread,
            "subgraph",
            None,
            command={"resume": "bad"},
            checkpoint={**place, "checkpoint_ns": ""},
        )
        assert await trail(thread) == ["before", "after bad"]
        # Continue from there without time travel.
        plain = await run(thread, "subgraph", {"topic": "dogs"})
        await run(thread, "subgraph", None, command={"resume": "fine"})
    configurable = plain["kwargs"]["config"]["configurable"]
    assert not {"checkpoint_map", "checkpoint_id"} & configurable.keys()
    kept = (await runtime.thread(thread))["config"].get("configurable", {})
    assert not {"checkpoint_map", "checkpoint_id"} & kept.keys()
    assert await trail(thread) == ["before", "after bad", "before", "after fine"]


async def trail(thread: UUID) -> list[str]:
    found: list[str] = (await Threads.State.get(None, config(thread))).values["trail"]
    return found


# --- the sweeper fails on a large backlog

BACKLOG = 3000
_DATES = {"created_at": now(), "updated_at": now()}
_THREAD = {
    **_DATES,
    "state_updated_at": now(),
    "metadata": {},
    "config": {},
    "status": "busy",
    "interrupts": {},
}
_RUN = {
    **_DATES,
    "assistant_id": uuid4(),
    "metadata": {},
    "kwargs": {},
    "status": "running",
    "multitask_strategy": "enqueue",
    "attempt": 1,
}
_INSERT_THREAD = threads.insert().values(
    {name: bindparam(name) for name in ("thread_id", *_THREAD)}
)
_INSERT_RUN = runs.insert().values(
    {name: bindparam(name) for name in ("run_id", "thread_id", *_RUN)}
)


async def test_large_backlog_is_recovered(db: database.Database) -> None:
    ids = [uuid4() for _ in range(BACKLOG)]

    def fill(conn: Connection) -> None:
        conn.executemany(_INSERT_THREAD, [{"thread_id": each, **_THREAD} for each in ids])
        conn.executemany(_INSERT_RUN, [{"run_id": each, "thread_id": each, **_RUN} for each in ids])

    await db.write(fill)
    assert len(await recovery.recover()) == BACKLOG
    left = await db.read(
        lambda conn: conn.raw.execute("SELECT DISTINCT status FROM runs").fetchall()
    )
    assert left == [("pending",)]


# --- a second queue or scheduler with a custom app

CUSTOM = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

@asynccontextmanager
async def lifespan(app):
    yield

app = Starlette(routes=[Route("/mine", lambda request: PlainTextResponse("mine"))], lifespan=lifespan)
"""


def test_mounted_platform_with_a_custom_app_has_one_queue_and_scheduler(
    tmp_path: Path,
) -> None:
    (tmp_path / "custom.py").write_text(CUSTOM)
    graphs = {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper")}
    project = tmp_path / "langgraph.json"
    project.write_text(
        json.dumps({"dependencies": ["."], "graphs": graphs, "http": {"app": "./custom.py:app"}})
    )
    path, port = tmp_path / "mounted.db", free_port()
    host = ROOT / "tests" / "support" / "host.py"
    command = [sys.executable, str(host), "fastapi", "/api", str(project), databases.url(path)]
    command += [str(port)]
    env = environment(N_JOBS_PER_WORKER="2", CRON_SCHEDULER_SLEEP_TIME="1")
    with (
        running(command, port, tmp_path, env, ready="/api/ok") as server,
        httpx.Client(base_url=f"{server.url}/api", timeout=60) as client,
    ):
        assert client.get("/mine").text == "mine"
        _assert_one_queue(client, tmp_path / "record")
        _assert_one_scheduler(client, path)


def _assert_one_queue(client: httpx.Client, record: Path) -> None:
    asked = {"seconds": 0.2, "record": str(record)}
    for _ in range(8):
        body = {"assistant_id": "sleeper", "input": asked}
        assert client.post("/runs", json=body).is_success
    wait_for(lambda: lines(record).count("finished") == 8)
    at_once = maximum = 0
    for line in lines(record):
        at_once += 1 if line == "started" else -1
        maximum = max(maximum, at_once)
    # The queue has two slots; a second queue would double the maximum.
    assert (maximum, lines(record).count("started")) == (2, 8)


_FIRED = "SELECT count(*) FROM runs WHERE CAST(kwargs AS TEXT) LIKE '%cron_id%'"


def _assert_one_scheduler(client: httpx.Client, path: Path) -> None:
    """Check that each of two crons fires once, and the first does not fire with the second."""
    for number in (1, 2):
        body = {"assistant_id": "echo", "schedule": "0 3 1 1 *", "on_run_completed": "keep"}
        cron = client.post("/runs/crons", json=body).json()["cron_id"]
        past = databases.date(1)
        databases.execute(path, "UPDATE crons SET next_run_date = ? WHERE cron_id = ?", past, cron)
        wait_for(lambda n=number: databases.execute(path, _FIRED) == [(n,)])
