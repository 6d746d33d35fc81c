"""A loop of small steps. Each step writes a checkpoint, so this measures the checkpointer."""

from typing import Literal, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    remaining: int


async def step(state: State) -> State:
    return {"remaining": state["remaining"] - 1}


def more(state: State) -> Literal["step", "__end__"]:
    return "step" if state["remaining"] > 0 else "__end__"


builder = StateGraph(State)
builder.add_node("step", step)
builder.add_edge(START, "step")
builder.add_conditional_edges("step", more)
graph = builder.compile()
