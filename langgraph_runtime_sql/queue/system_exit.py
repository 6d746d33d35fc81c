"""Make `sys.exit` in a node fail the run instead of ending the process.

asyncio lets `SystemExit` pass through tasks and out of the event loop. That ends the whole process,
and the run is not marked as failed. So tasks of a run raise `GraphExited` instead.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.errors import GraphExited

Work = Coroutine[Any, Any, Any]


def guard(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Guard the tasks that runs create on a loop.

    Returns:
        A function that removes the guard.
    """
    before = loop.get_task_factory()
    make: Any = _task if before is None else before

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        guarded = work if request_context.claim.get() is None else _Guarded(work)
        return make(loop, guarded, **options)

    def remove() -> None:
        # Keep a factory that was set after ours.
        if loop.get_task_factory() is factory:
            loop.set_task_factory(before)

    loop.set_task_factory(factory)
    return remove


def _task(loop: asyncio.AbstractEventLoop, work: Work, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(work, loop=loop, **options)


class _Guarded(Work):
    """A coroutine that raises `GraphExited` for `SystemExit`.

    Not an `async def` around the work: cancelled before its start, it would never await the work.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work = work

    def send(self, value: Any) -> Any:
        try:
            return self._work.send(value)
        except SystemExit as error:
            raise GraphExited(error.code) from error

    def throw(self, *raised: Any) -> Any:
        try:
            return self._work.throw(*raised)
        except SystemExit as error:
            raise GraphExited(error.code) from error

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()

    def __getattr__(self, name: str) -> Any:
        # Libraries read attributes such as `cr_frame`.
        return getattr(self._work, name)
