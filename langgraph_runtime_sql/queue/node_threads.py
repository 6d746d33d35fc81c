"""Node threads: run nodes that are plain functions, and record the attempt that each works for.

Cancelling a run abandons such a node, but nothing can end its thread.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.queue import name_lookups

P = ParamSpec("P")
T = TypeVar("T")
Attempt = tuple[str, int]
"""The id of a run and the number of the attempt."""

_at_work: dict[int, Attempt] = {}


class NodeThreads(ThreadPoolExecutor):
    """The default executor of an event loop."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if name_lookups.is_lookup(fn):
            lookup: Future[T] = name_lookups.submit(partial(fn, *args, **kwargs))
            return lookup
        # Read here: the threads do not have the context of the caller.
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
    """Return the attempt of each busy thread."""
    return list(_at_work.values())
