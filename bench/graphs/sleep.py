"""Sleep, as an agent waits for its model: many such runs must be possible at once."""

import asyncio
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    seconds: float


async def doze(state: State) -> State:
    await asyncio.sleep(state["seconds"])
    return {"seconds": 0.0}


builder = StateGraph(State)
builder.add_node("doze", doze)
builder.add_edge(START, "doze")
builder.add_edge("doze", END)
graph = builder.compile()
