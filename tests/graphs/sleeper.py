"""Sleep, and record in a file how the sleep ended."""

import asyncio
import os

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    seconds: float
    stopping: str  # path of a file: a cancelled run stops only when this file exists
    record: str  # path of a file
    until: str  # path of a file: the sleep ends when this file exists


class State(Input, total=False):
    slept: float


def append(path: str | None, line: str) -> None:
    if path is not None:
        with open(path, "ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


async def sleep(seconds: float, until: str | None) -> None:
    if until is None:
        await asyncio.sleep(seconds)
        return
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(os.path.exists, until):
            await asyncio.sleep(0.02)


async def sleeper(state: State) -> State:
    seconds, record = state.get("seconds", 1.0), state.get("record")
    await asyncio.to_thread(append, record, "started")
    try:
        await sleep(seconds, state.get("until"))
    except asyncio.CancelledError:
        await asyncio.to_thread(append, record, "cancelled")
        if stopping := state.get("stopping"):
            await sleep(seconds, stopping)
        await asyncio.to_thread(append, record, "stopped")
        raise
    await asyncio.to_thread(append, record, "finished")
    return {"slept": seconds}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(sleeper)
    .add_edge(START, "sleeper")
    .add_edge("sleeper", END)
    .compile()
)
