"""Ask a person by an interrupt, and store the answer."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class Input(TypedDict):
    question: str


class State(Input):
    answer: str


async def ask(state: Input) -> dict[str, str]:
    return {"answer": interrupt(state["question"])}


builder = StateGraph(State, input_schema=Input)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
builder.add_edge("ask", END)
graph = builder.compile()
