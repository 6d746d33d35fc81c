"""A parent with a child graph that interrupts, for tests of namespaces, streams and resuming."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    topic: str


class State(Input, total=False):
    trail: Annotated[list[str], operator.add]
    verdict: str


class ChildState(TypedDict, total=False):
    topic: str
    draft: str
    verdict: str


class ChildOutput(TypedDict):
    verdict: str


async def draft(state: ChildState) -> ChildState:
    return {"draft": f"about {state.get('topic', 'nothing')}"}


async def review(state: ChildState) -> ChildState:
    return {"verdict": str(interrupt({"draft": state["draft"]}))}


child = (
    StateGraph(ChildState, output_schema=ChildOutput)
    .add_node(draft)
    .add_node(review)
    .add_edge(START, "draft")
    .add_edge("draft", "review")
    .add_edge("review", END)
    .compile()
)


async def before(state: State) -> State:
    return {"trail": ["before"]}


async def after(state: State) -> State:
    return {"trail": [f"after {state['verdict']}"]}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(before)
    .add_node("child", child)
    .add_node(after)
    .add_edge(START, "before")
    .add_edge("before", "child")
    .add_edge("child", "after")
    .add_edge("after", END)
    .compile()
)
