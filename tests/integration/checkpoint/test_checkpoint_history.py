"""Copying, pruning and rolling back the checkpoints of a thread, including delta channels."""

import random
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Durability, interrupt

from langgraph_runtime_sql.checkpoint import (
    Checkpointer,
    copy_thread,
    delete_for_runs,
    delete_thread,
    prune_thread,
)
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.request_context import claim
from tests.support.checkpoints import change_run, runtime_database, start_run, stored_rows

pytestmark = pytest.mark.usefixtures("each_database", "settings")


DURABILITIES: list[Durability] = ["sync", "async", "exit"]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "history.db") as opened:
        yield opened


def append(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


def step(state: dict[str, list[str]]) -> dict[str, list[str]]:
    return {"log": [f"step {len(state['log'])}"], "rare": []}


Graph = CompiledStateGraph[Any, Any, Any, Any]


def logging_graph(frequency: int, steps: int = 2, *, ask: bool = False) -> Graph:
    """Build steps that append to a delta channel, beside one that rarely takes a snapshot."""

    class Log(TypedDict):
        log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=frequency)]
        rare: Annotated[list[str], DeltaChannel(append, snapshot_frequency=1000)]
        plain: int

    def asking(state: Log) -> dict[str, list[str]]:
        return {"log": [f"answer {interrupt('?')}"]}

    nodes = [(f"step{n}", step) for n in range(steps)] + [("ask", asking)] * ask
    return (
        StateGraph(Log)
        .add_sequence(nodes)
        .add_edge(START, nodes[0][0])
        .compile(checkpointer=Checkpointer())
    )


def at(thread_id: object, **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **configurable}}


async def run_as_run(
    db: Database, graph: Graph, given: Any, thread: str, durability: Durability = "async"
) -> str:
    """Run the graph as a worker does, under a new run, and return the run's id."""
    owner = await start_run(db)
    token = claim.set(owner)
    try:
        await graph.ainvoke(given, at(thread), durability=durability)
    finally:
        claim.reset(token)
    await change_run(db, owner.run_id, status="success")
    return owner.run_id


async def values(graph: Graph, thread: str) -> Any:
    return (await graph.aget_state(at(thread))).values


async def checkpoints(thread: str) -> list[str]:
    return [each.checkpoint["id"] async for each in Checkpointer().alist(at(thread))]


async def rows(db: Database, thread: str) -> dict[str, list[Any]]:
    """Return everything that is stored of a thread."""
    return await db.read(lambda conn: stored_rows(conn, thread))


# --- pruning ---


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_pruning_keeps_the_data_of_delta_channels(
    db: Database, rng: random.Random, durability: Durability
) -> None:
    for trial in range(4):
        frequency, thread = rng.randint(1, 7), f"t{trial}"
        graph = logging_graph(frequency, steps=rng.randint(1, 3))
        for turn in range(rng.randint(1, 5)):
            given: dict[str, Any] = {"plain": turn}
            for channel in ("log", "rare"):
                if rng.random() < 0.5:
                    given[channel] = [f"{channel} {turn}"]
            await graph.ainvoke(given, at(thread), durability=durability)
        before = await values(graph, thread)
        await db.write(partial(prune_thread, thread_id=thread))
        assert await values(graph, thread) == before, f"frequency {frequency}"
        # The thread continues from there, even after a second pruning.
        await graph.ainvoke({"log": ["more"]}, at(thread), durability=durability)
        await Checkpointer().aprune([thread])
        log = (await values(graph, thread))["log"]
        assert log[: len(before["log"]) + 1] == [*before["log"], "more"]


async def test_pruning_drops_checkpoints_before_the_snapshot(db: Database) -> None:
    class Log(TypedDict):
        log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=3)]

    graph = (
        StateGraph(Log)
        .add_node("step", lambda state: {"log": ["step"]})
        .add_edge(START, "step")
        .compile(checkpointer=Checkpointer())
    )
    for _ in range(10):
        await graph.ainvoke({"log": ["hello"]}, at("t"))
    before = await values(graph, "t")
    assert len(await checkpoints("t")) == 30
    await Checkpointer().aprune(["t"])
    assert 1 <= len(await checkpoints("t")) <= 5
    assert await values(graph, "t") == before


async def test_pruning_keeps_a_pending_interrupt(db: Database) -> None:
    graph = logging_graph(100, ask=True)
    await graph.ainvoke({"log": ["hello"]}, at("t"))
    await Checkpointer().aprune(["t"])
    state = await graph.aget_state(at("t"))
    assert [each.value for each in state.interrupts] == ["?"]
    result = await graph.ainvoke(Command(resume="yes"), at("t"))
    assert result["log"] == ["hello", "step 1", "step 2", "answer yes"]


