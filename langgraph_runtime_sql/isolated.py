"""Isolated loops: event loops in threads of their own, for graphs that block theirs."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


class IsolatedLoops:
    """A few event loops, each in a thread, each taking one coroutine at a time.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._idle: list[asyncio.AbstractEventLoop] = []
        self._threads: list[threading.Thread] = []
        for index in range(count):
            loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=self._serve, args=(loop,), name=f"run-loop-{index}", daemon=True
            )
            thread.start()
            self._idle.append(loop)
            self._threads.append(thread)
        self._all = list(self._idle)

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """`work`'s result; cancelling this cancels it."""
        loop = self._idle.pop()
        context = _copy_context()

        async def contained() -> Any:
            return await asyncio.get_running_loop().create_task(work, context=context)

        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(contained(), loop))
        finally:
            self._idle.append(loop)

    def close(self) -> None:
        """Stop the loops. Does not wait for a thread that is blocked."""
        for loop in self._all:
            loop.call_soon_threadsafe(loop.stop)
        for thread in self._threads:
            thread.join(timeout=1.0)


def _copy_context() -> Any:
    import contextvars

    return contextvars.copy_context()
