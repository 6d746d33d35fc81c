"""The lower bound: the echo graph with a stock saver, AsyncSqliteSaver or AsyncPostgresSaver.

It runs in its own process. For each line on stdin it times invocations, so that the parent can
alternate between it and the servers: `{"count": n}` times n, each on a new thread;
`{"thread": id, "messages": [...]}` times one; `{"thread": id, "fill": [...]}` adds messages to a thread.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import orjson

from bench.servers import ROOT


@asynccontextmanager
async def bare(database: str) -> AsyncIterator["Bare"]:
    """Start the child process. `database` is the path of a file or a Postgres URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.bare",
        database,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    child = Bare(process)
    try:
        await child.seconds(3)  # imports and first-use costs
        yield child
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


class Bare:
    """The parent's handle on the child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def seconds(self, count: int) -> list[float]:
        """Time `count` invocations, each on a new thread; in seconds.

        Raises:
            RuntimeError: the child process has ended.
        """
        return await self._ask({"count": count})

    async def turn(self, thread: str, messages: list[Any]) -> float:
        """Time an invocation on a thread, in seconds. Errors: `seconds`."""
        [taken] = await self._ask({"thread": thread, "messages": messages})
        return taken

    async def fill(self, thread: str, messages: list[Any]) -> None:
        """Add messages to the state of a thread. Errors: `seconds`."""
        await self._ask({"thread": thread, "fill": messages})

    async def _ask(self, command: dict[str, Any]) -> list[float]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the bare graph's process was started without pipes")
        stdin.write(orjson.dumps(command) + b"\n")
        line = await stdout.readline()
        if not line:
            raise RuntimeError("the bare graph's process ended early: see its output above")
        return [float(value) for value in orjson.loads(line)]


async def serve(database: str) -> None:
    from bench.graphs.echo import builder

    async with _saver(database) as saver:
        graph = builder.compile(checkpointer=saver)
        while line := await asyncio.to_thread(sys.stdin.readline):
            taken = await _execute(graph, orjson.loads(line))
            sys.stdout.buffer.write(orjson.dumps(taken) + b"\n")
            sys.stdout.buffer.flush()


async def _execute(graph: Any, command: dict[str, Any]) -> list[float]:
    if "fill" in command:
        config = {"configurable": {"thread_id": command["thread"]}}
        await graph.aupdate_state(config, {"messages": command["fill"]}, as_node="answer")
        return []
    if "thread" in command:
        return [await _invoke(graph, command["thread"], command["messages"])]
    hello = [{"role": "user", "content": "hello"}]
    return [await _invoke(graph, str(uuid4()), hello) for _ in range(command["count"])]


async def _invoke(graph: Any, thread: str, messages: list[Any]) -> float:
    begun = time.perf_counter()
    await graph.ainvoke({"messages": messages}, {"configurable": {"thread_id": thread}})
    return time.perf_counter() - begun


@asynccontextmanager
async def _saver(database: str) -> AsyncIterator[Any]:
    if not database.startswith("postgresql:"):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(database) as file:
            yield file
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with AsyncPostgresSaver.from_conn_string(database) as server:
        await server.setup()
        yield server


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