async def test_pruning_keeps_a_paused_subgraph(db: Database) -> None:
    class State(TypedDict):
        log: Annotated[list[str], append_all]

    def ask(state: State) -> dict[str, list[str]]:
        return {"log": [f"answer {interrupt('?')}"]}

    inner = (
        StateGraph(State)
        .add_sequence([("first", lambda state: {"log": ["inner"]}), ("ask", ask)])
        .add_edge(START, "first")
        .compile()
    )
    graph = (
        StateGraph(State)
        .add_node("inner", inner)
        .add_edge(START, "inner")
        .compile(checkpointer=Checkpointer())
    )
    await graph.ainvoke({"log": ["hello"]}, at("t"))
    await Checkpointer().aprune(["t"])
    result = await graph.ainvoke(Command(resume="yes"), at("t"))
    assert result["log"][-2:] == ["inner", "answer yes"]


def append_all(left: list[str], right: list[str]) -> list[str]:
    return left + right


async def test_unknown_pruning_strategy_is_refused(db: Database) -> None:
    with pytest.raises(ValueError, match="keep_latest"):
        await Checkpointer().aprune(["t"], strategy="everything")


# --- copying ---


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_copy_of_a_thread_is_independent(db: Database, durability: Durability) -> None:
    graph = logging_graph(4)
    source, target = str(uuid4()), str(uuid4())
    for _ in range(3):
        await graph.ainvoke({"log": ["hello"]}, at(source), durability=durability)
    before = await values(graph, source)
    await db.write(lambda conn: copy_thread(conn, source, target))
    assert await values(graph, target) == before
    await graph.ainvoke({"log": ["only here"]}, at(target), durability=durability)
    assert await values(graph, source) == before
    await db.write(lambda conn: delete_thread(conn, source))
    assert (await values(graph, target))["log"][: len(before["log"]) + 1] == [
        *before["log"],
        "only here",
    ]
    assert not any((await rows(db, source)).values())


@pytest.mark.parametrize("key", [None, b"0123456789abcdef"], ids=["plain", "encrypted"])
async def test_copied_threads_keep_the_order_of_parallel_writes(
    db: Database, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_api import config

    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", key)

    class Log(TypedDict):
        log: Annotated[list[str], DeltaChannel(append)]

    builder = StateGraph(Log)
    names = [f"node{number}" for number in range(8)]
    for name in names:
        builder.add_node(name, partial(lambda _, said: {"log": [said * 100]}, said=name))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=Checkpointer())
    source, target = str(uuid4()), str(uuid4())
    await graph.ainvoke({"log": []}, at(source))
    await Checkpointer().acopy_thread(source, target)
    for thread in (source, target):
        assert (await values(graph, thread))["log"] == [name * 100 for name in names]


# --- rolling back runs ---


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("frequency", [1, 2, 3, 100])
async def test_rolling_back_the_last_run_restores_the_thread(
    db: Database, durability: Durability, frequency: int
) -> None:
    graph = logging_graph(frequency)
    await run_as_run(db, graph, {"log": ["first"]}, "t", durability)
    before, stored = await values(graph, "t"), await rows(db, "t")
    rolled_back = await run_as_run(db, graph, {"log": ["regretted"]}, "t", durability)
    await db.write(lambda conn: delete_for_runs(conn, [rolled_back], "t"))
    assert await rows(db, "t") == stored
    assert await values(graph, "t") == before
    # The next run writes under the same keys as the rolled-back run.
    await run_as_run(db, graph, {"log": ["instead"]}, "t", durability)
    log = (await values(graph, "t"))["log"]
    assert log == ["first", "step 1", "step 2", "instead", "step 4", "step 5"]
    again = await graph.aget_state(at("t"))
    assert again.values["log"] == log


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_rolling_back_an_answer_restores_its_interrupt(
    db: Database, durability: Durability
) -> None:
    graph = logging_graph(100, ask=True)
    await run_as_run(db, graph, {"log": ["hello"]}, "t", durability)
    stored = await rows(db, "t")
    answered = await run_as_run(db, graph, Command(resume="wrong"), "t", durability)
    assert (await values(graph, "t"))["log"][-1] == "answer wrong"
    await db.write(lambda conn: delete_for_runs(conn, [answered], "t"))
    assert await rows(db, "t") == stored
    state = await graph.aget_state(at("t"))
    assert [each.value for each in state.interrupts] == ["?"]
    await run_as_run(db, graph, Command(resume="right"), "t", durability)
    assert (await values(graph, "t"))["log"] == ["hello", "step 1", "step 2", "answer right"]


