"""Retention of checkpoints: old ones go, and each thread continues as if nothing had happened."""

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from sqlalchemy import update

from langgraph_runtime_sql import lifespan
from langgraph_runtime_sql.checkpoint import Checkpointer, retention
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.events.tasks import end_all
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads import retention as thread_retention
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.options import Retention
from langgraph_runtime_sql.retention_rules import KeepRule
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.checkpoints import damage

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.graphs("echo", "steps", "sleeper"),
]

LAST_THREE = (KeepRule(graph="steps", last=3),)


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "retention.db"):
        await runtime.register(["echo", "steps", "sleeper"])
        yield


def at(thread: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": str(thread)}}


async def ids(thread: Any) -> list[str]:
    """Return the checkpoints of a thread, newest first."""
    return [each.checkpoint["id"] async for each in Checkpointer().alist(at(thread))]


async def talked(graph: str, turns: int = 3) -> UUID:
    """Return a thread with some ended runs."""
    thread = uuid4()
    async with runtime.working():
        for turn in range(turns):
            made = await runtime.start_run(thread, graph, {"value": str(turn)})
            assert await runtime.ended(UUID(str(made["run_id"]))) == "success"
    return thread


async def apply(*rules: KeepRule) -> int:
    return await thread_retention.apply(current().database, rules)


async def damaged(thread: Any) -> list[Any]:
    return await current().database.read(lambda conn: damage(conn, str(thread)))


async def test_rule_keeps_the_newest_checkpoints_of_its_graph() -> None:
    thread, other = await talked("steps"), await talked("echo")
    before, others = await ids(thread), await ids(other)
    state = await Checkpointer().aget_tuple(at(thread))
    assert await apply(*LAST_THREE) == len(before) - 3
    assert await ids(thread) == before[:3]
    assert await ids(other) == others
    assert await Checkpointer().aget_tuple(at(thread)) == state
    assert await apply(*LAST_THREE) == 0


async def test_rule_by_label_keeps_the_latest_checkpoint_only() -> None:
    plain, labelled = await talked("echo"), await talked("echo")
    label = update(threads).where(threads.c.thread_id == labelled)
    about = {"graph_id": "echo", "plan": "free"}
    await current().database.write(lambda conn: conn.execute(label.values(metadata=about)))
    before = await ids(plain)
    await apply(KeepRule(metadata={"plan": "free"}, last=1))
    assert len(await ids(labelled)) == 1
    assert await ids(plain) == before


async def test_thread_with_a_run_in_flight_keeps_all() -> None:
    thread = await talked("steps")
    before = await ids(thread)
    # It starts from an old checkpoint.
    made = await runtime.start_run(
        thread, "steps", {"value": "fork"}, checkpoint_id=before[-1], after_seconds=3_600
    )
    assert await apply(*LAST_THREE) == 0
    assert await ids(thread) == before
    await Runs.cancel(None, [made["run_id"]], thread_id=thread)
    assert await apply(*LAST_THREE) == len(before) - 3


async def test_pruning_keeps_the_checkpoint_that_a_queued_fork_starts_from() -> None:
    thread = uuid4()

    async def ran(sent: dict[str, Any], **config: Any) -> UUID:
        made = await runtime.start_run(thread, "steps", sent, config={"configurable": config})
        return UUID(str(made["run_id"]))

    async with runtime.working():
        for delay in (0.001, 0.002):
            assert await runtime.ended(await ran({"count": 1, "delay": delay})) == "success"
    beginning = (await ids(thread))[-1]
    newest, *older = await ids(thread)
    start = next(each for each in older if each != beginning)
    fork = await ran({"count": 1}, checkpoint_id=start, checkpoint_ns="")
    await Threads.prune([thread], strategy="keep_latest")
    assert await ids(thread) == [newest, start]
    async with runtime.working():
        assert await runtime.ended(fork) == "success"
    await Threads.prune([thread], strategy="keep_latest")
    [left] = await ids(thread)
    assert left not in (newest, start)
    assert await damaged(thread) == []


async def test_steps_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends in the middle of a pass has done whole steps."""
    monkeypatch.setattr(retention, "BATCH", 2)
    thread = await talked("steps", turns=4)
    before = await ids(thread)
    sizes = []
    thin = retention.thin

    def counting(*args: Any) -> int:
        sizes.append(thin(*args))
        return sizes[-1]

    monkeypatch.setattr(retention, "thin", counting)
    await apply(*LAST_THREE)
    assert max(sizes) == 2
    assert sum(sizes) == len(before) - 3


async def test_server_applies_its_rules_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_retention, "PASS_SECONDS", 0.01)
    thread = await talked("steps")
    runtime.set_options(monkeypatch, retention=Retention(checkpoints=LAST_THREE))
    tasks = [asyncio.create_task(each) for each in lifespan._sweeps(current())]
    try:
        async with asyncio.timeout(runtime.PATIENCE):
            while len(await ids(thread)) > 3:
                await asyncio.sleep(0.01)
    finally:
        await end_all(tasks)


def append(state: list[str], writes: Any) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


async def test_random_threads_continue_from_every_kept_checkpoint(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With delta channels, long values, patches of several levels, and forks from old checkpoints."""
    database = current().database
    for trial in range(6):
        frequency, thread = rng.randint(1, 6), f"t{trial}"

        class State(TypedDict):
            plain: list[str]
            log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=frequency)]

        graph: Any = (
            StateGraph(State)
            .add_node("step", lambda state: {"log": [f"step {len(state['log'])}"]})
            .add_edge(START, "step")
            .compile(checkpointer=Checkpointer())
        )
        for turn in range(rng.randint(2, 8)):
            given = {"plain": [f"{n} " * 200 for n in range(turn)], "log": [f"turn {turn}"]}
            where = at(thread)
            if turn and rng.random() < 0.3:
                where["configurable"]["checkpoint_id"] = rng.choice(await ids(thread))
            await graph.ainvoke(given, where)
        every = {
            each.config["configurable"]["checkpoint_id"]: each.values
            async for each in graph.aget_state_history(at(thread))
        }
        newest = sorted(every, reverse=True)
        kept = rng.randint(1, 6)
        rule = KeepRule(last=kept)
        monkeypatch.setattr(retention, "BATCH", rng.randint(1, 4))
        while await database.write(partial(retention.thin, thread_id=thread, rule=rule)):
            pass
        left = await ids(thread)
        assert set(newest[:kept]) <= set(left), f"frequency {frequency}"
        for each in newest[:kept]:
            where = at(thread)
            where["configurable"]["checkpoint_id"] = each
            assert (await graph.aget_state(where)).values == every[each], f"frequency {frequency}"
        assert await damaged(thread) == []
        await graph.ainvoke({"log": ["more"]}, at(thread))
        log = (await graph.aget_state(at(thread))).values["log"]
        assert log[: len(every[newest[0]]["log"]) + 1] == [*every[newest[0]]["log"], "more"]
