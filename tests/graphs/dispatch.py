"""Fan out with `Send`, one task an item, and join the results."""

import asyncio
import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    items: list[Any]
    delay: float  # seconds, in each task


class State(Input, total=False):
    results: Annotated[list[Any], operator.add]
    sides: Annotated[list[str], operator.add]
    total: int


class Task(TypedDict):
    item: Any
    delay: float


async def plan(state: State) -> State:
    return {"results": []}


def fan_out(state: State) -> list[Send]:
    delay = state.get("delay", 0.0)
    tasks = [Send("work", Task(item=item, delay=delay)) for item in state.get("items", [])]
    return [*tasks, Send("left", state), Send("right", state)]


async def work(state: Task) -> State:
    await asyncio.sleep(state["delay"])
    return {"results": [{"item": state["item"]}]}


async def left(state: State) -> State:
    return {"sides": ["left"]}


async def right(state: State) -> State:
    return {"sides": ["right"]}


async def join(state: State) -> State:
    return {"total": len(state["results"])}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(plan)
    .add_node(work)
    .add_node(left)
    .add_node(right)
    .add_node(join)
    .add_edge(START, "plan")
    .add_conditional_edges("plan", fan_out, ["work", "left", "right"])
    .add_edge("work", "join")
    .add_edge("left", "join")
    .add_edge("right", "join")
    .add_edge("join", END)
    .compile()
)