async def test_rolling_back_the_second_answer_keeps_the_first(db: Database) -> None:
    class State(TypedDict):
        answers: list[str]

    def ask_twice(state: State) -> dict[str, list[str]]:
        return {"answers": [interrupt("one?"), interrupt("two?"), interrupt("three?")]}

    graph = (
        StateGraph(State)
        .add_node("ask", ask_twice)
        .add_edge(START, "ask")
        .compile(checkpointer=Checkpointer())
    )
    await run_as_run(db, graph, {"answers": []}, "t")
    await run_as_run(db, graph, Command(resume="1"), "t")
    stored = await rows(db, "t")
    second = await run_as_run(db, graph, Command(resume="wrong"), "t")
    await db.write(lambda conn: delete_for_runs(conn, [second], "t"))
    assert await rows(db, "t") == stored
    state = await graph.aget_state(at("t"))
    assert [each.value for each in state.interrupts] == ["two?"]
    for answer in ("2", "3"):
        await run_as_run(db, graph, Command(resume=answer), "t")
    assert (await values(graph, "t"))["answers"] == ["1", "2", "3"]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("frequency", [1, 4, 100])
async def test_deleting_an_earlier_run_keeps_later_state(
    db: Database, durability: Durability, frequency: int
) -> None:
    graph = logging_graph(frequency)
    run_ids = [
        await run_as_run(db, graph, {"log": [f"turn {n}"]}, "t", durability) for n in range(4)
    ]
    before = await values(graph, "t")
    for run_id in run_ids[:-1]:
        await db.write(partial(delete_for_runs, run_ids=[run_id], thread_id="t"))
        assert await values(graph, "t") == before
    await graph.ainvoke({"log": ["more"]}, at("t"))
    assert (await values(graph, "t"))["log"][: len(before["log"]) + 1] == [*before["log"], "more"]


async def test_deleting_an_earlier_run_deletes_its_checkpoints(db: Database) -> None:
    """Checkpoints that no delta channel needs are deleted."""

    class State(TypedDict):
        plain: int

    graph = (
        StateGraph(State)
        .add_node("n", lambda state: {"plain": state["plain"] + 1})
        .add_edge(START, "n")
        .compile(checkpointer=Checkpointer())
    )
    run_ids = [await run_as_run(db, graph, {"plain": n}, "t") for n in range(3)]
    await db.write(lambda conn: delete_for_runs(conn, run_ids[:2], "t"))
    left = [each.metadata["run_id"] async for each in Checkpointer().alist(at("t"))]
    assert left == [run_ids[2]] * 3
    assert await values(graph, "t") == {"plain": 3}


async def test_deleting_a_run_does_not_change_copies_of_its_thread(db: Database) -> None:
    graph = logging_graph(3)
    run_id = await run_as_run(db, graph, {"log": ["hello"]}, "t")
    await db.write(lambda conn: copy_thread(conn, "t", "copy"))
    before = await rows(db, "copy")
    await db.write(lambda conn: delete_for_runs(conn, [run_id], "t"))
    assert await checkpoints("t") == []
    assert await rows(db, "copy") == before
    await Checkpointer().adelete_for_runs([run_id])
    assert await checkpoints("copy") == []


@pytest.mark.only("sqlite")  # Postgres plans by the size of its tables.
async def test_checkpoints_of_a_run_are_found_by_index(db: Database) -> None:
    def plan(conn: Connection) -> str:
        asked = "SELECT checkpoint_id FROM thread_checkpoints WHERE run_id = x'00'"
        return str(conn.raw.execute(f"EXPLAIN QUERY PLAN {asked}").fetchall())

    assert "USING INDEX ix_thread_checkpoints_run_id" in await db.read(plan)


async def test_checkpoint_operations_share_a_transaction(db: Database) -> None:
    graph = logging_graph(3)
    run_id = await run_as_run(db, graph, {"log": ["hello"]}, "t")
    before = await rows(db, "t")

    def all_then_fail(conn: Connection) -> None:
        copy_thread(conn, "t", "u")
        prune_thread(conn, "t")
        delete_for_runs(conn, [run_id], "t")
        delete_thread(conn, "t")
        raise RuntimeError("undo")

    with pytest.raises(RuntimeError, match="undo"):
        await db.write(all_then_fail)
    assert await rows(db, "t") == before
    assert await checkpoints("u") == []
