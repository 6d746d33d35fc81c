"""A task that is cancelled or fails after writing only a part of its output.

A node's own output is written before the output of its branches. If only the first part were
stored, langgraph would treat the node as finished and the graph as ended.
"""

import asyncio
import operator
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Durability
from typing_extensions import TypedDict

from langgraph_runtime_sql.checkpoint import Checkpointer
from tests.support import runtime
from tests.support.runtime import set_options

pytestmark = pytest.mark.usefixtures("each_database", "settings")

DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")


class State(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


@pytest.fixture(autouse=True)
async def db(tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "cut.db"):
        yield


def graph(branch: Callable[[], Any]) -> Any:
    """Make a graph of two nodes, of which the second follows the first by a branch."""

    async def route(state: State) -> Literal["second"]:
        await branch()
        return "second"

    made = StateGraph(State)
    made.add_node("first", lambda state: {"done": ["first"]})
    made.add_node("second", lambda state: {"done": ["second"]})
    made.add_edge(START, "first")
    made.add_conditional_edges("first", route)
    return made.compile(checkpointer=Checkpointer())


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_task_cancelled_during_its_branch_is_repeated(durability: Durability) -> None:
    reached, proceed = asyncio.Event(), asyncio.Event()

    async def branch() -> None:
        reached.set()
        await proceed.wait()

    made, config = graph(branch), {"configurable": {"thread_id": str(uuid4())}}
    running = asyncio.create_task(made.ainvoke({"done": []}, config, durability=durability))
    async with asyncio.timeout(runtime.PATIENCE):
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    proceed.set()
    ended = await made.ainvoke(None, config, durability=durability)
    assert ended["done"] == ["first", "second"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_task_with_a_failed_branch_is_repeated(durability: Durability) -> None:
    failures = iter([RuntimeError("once")])

    async def branch() -> None:
        if (failure := next(failures, None)) is not None:
            raise failure

    made, config = graph(branch), {"configurable": {"thread_id": str(uuid4())}}
    with pytest.raises(RuntimeError, match="once"):
        await made.ainvoke({"done": []}, config, durability=durability)
    [failed] = (await made.aget_state(config)).tasks
    assert "once" in str(failed.error)
    ended = await made.ainvoke(None, config, durability=durability)
    assert ended["done"] == ["first", "second"]


async def test_run_interrupted_by_a_shutdown_continues_at_its_branch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph_api import graph as served

    reached, proceed = asyncio.Event(), asyncio.Event()

    async def branch() -> None:
        reached.set()
        await proceed.wait()

    # Each run gets its own checkpointer.
    made = graph(branch)
    made.checkpointer = None
    monkeypatch.setitem(served.GRAPHS, "cut", made)
    monkeypatch.setattr(
        served,
        "SYSTEM_ASSISTANT_IDS",
        {*served.SYSTEM_ASSISTANT_IDS, str(runtime.system_id("cut"))},
    )
    set_options(monkeypatch, grace_seconds=0)
    await runtime.register(["cut"])
    thread = uuid4()
    async with asyncio.timeout(runtime.PATIENCE):
        async with runtime.working():
            run = await runtime.start_run(thread, "cut", {"done": []})
            await reached.wait()
        assert await runtime.status(run["run_id"]) == "pending"
        proceed.set()
        async with runtime.working():
            assert await runtime.ended(run["run_id"]) == "success"
    assert (await runtime.thread(thread))["values"]["done"] == ["first", "second"]
