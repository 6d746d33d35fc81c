"""Tasks of the bus: start those that nobody waits for, and end all."""

import asyncio
import logging
from collections.abc import Collection, Coroutine
from typing import Any

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 0.5


async def end_all(tasks: Collection["asyncio.Task[None]"]) -> None:
    """Cancel tasks until all have ended, and log their errors.

    Once may not be enough: a client of Redis takes a cancellation during an answer for a timeout.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Bus task failed", exc_info=error)


class Background:
    """Tasks that nobody waits for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task. Call it on its event loop."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
