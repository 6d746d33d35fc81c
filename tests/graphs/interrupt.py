"""Interrupt once for each question, and continue with the answers."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    questions: list[str]


class State(Input, total=False):
    prepared: bool
    answers: list[Any]
    summary: str


async def prepare(state: State) -> State:
    return {"prepared": True}


async def ask(state: State) -> State:
    questions = state.get("questions") or ["go on?"]
    return {"answers": [interrupt({"question": question}) for question in questions]}


async def conclude(state: State) -> State:
    return {"summary": ", ".join(map(str, state["answers"]))}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(prepare)
    .add_node(ask)
    .add_node(conclude)
    .add_edge(START, "prepare")
    .add_edge("prepare", "ask")
    .add_edge("ask", "conclude")
    .add_edge("conclude", END)
    .compile()
)
