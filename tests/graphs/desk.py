"""A chat whose messages have another key, with a breakpoint before its last step."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph, add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    talk: Annotated[list[AnyMessage], add_messages]
    customer: int
    plan: Literal["free", "paid"]


async def answer(state: State) -> dict[str, Any]:
    about = f"{state.get('customer')!r}, {state.get('plan')!r}"
    return {"talk": [AIMessage(f"Customer {about}: {state['talk'][-1].content}")]}


async def close(state: State) -> dict[str, Any]:
    return {"talk": [AIMessage(f"Closed after {len(state['talk'])} messages.")]}


graph = (
    StateGraph(State)
    .add_node(answer)
    .add_node(close)
    .add_edge(START, "answer")
    .add_edge("answer", "close")
    .add_edge("close", END)
    .compile(interrupt_before=["close"])
)
