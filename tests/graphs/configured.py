"""Return what a node sees of its run: configurable, context, metadata, user, assistant."""

from dataclasses import asdict, dataclass
from typing import Any

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict


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
    """Return the values without internal ones and without values that are not JSON."""
    scalars = (str, int, float, bool, list, dict, type(None))
    return {
        key: value
        for key, value in values.items()
        if not key.startswith("__") and isinstance(value, scalars)
    }


async def look(state: State, runtime: Runtime[Context]) -> State:
    config = get_config()
    context = runtime.context or Context()  # type: ignore[truthy-bool]  # None outside a server
    info, server = runtime.execution_info, runtime.server_info
    configurable = config.get("configurable", {})
    user = configurable.get("langgraph_auth_user")
    seen = {
        "configurable": plain(configurable),
        "context": asdict(context),
        "metadata": plain(config.get("metadata", {})),
        "tags": list(config.get("tags") or []),
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
