"""The graph of a thread: find its id, and open it on the thread's checkpoints."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from langgraph.types import StateSnapshot
from sqlalchemy import bindparam, select

from langgraph_runtime_sql import checkpoint
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Prepared, Row

_LAST_KWARGS = Prepared(
    select(runs.c.kwargs, runs.c.run_id)
    .where(runs.c.thread_id == bindparam("thread_id"))
    .order_by(runs.c.created_at.desc())
    .limit(1)
)


def id_of(conn: Connection, row: Row) -> str | None:
    """Return the id of a thread's graph from its metadata, else from its last run."""
    if graph_id := row["metadata"].get("graph_id"):
        return str(graph_id)
    kwargs = conn.scalar(_LAST_KWARGS, {"thread_id": row["thread_id"]})
    return kwargs["config"]["configurable"]["graph_id"] if kwargs else None


@asynccontextmanager
async def opened(
    row: Row,
    graph_id: str,
    config: dict[str, Any],
    access: str,
    hook: checkpoint.UnpackHook | None = None,
    on_read: Callable[[int], None] | None = None,
) -> AsyncIterator[Any]:
    """Open the thread's graph on its checkpointer, as the API builds it for `access`.

    Args:
        row: The thread.
        graph_id: Its graph.
        config: The config for the graph.
        access: `threads.read` or `threads.update`.
        hook: Decodes extension types. Default: to JSON for `threads.read`.
        on_read: Called with the size of each state that a list of its checkpoints reads.
    """
    from langgraph.checkpoint.serde.jsonplus import _msgpack_ext_hook_to_json
    from langgraph_api import config as api_config
    from langgraph_api._checkpointer import get_checkpointer
    from langgraph_api.graph import get_graph
    from langgraph_api.store import get_store

    stored = row["config"]
    merged = {
        **stored,
        "configurable": {**stored.get("configurable", {}), **config.get("configurable", {})},
    }
    # Clients get JSON, so that no class of the graph is imported.
    if hook is None and access == "threads.read":
        hook = _msgpack_ext_hook_to_json
    checkpointer = (
        await get_checkpointer()
        if api_config.USE_CUSTOM_CHECKPOINTER
        else checkpoint.Checkpointer(unpack_hook=hook, on_read=on_read)
    )
    async with get_graph(
        graph_id, merged, checkpointer=checkpointer, store=await get_store(), access_context=access
    ) as graph:
        yield graph


async def snapshot(
    row: Row, graph_id: str, config: dict[str, Any], *, subgraphs: bool = False
) -> StateSnapshot:
    """Return the thread's state at the checkpoint that `config` names, by default the newest."""
    async with opened(row, graph_id, config, "threads.read") as graph:
        return of_thread(row, await graph.aget_state(config, subgraphs=subgraphs))


def of_thread(row: Row, snapshot: StateSnapshot) -> StateSnapshot:
    """Return a state with its thread in the metadata, where clients look; no checkpoint stores it."""
    if snapshot.metadata is None:
        return snapshot
    about: Any = {**snapshot.metadata, "thread_id": str(row["thread_id"])}
    tasks = tuple(
        each._replace(state=of_thread(row, each.state))
        if isinstance(each.state, StateSnapshot)
        else each
        for each in snapshot.tasks
    )
    return snapshot._replace(metadata=about, tasks=tasks)
