"""Encrypted databases: conversations of tenants, and what of them is stored."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from langgraph_runtime_sql.checkpoint import VALUES
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support import databases, runtime
from tests.support.operations import row

CANARY = "canary-51c0de"
FIRST, SECOND = b"the first key...", b"the second key, of 32 bytes now."
SetKeys = Callable[..., None]
"""Configures the master key and the old ones, as a restart does."""


async def ran(tenant: str | None, text: str) -> UUID:
    """Run the graph with a text in a new thread of a tenant, and return the thread's id."""
    metadata = {} if tenant is None else {"tenant_id": tenant}
    thread_id = uuid4()
    await row(Threads.put(None, thread_id, metadata=metadata, if_exists="raise"))
    message = {"messages": [{"role": "user", "content": text}], "value": text}
    async with runtime.working():
        run = await runtime.start_run(thread_id, "echo", message, stream_resumable=True)
        assert await runtime.ended(run["run_id"]) == "success"
    return thread_id


async def said(thread_id: UUID) -> str:
    """Return the first message of a thread: from its row, its state and its run, which agree."""
    thread = await row(Threads.get(None, thread_id))
    config = {"configurable": {"thread_id": str(thread_id)}}
    state = await Threads.State.get(None, config)
    [run] = [each async for each in await Runs.search(None, thread_id, limit=10, offset=0)]
    texts = {
        thread["values"]["messages"][0]["content"],
        state.values["messages"][0]["content"],
        run["kwargs"]["input"]["messages"][0]["content"],
    }
    [text] = texts
    return str(text)


def texts(path: Path) -> str:
    """Return every row of the tables with documents."""
    tables = "threads", "runs", "crons", "store", "event_segments", *(each.name for each in VALUES)
    return repr([databases.execute(path, f"SELECT * FROM {table}") for table in tables])
