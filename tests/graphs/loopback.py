"""Calls the server it runs in, with the SDK's client that has no URL."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph_sdk import get_client


class State(TypedDict, total=False):
    """Attributes:
    value: given to another graph.
    answer: what that graph made of it.
    """

    value: str
    answer: Any


async def call(state: State) -> State:
    client = get_client()
    answer = await client.runs.wait(None, "echo", input={"value": state["value"]})
    return {"answer": answer}


graph = StateGraph(State).add_node(call).add_edge(START, "call").add_edge("call", END).compile()
