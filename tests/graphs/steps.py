"""Take `count` steps with one checkpoint each, so that tests can observe a recovery.

`done` in the state has the number of every step with a checkpoint. The file `record` gets a line
`<run id> <step>` for each execution of a step, even if its checkpoint is lost. The difference shows
lost and repeated steps.
"""

import asyncio
import operator
import os
import random
from pathlib import Path
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from tests.support.gates import passed


class Input(TypedDict, total=False):
    count: int
    delay: float  # seconds, in each step
    record: str  # path of a file
    fail_at: int  # the step that raises
    exit_at: int  # the step that kills the process
    once: str  # path of a file: the failure happens only while it does not exist
    ballast: int  # bytes that each step writes, which cannot be compressed
    gate: str  # path of a file with the number of steps that may end; none without the file


class State(Input, total=False):
    first: int  # the number of steps of earlier runs of the thread
    done: Annotated[list[int], operator.add]
    text: str  # the ballast of the last step


def append(path: str, line: str) -> None:
    # One O_APPEND write of a short line is atomic, also between processes.
    with open(path, "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def first_time(marker: str | None) -> bool:
    """Return whether a failure is due; with a marker file, only once."""
    if marker is None:
        return True
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def begin(state: State) -> State:
    return {"first": len(state.get("done", []))}


async def step(state: State, runtime: Runtime) -> State:
    number = len(state.get("done", [])) - state["first"]
    if record := state.get("record"):
        info = runtime.execution_info
        run_id = info.run_id if info else None
        await asyncio.to_thread(append, record, f"{run_id} {number}")
    await asyncio.sleep(state.get("delay", 0.0))
    await passed(state.get("gate"), number)
    if number in (state.get("fail_at"), state.get("exit_at")) and await asyncio.to_thread(
        first_time, state.get("once")
    ):
        if number == state.get("exit_at"):
            os._exit(70)
        raise RuntimeError(f"step {number} fails as asked")
    size = state.get("ballast", 0) // 2
    more: State = {"text": random.Random(number).randbytes(size).hex()} if size else {}
    return {"done": [number], **more}


def more(state: State) -> Literal["step", "__end__"]:
    taken = len(state.get("done", [])) - state["first"]
    return "step" if taken < state.get("count", 3) else "__end__"


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(begin)
    .add_node(step)
    .add_edge(START, "begin")
    .add_conditional_edges("begin", more)
    .add_conditional_edges("step", more)
    .compile()
)
