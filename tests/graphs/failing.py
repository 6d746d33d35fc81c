"""Fail as requested: with an error, a number of times, or by ending the process."""

import asyncio
import builtins
import os
from pathlib import Path

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    error: str  # name of an exception, built-in or of asyncio
    message: str
    times: int  # fail this often, then succeed; needs `record`
    record: str  # path of a file that gets a line an attempt
    exit: int  # end the process with this status instead of raising
    until: str  # path of a file: nothing fails before this file exists


class State(Input, total=False):
    before: str
    attempts: int


def count_attempt(path: str | None) -> int:
    """Return the number of this attempt, from 1. With a file, it counts across processes."""
    if path is None:
        return 1
    with open(path, "ab", buffering=0) as file:
        file.write(b"attempt\n")
    return len(Path(path).read_bytes().splitlines())


def error_type(name: str) -> type[BaseException]:
    found = getattr(builtins, name, None) or getattr(asyncio, name, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise TypeError(f"{name!r} is not an exception, built-in or of asyncio")
    return found


async def begin(state: State) -> State:
    return {"before": "reached"}


async def fail(state: State) -> State:
    times, record = state.get("times"), state.get("record")
    while (until := state.get("until")) and not await asyncio.to_thread(os.path.exists, until):
        await asyncio.sleep(0.01)
    if times is not None and record is None:
        raise ValueError("`times` needs `record`, which outlives this process")
    attempt = await asyncio.to_thread(count_attempt, record)
    if times is not None and attempt > times:
        return {"attempts": attempt}
    if (status := state.get("exit")) is not None:
        os._exit(status)
    raise error_type(state.get("error", "RuntimeError"))(state.get("message", "failing as asked"))


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(begin)
    .add_node(fail)
    .add_edge(START, "begin")
    .add_edge("begin", "fail")
    .add_edge("fail", END)
    .compile()
)
