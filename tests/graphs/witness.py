"""Take `count` steps, and record them in three places that tests compare.

`log` in the state has `<run id>:<step>` for every step with a checkpoint, for all runs of the
thread. The file `record` gets a JSON line at the start and the end of each step, with the attempt
and the process, even if the checkpoint is lost. The stream gets a custom event for each step; each
attempt numbers its events from 0.
"""

import asyncio
import itertools
import json
import operator
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    count: int
    delay: float  # seconds, in each step
    record: str  # path of a file


class State(Input, total=False):
    run: str
    log: Annotated[list[str], operator.add]


# The numbers of the events of each attempt in this process.
_sent: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


def append(path: str, line: dict[str, Any]) -> None:
    # One O_APPEND write of a short line is atomic, also between processes.
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


async def note(state: State, **line: Any) -> None:
    if record := state.get("record"):
        await asyncio.to_thread(append, record, {**line, "at": time.time()})


def taken(state: State) -> int:
    """Return the number of steps of the current run with a checkpoint."""
    mine = f"{state.get('run')}:"
    return sum(entry.startswith(mine) for entry in state.get("log", []))


def begin(state: State, config: RunnableConfig) -> State:
    return {"run": str(config["configurable"]["run_id"])}


async def step(state: State, config: RunnableConfig, runtime: Runtime) -> State:
    run, number = state["run"], taken(state)
    attempt = int(config["metadata"].get("run_attempt", 1))
    me = {"run": run, "attempt": attempt, "pid": os.getpid(), "step": number}
    await note(state, event="begin", **me)
    runtime.stream_writer({**me, "n": next(_sent[run, attempt])})
    await asyncio.sleep(state.get("delay", 0.0))
    await note(state, event="end", **me)
    return {"log": [f"{run}:{number}"]}


def more(state: State) -> Literal["step", "__end__"]:
    return "step" if taken(state) < state.get("count", 3) else "__end__"


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(begin)
    .add_node(step)
    .add_edge(START, "begin")
    .add_conditional_edges("begin", more)
    .add_conditional_edges("step", more)
    .compile()
)
