"""Node threads: run nodes that are plain functions, and record the attempt that each works for.

Cancelling a run abandons such a node, but nothing can end its thread.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.queue import name_lookups
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.thread_pool import ThreadPool

P = ParamSpec("P")
T = TypeVar("T")
Attempt = tuple[str, int]
"""The id of a run and the number of the attempt."""

_at_work: dict[int, Attempt] = {}


class NodeThreads(ThreadPoolExecutor):
    """The default executor of an event loop, whose threads the tenants share in turns.

    Args:
        max_workers: How many threads may work for one tenant. There is one more.
        thread_name_prefix: The prefix of the threads' names.
    """

    def __init__(self, max_workers: int = 32, thread_name_prefix: str = "run-sync") -> None:
        # An event loop accepts no other class. The threads are those of the pool.
        super().__init__(1)
        self._pool = ThreadPool(max_workers + 1, thread_name_prefix)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if name_lookups.is_lookup(fn):
            lookup: Future[T] = name_lookups.submit(partial(fn, *args, **kwargs))
            return lookup
        work: Callable[[], T] = partial(fn, *args, **kwargs)
        # Read here: the threads do not have the context of the caller.
        if (owner := request_context.claim.get()) is not None:
            work = partial(_work, (owner.run_id, owner.attempt), work)
        return self._pool.submit(work, tenant=scope.turn())

    def equip(self, loop: asyncio.AbstractEventLoop) -> None:
        """Become the default executor of an event loop, which also resolves its names.

        uvloop would resolve them in four threads for all, in which the tenants have no shares.
        """
        loop.set_default_executor(self)

        async def getaddrinfo(
            host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
        ) -> Any:
            asked = (host, port, family, type, proto, flags)
            return await loop.run_in_executor(None, socket.getaddrinfo, *asked)

        loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the threads when they have finished the submitted work."""
        self._pool.stop(wait=wait)


def _work(attempt: Attempt, work: Callable[[], T]) -> T:
    thread = threading.get_ident()
    _at_work[thread] = attempt
    try:
        return work()
    finally:
        del _at_work[thread]


def at_work() -> list[Attempt]:
    """Return the attempt of each busy thread."""
    return list(_at_work.values())
