"""Tells what a node sees of its run: configurable, context, metadata, user, assistant."""

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime


@dataclass(kw_only=True)
class Context:
    """Values a caller may set for one run."""

    greeting: str = "hello"
    level: int = 1


class Input(TypedDict, total=False):
    note: str


class State(Input, total=False):
    seen: dict[str, Any]


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """The values a person wrote: no internals, nothing that is not JSON."""
    scalars = (str, int, float, bool, list, dict, type(None))
    return {
        key: value
        for key, value in values.items()
        if not key.startswith("__") and isinstance(value, scalars)
    }


async def look(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    info, server = runtime.execution_info, runtime.server_info
    configurable = config.get("configurable", {})
    user = configurable.get("langgraph_auth_user")
    seen = {
        "configurable": plain(configurable),
        "context": asdict(runtime.context) if runtime.context else {},
        "metadata": plain(config.get("metadata", {})),
        "tags": list(config.get("tags") or []),
        "recursion_limit": config.get("recursion_limit"),
        "user": user and {"identity": user["identity"], "permissions": list(user["permissions"])},
        "assistant_id": server.assistant_id if server else None,
        "graph_id": server.graph_id if server else None,
        "run_id": info.run_id if info else None,
        "thread_id": info.thread_id if info else None,
        "attempt": info.node_attempt if info else None,
    }
    return {"seen": seen}


graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(look)
    .add_edge(START, "look")
    .add_edge("look", END)
    .compile()
)
