"""Node threads: where nodes run that are plain functions, known by the attempt that they work for.

Cancelling a run lets go of such a node, but nothing can end its thread.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from langgraph_runtime_sql import request_context

P = ParamSpec("P")
T = TypeVar("T")
Attempt = tuple[str, int]
"""The id of a run, and which attempt at it."""

_at_work: dict[int, Attempt] = {}


class NodeThreads(ThreadPoolExecutor):
    """The threads of an event loop: its default executor."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        # Here, because the threads do not know who asks.
        owner = request_context.claim.get()
        if owner is None:
            return super().submit(fn, *args, **kwargs)
        work: Any = _work
        return super().submit(work, (owner.run_id, owner.attempt), fn, *args, **kwargs)


def _work(attempt: Attempt, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    thread = threading.get_ident()
    _at_work[thread] = attempt
    try:
        return fn(*args, **kwargs)
    finally:
        del _at_work[thread]


def at_work() -> list[Attempt]:
    """For whom threads of this process are at work, once for each thread."""
    return list(_at_work.values())
