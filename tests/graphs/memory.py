"""Use the store in a node."""

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict


class Input(TypedDict, total=False):
    op: Literal["put", "get", "delete", "search", "namespaces"]
    namespace: list[str]
    key: str
    value: dict[str, Any]
    query: str
    filter: dict[str, Any]
    limit: int
    offset: int


class State(Input, total=False):
    result: Any


async def memory(state: State, runtime: Runtime) -> State:
    if runtime.store is None:
        raise RuntimeError("this graph needs a store")
    namespace = tuple(state.get("namespace") or ("notes",))
    return {"result": await apply(runtime.store, namespace, state)}


async def apply(store: BaseStore, namespace: tuple[str, ...], state: State) -> Any:
    op, key = state.get("op", "get"), state.get("key", "note")
    limit, offset = state.get("limit", 10), state.get("offset", 0)
    if op == "put":
        return await store.aput(namespace, key, state.get("value", {}))
    if op == "delete":
        return await store.adelete(namespace, key)
    if op == "get":
        item = await store.aget(namespace, key)
        return item.value if item else None
    if op == "search":
        found = await store.asearch(
            namespace,
            query=state.get("query"),
            filter=state.get("filter"),
            limit=limit,
            offset=offset,
        )
        return [{"namespace": list(i.namespace), "key": i.key, "value": i.value} for i in found]
    if op == "namespaces":
        names = await store.alist_namespaces(prefix=namespace, limit=limit, offset=offset)
        return [list(name) for name in names]
    raise ValueError(f"unknown operation {op!r}")


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(memory)
    .add_edge(START, "memory")
    .add_edge("memory", END)
    .compile()
)
