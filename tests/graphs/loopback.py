"""Call the own server with the SDK's client without a URL."""

from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client


class Input(TypedDict, total=False):
    """Attributes:
    value: the input of the other graph.
    by: the kind of call: `run` (without a thread), `remote` (as a RemoteGraph with the config of
        this run), `thread` (on a new thread with the metadata of this run), or `move` (no graph:
        update the metadata of this run's thread).
    graph: the other graph, by default `echo`.
    changes: changes of the passed metadata.
    """

    value: str
    by: str
    graph: str
    changes: dict[str, Any]


class State(Input, total=False):
    """Attributes:
    answer: the result of the other graph.
    thread: the thread in the server's answer.
    told: the metadata in the config of this run.
    """

    answer: Any
    thread: Any
    told: dict[str, Any]


async def call(state: State, config: RunnableConfig) -> State:
    client, graph = get_client(), state.get("graph", "echo")
    given: Any = {"value": state.get("value")}
    told = dict(config.get("metadata") or {})
    metadata = {**told, **state.get("changes", {})}
    # A run on the same thread would wait for the end of this run.
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
