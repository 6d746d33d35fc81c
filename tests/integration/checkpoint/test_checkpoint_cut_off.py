"""A task that is cut off, or fails, when it has written only a part of its output.

A node's own output comes before that of its branches. Where only the first was stored,
langgraph would take the node for finished and the graph for ended.
"""

import asyncio
import operator
from collections.abc import AsyncIterator, Callable, Iterator
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

pytestmark = pytest.mark.usefixtures("each_database")

DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")


class State(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving():
        yield


@pytest.fixture(autouse=True)
async def db(tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "cut.db"):
        yield


def graph(branch: Callable[[], Any]) -> Any:
    """Two nodes, of which the second comes after the first by a branch."""

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
async def test_a_task_that_is_cancelled_between_them_is_done_again(durability: Durability) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def branch() -> None:
        reached.set()
        await go_on.wait()

    made, config = graph(branch), {"configurable": {"thread_id": str(uuid4())}}
    running = asyncio.create_task(made.ainvoke({"done": []}, config, durability=durability))
    async with asyncio.timeout(runtime.PATIENCE):
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    go_on.set()
    ended = await made.ainvoke(None, config, durability=durability)
    assert ended["done"] == ["first", "second"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_task_whose_branch_fails_is_done_again(durability: Durability) -> None:
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


async def test_a_run_that_a_shutdown_cuts_off_between_them_goes_on_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph_api import graph as served

    reached, go_on = asyncio.Event(), asyncio.Event()

    async def branch() -> None:
        reached.set()
        await go_on.wait()

    # Runs get a checkpointer of their own.
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
        go_on.set()
        async with runtime.working():
            assert await runtime.ended(run["run_id"]) == "success"
    assert (await runtime.thread(thread))["values"]["done"] == ["first", "second"]
