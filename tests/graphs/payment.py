"""Pay once in each of three nodes at a server that tests can kill the graph in front of."""

import httpx
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from threadhold import effects


class State(TypedDict, total=False):
    url: str
    receipts: list[str]


def paying(name: str) -> object:
    async def pay(state: State) -> State:
        async def do(effect: str) -> str:
            async with httpx.AsyncClient(timeout=60) as client:
                answer = await client.post(state["url"], json={"node": name, "effect": effect})
            return answer.raise_for_status().text

        receipt = await effects.once("payment", do)
        return {"receipts": [*state.get("receipts", []), receipt]}

    return pay


builder = StateGraph(State)
for before, name in ((START, "a"), ("a", "b"), ("b", "c")):
    builder.add_node(name, paying(name))
    builder.add_edge(before, name)
graph = builder.compile()
