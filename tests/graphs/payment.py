"""Pay once in each of three nodes, one in a subgraph, at a server that tests kill the graph at."""

from typing import Any

import httpx
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from threadhold import effects


class State(TypedDict, total=False):
    url: str
    receipts: list[str]


def paying(name: str) -> Any:
    async def pay(state: State) -> State:
        async def do(effect: str) -> str:
            async with httpx.AsyncClient(timeout=60) as client:
                answer = await client.post(state["url"], json={"node": name, "effect": effect})
            return answer.raise_for_status().text

        receipt = await effects.once("payment", do)
        return {"receipts": [*state.get("receipts", []), receipt]}

    return pay


# The second payment is in a subgraph.
child = StateGraph(State).add_node("pay", paying("b")).add_edge(START, "pay").compile()
builder = StateGraph(State)
for before, name, node in ((START, "a", paying("a")), ("a", "b", child), ("b", "c", paying("c"))):
    builder.add_node(name, node)
    builder.add_edge(before, name)
graph = builder.compile()
