"""Answer the last message, or return a value: the smallest run."""

import operator
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph, add_messages
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    value: Any


class State(Input, total=False):
    # The number of runs of this thread.
    count: Annotated[int, operator.add]


async def echo(state: State) -> State:
    update: State = {"count": 1}
    if state.get("messages"):
        update["messages"] = [AIMessage(f"echo: {state['messages'][-1].text}")]
    return update


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(echo)
    .add_edge(START, "echo")
    .add_edge("echo", END)
    .compile()
)
