"""`sys.exit` in a run: it fails the run and does not stop the event loop."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.errors import GraphExited
from langgraph_runtime_sql.queue import system_exit
from langgraph_runtime_sql.queue.isolated_loops import IsolatedLoops


class State(TypedDict):
    value: int


async def waits(state: State) -> State:
    await asyncio.sleep(0)
    sys.exit(1)


def blocks(state: State) -> State:
    sys.exit("enough")


async def gathers(state: State) -> State:
    await asyncio.gather(waits(state), asyncio.to_thread(blocks, state))
    return state


async def inside(state: State) -> State:
    return await graph_of(waits).ainvoke(state)  # type: ignore[return-value]


def graph_of(*nodes: Any) -> Any:
    builder = StateGraph(State)
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
        builder.add_edge(node.__name__, END)
    return builder.compile()


async def in_a_run(work: Any) -> Any:
    """Return the result of a coroutine that runs in the task of a run."""
    token = request_context.claim.set(Claim("run", 1, None, 0.0, "owner"))
    try:
        return await asyncio.create_task(work)
    finally:
        request_context.claim.reset(token)


@pytest.fixture
async def guarded() -> AsyncIterator[None]:
    remove = system_exit.guard(asyncio.get_running_loop())
    yield
    remove()
    assert asyncio.get_running_loop().get_task_factory() is None


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize(
    "nodes",
    [(waits,), (blocks,), (gathers,), (inside,), (waits, blocks)],
    ids=["loop", "thread", "gathered", "subgraph", "both"],
)
async def test_node_that_exits_fails_its_run(nodes: tuple[Any, ...]) -> None:
    with pytest.raises(GraphExited, match=r"sys\.exit") as raised:
        await in_a_run(graph_of(*nodes).ainvoke({"value": 1}))
    assert isinstance(raised.value.__cause__, SystemExit)


async def test_exit_in_an_isolated_loop_leaves_the_loop_usable() -> None:
    loops = IsolatedLoops(1)
    try:
        with pytest.raises(GraphExited):
            await in_a_run(loops.run(waits({"value": 1})))
        assert await loops.run(asyncio.sleep(0, "well")) == "well"
    finally:
        loops.close()


@pytest.mark.usefixtures("guarded")
async def test_task_cancelled_before_its_start_is_cancelled() -> None:
    """Python warns of a coroutine that is never awaited, and a warning fails the test."""

    async def begin() -> None:
        task = asyncio.create_task(waits({"value": 1}))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await in_a_run(begin())


@pytest.mark.usefixtures("guarded")
async def test_results_errors_and_cancellation_pass_unchanged() -> None:
    async def fails() -> None:
        raise KeyError("cause")

    assert await in_a_run(asyncio.sleep(0, "well")) == "well"
    with pytest.raises(KeyError, match="cause"):
        await in_a_run(fails())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await in_a_run(asyncio.Event().wait())
