"""Read everything that a node can reach: tables, store, checkpoints."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.runtime import current

TABLES = (
    *("threads", "thread_labels", "runs", "crons", "store"),
    *("thread_checkpoints", "thread_writes"),
)


class Input(TypedDict, total=False):
    """Attributes:
    namespace: the namespace of a new item in the store.
    thread: the thread of the checkpoint to read.
    """

    namespace: list[str]
    thread: str


class State(Input, total=False):
    seen: dict[str, Any]


def count(conn: Connection) -> dict[str, list[Any]]:
    return {
        table: [row[0] for row in conn.raw.execute(f"SELECT {table}::text FROM {table}").fetchall()]
        for table in TABLES
    }


async def spy(state: State, runtime: Runtime) -> State:
    assert runtime.store is not None
    seen: dict[str, Any] = dict(await current().database.read(count))
    seen["items"] = [item.dict() for item in await runtime.store.asearch((), limit=1000)]
    async with get_client() as client:
        seen["searched"] = await client.threads.search(limit=1000)
    if thread := state.get("thread"):
        config: Any = {"configurable": {"thread_id": thread}}
        seen["checkpoint"] = str(await Checkpointer().aget_tuple(config))
    if namespace := state.get("namespace"):
        await runtime.store.aput(tuple(namespace), "planted", {"by": "spy"})
    return {"seen": seen}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(spy)
    .add_edge(START, "spy")
    .add_edge("spy", END)
    .compile()
)
