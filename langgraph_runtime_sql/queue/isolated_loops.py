"""Isolated loops: event loops in their own threads, for graphs that block their loop."""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any

from langgraph_runtime_sql.queue import system_exit
from langgraph_runtime_sql.queue.node_threads import NodeThreads


class IsolatedLoops:
    """Several event loops, each in a thread, each for one coroutine at a time.

    Args:
        count: The number of loops.
    """

    def __init__(self, count: int) -> None:
        self._all: list[asyncio.AbstractEventLoop] = []
        self._threads: list[threading.Thread] = []
        for index in range(count):
            loop = asyncio.new_event_loop()
            NodeThreads().equip(loop)
            system_exit.guard(loop)
            thread = threading.Thread(
                target=self._serve, args=(loop,), name=f"run-loop-{index}", daemon=True
            )
            thread.start()
            self._all.append(loop)
            self._threads.append(thread)
        self._idle = list(self._all)

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of `work`. Cancelling this cancels `work` and waits for its end."""
        caller, loop = asyncio.get_running_loop(), self._idle.pop()
        context = contextvars.copy_context()
        ended: asyncio.Future[asyncio.Task[Any]] = caller.create_future()
        started: list[asyncio.Task[Any]] = []

        def start() -> None:
            task = loop.create_task(work, context=context)
            task.add_done_callback(lambda task: caller.call_soon_threadsafe(ended.set_result, task))
            started.append(task)

        loop.call_soon_threadsafe(start)
        try:
            task = await asyncio.shield(ended)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(lambda: started[0].cancel())
            await asyncio.shield(ended)
            raise
        finally:
            if ended.done():
                # Otherwise the work ignores its cancellation and still occupies the loop.
                self._idle.append(loop)
        return task.result()

    def close(self) -> None:
        """Stop the loops without waiting for blocked threads."""
        for loop in self._all:
            loop.call_soon_threadsafe(loop.stop)
        for thread in self._threads:
            thread.join(timeout=1.0)
