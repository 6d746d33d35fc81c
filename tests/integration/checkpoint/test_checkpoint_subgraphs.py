"""Pruning and retention of threads whose graphs call subgraphs."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_runtime_sql.checkpoint import Checkpointer, prune_thread, retention
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.retention_rules import KeepRule
from tests.support.checkpoints import damage, runtime_database

pytestmark = pytest.mark.usefixtures("each_database", "settings")

Cut = Callable[[Connection], Any]
KEEP_LATEST = partial(prune_thread, thread_id="t")
RULE = partial(retention.thin, thread_id="t", rule=KeepRule(last=1))


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "subgraphs.db") as opened:
        yield opened


def at(**configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": "t", **configurable}}


def append(state: list[str], writes: Any) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


class State(TypedDict):
    log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=3)]


def calling() -> Any:
    """Build a graph that calls a subgraph, one with memory, and one of the functional API."""

    def ask(state: State) -> dict[str, list[str]]:
        if state["log"][-1] != "ask":
            return {"log": ["called"]}
        return {"log": [f"answer {interrupt('?')}"]}

    def remember(state: State) -> dict[str, list[str]]:
        return {"log": [f"turn {sum(each.startswith('turn') for each in state['log'])}"]}

    @entrypoint()
    async def function(word: str) -> str:
        return f"function of {word}"

    async def apply(state: State) -> dict[str, Any]:
        return {"log": [await function.ainvoke(state["log"][0])]}

    def inner(node: Any, **options: Any) -> Any:
        built = StateGraph(State).add_node("node", node).add_edge(START, "node")
        return built.compile(**options)

    called, memory = inner(ask), inner(remember, checkpointer=True)

    async def call(state: State) -> dict[str, list[str]]:
        return {"log": (await called.ainvoke({"log": state["log"][-1:]}))["log"][1:]}

    async def recall(state: State) -> dict[str, list[str]]:
        return {"log": (await memory.ainvoke({"log": ["again"]}))["log"][-1:]}

    return (
        StateGraph(State)
        .add_sequence([("call", call), ("recall", recall), ("apply", apply)])
        .add_edge(START, "call")
        .compile(checkpointer=Checkpointer())
    )


async def checkpoints() -> list[Any]:
    return [each async for each in Checkpointer().alist(at())]


async def namespaces() -> list[str]:
    """Return the namespaces of all checkpoints, without the ids of tasks. Every parent is stored."""
    found = await checkpoints()
    stored = {place(each.config) for each in found}
    assert {place(each.parent_config) for each in found if each.parent_config} <= stored
    return sorted({namespace.partition(":")[0] for namespace, _ in stored})


def place(config: RunnableConfig) -> tuple[str, str]:
    return config["configurable"]["checkpoint_ns"], config["configurable"]["checkpoint_id"]


@pytest.mark.parametrize("cut", [KEEP_LATEST, RULE], ids=["prune", "retention"])
async def test_ended_calls_of_subgraphs_go(db: Database, cut: Cut) -> None:
    graph = calling()
    for turn in range(3):
        await graph.ainvoke({"log": [f"hello {turn}"]}, at())
        assert await namespaces() == ["", "apply", "call", "recall"]
        await db.write(cut)
        assert await namespaces() == ["", "recall"]
        assert await db.read(lambda conn: damage(conn, "t")) == []
    log = (await graph.aget_state(at())).values["log"]
    assert [each for each in log if each.startswith("turn")] == ["turn 0", "turn 1", "turn 2"]
    assert [each for each in log if each.startswith("hello")] == ["hello 0", "hello 1", "hello 2"]


@pytest.mark.parametrize("cut", [KEEP_LATEST, RULE], ids=["prune", "retention"])
async def test_waiting_call_of_a_subgraph_stays(db: Database, cut: Cut) -> None:
    graph = calling()
    await graph.ainvoke({"log": ["hello"]}, at())
    await graph.ainvoke({"log": ["ask"]}, at())
    await db.write(cut)
    assert await namespaces() == ["", "call", "recall"]
    state = await graph.aget_state(at(), subgraphs=True)
    assert [each.value for each in state.interrupts] == ["?"]
    assert state.tasks[0].state.values["log"] == ["ask"]
    log = (await graph.ainvoke(Command(resume="yes"), at()))["log"]
    assert log[-3:] == ["answer yes", "turn 1", "function of hello"]
    await db.write(cut)
    assert await namespaces() == ["", "recall"]


async def test_retention_keeps_the_calls_of_kept_checkpoints(db: Database) -> None:
    graph = calling()
    for turn in range(3):
        await graph.ainvoke({"log": [f"hello {turn}"]}, at())
    before = [each.config async for each in graph.aget_state_history(at())]
    # The last turn has five checkpoints; its call began from the second.
    rule = KeepRule(last=5)
    await db.write(partial(retention.thin, thread_id="t", rule=rule))
    calls = [name for name in await namespaces() if name]
    assert sorted(calls) == ["apply", "call", "recall"]
    for config in before[:5]:
        assert (await graph.aget_state(config)).config == config


@pytest.mark.parametrize("cut", [KEEP_LATEST, RULE], ids=["prune", "retention"])
async def test_calls_that_were_left_over_go(db: Database, cut: Cut) -> None:
    saver = Checkpointer()
    await saver.aput(
        at(checkpoint_ns=f"call:{UUID(int=1)}"), empty_checkpoint(), started_from(str(uuid6())), {}
    )
    await saver.aput(at(checkpoint_ns=""), empty_checkpoint(), started_from(), {})
    await db.write(cut)
    assert await namespaces() == [""]


def started_from(root: str | None = None) -> Any:
    """Return the metadata of a checkpoint, in a call that began from one of the root graph."""
    return {"parents": {"": root} if root else {}}


async def test_call_whose_start_is_not_stored_yet_stays(db: Database) -> None:
    """A run stores its checkpoints in the background, and a call may be faster."""
    saver = Checkpointer()
    for _ in range(2):
        await saver.aput(at(checkpoint_ns=""), empty_checkpoint(), started_from(), {})
    await saver.aput(
        at(checkpoint_ns=f"call:{UUID(int=1)}"), empty_checkpoint(), started_from(str(uuid6())), {}
    )
    await saver.aprune(["t"])
    assert await namespaces() == ["", "call"]
