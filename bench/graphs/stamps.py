"""Send custom events at an interval, each with its number and the time at which it was sent."""

import asyncio
import time
from typing import TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    count: int
    interval: float  # seconds


async def send(state: State) -> dict[str, int]:
    write = get_stream_writer()
    for number in range(state["count"]):
        write({"number": number, "sent": time.time_ns()})
        await asyncio.sleep(state["interval"])
    return {"count": state["count"]}


builder = StateGraph(State)
builder.add_node("send", send)
builder.add_edge(START, "send")
builder.add_edge("send", END)
graph = builder.compile()
