"""Exits: what calls `sys.exit` in a run fails the run, and does not end the process.

asyncio lets `SystemExit` out of any task and out of its loop, which ends whatever else the process
does; and a run that is cut off like that does not know that it was its own doing. So within a run
every task has it replaced before asyncio sees it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.errors import GraphExited

Work = Coroutine[Any, Any, Any]


def keep_in(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Guard the tasks that runs begin on a loop.

    Returns:
        What leaves the loop as it was.
    """
    before = loop.get_task_factory()
    make: Any = _task if before is None else before

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        return make(
            loop, work if request_context.claim.get() is None else _Guarded(work), **options
        )

    def leave() -> None:
        # Whoever has set another meanwhile keeps his.
        if loop.get_task_factory() is factory:
            loop.set_task_factory(before)

    loop.set_task_factory(factory)
    return leave


def _task(loop: asyncio.AbstractEventLoop, work: Work, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(work, loop=loop, **options)


class _Guarded(Work):
    """A coroutine that raises `GraphExited` for `SystemExit`.

    Not another coroutine around it: one that is cancelled before it begins would never await it.
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
        # Such as `cr_frame`, by which libraries see whether it has begun.
        return getattr(self._work, name)
