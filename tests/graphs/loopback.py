"""Calls the server it runs in, with the SDK's client that has no URL."""

from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client


class Input(TypedDict, total=False):
    """Attributes:
    value: given to another graph.
    by: how: `run` (without a thread), `remote` (as a RemoteGraph that is handed the run's
        config) or `thread` (on a new thread that is handed the run's metadata). With
        `move`, no graph is called: the run's own thread is given metadata.
    graph: the other graph, `echo` by default.
    changes: what of the metadata that is handed on is changed, or is given to the thread.
    """

    value: str
    by: str
    graph: str
    changes: dict[str, Any]


class State(Input, total=False):
    """Attributes:
    answer: what that graph made of the value.
    thread: the thread, as the server answered.
    told: the metadata of the config of this run.
    """

    answer: Any
    thread: Any
    told: dict[str, Any]


async def call(state: State, config: RunnableConfig) -> State:
    client, graph = get_client(), state.get("graph", "echo")
    given: Any = {"value": state.get("value")}
    told = dict(config.get("metadata") or {})
    metadata = {**told, **state.get("changes", {})}
    # On the thread of this very run it would wait for this run's end.
    own = {key: each for key, each in config["configurable"].items() if key != "thread_id"}
    match state.get("by", "run"):
        case "remote":
            remote = RemoteGraph(graph, client=client)
            handed: Any = {**config, "configurable": own, "metadata": metadata}
            return {"answer": await remote.ainvoke(given, handed), "told": told}
        case "thread":
            thread = await client.threads.create(metadata=metadata)
            answer: Any = await client.runs.wait(
                thread["thread_id"], graph, input=given, metadata=metadata
            )
            return {"answer": answer, "thread": thread, "told": told}
        case "move":
            moved = await client.threads.update(
                config["configurable"]["thread_id"], metadata=state["changes"]
            )
            return {"thread": moved, "told": told}
        case _:
            return {"answer": await client.runs.wait(None, graph, input=given), "told": told}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(call)
    .add_edge(START, "call")
    .add_edge("call", END)
    .compile()
)
