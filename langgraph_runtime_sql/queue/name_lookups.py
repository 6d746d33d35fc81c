"""Name look-ups: resolve host names in threads of their own, with a share for each tenant.

asyncio resolves names in its default executor, which also runs nodes. Many webhooks at a name server
that does not answer would occupy all of its threads. Every look-up of an event loop comes here: of
webhooks, of HTTP clients and of the website reader.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from typing import Any

from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.thread_pool import ThreadPool

THREADS = 32
# At once for one tenant. Its other look-ups wait.
EACH = 8
# Then the caller gets an error. Its thread stays occupied until the system gives up.
SECONDS = 5.0

Work = Callable[[], Any]


class NameLookups:
    """Threads that resolve names.

    Args:
        threads: How many names are resolved at once.
        each: How many of them for one tenant.
        seconds: How long a caller waits.
    """

    def __init__(self, threads: int = THREADS, each: int = EACH, seconds: float = SECONDS) -> None:
        self._pool, self._seconds = ThreadPool(threads, "name-lookup", each), seconds
        self._lock = threading.Lock()

    def submit(self, tenant: str | None, work: Work) -> Future[Any]:
        """Resolve a name for a tenant.

        Returns:
            The result of `work`. After the time limit, `socket.gaierror` with EAI_AGAIN.
        """
        future: Future[Any] = Future()
        looking_up = self._pool.submit(work, tenant=tenant)
        looking_up.add_done_callback(partial(self._settle, future))
        asyncio.get_running_loop().call_later(self._seconds, self._expire, future)
        # One that nothing waits for is not begun.
        future.add_done_callback(lambda _: looking_up.cancel())
        return future

    def _settle(self, future: Future[Any], looking_up: Future[Any]) -> None:
        if looking_up.cancelled():
            return
        if (error := looking_up.exception()) is not None:
            self._finish(future, partial(Future.set_exception, exception=error))
        else:
            self._finish(future, partial(Future.set_result, result=looking_up.result()))

    def _expire(self, future: Future[Any]) -> None:
        error = socket.gaierror(socket.EAI_AGAIN, "The name was not resolved in time")
        self._finish(future, partial(Future.set_exception, exception=error))

    def _finish(self, future: Future[Any], set_outcome: Callable[[Future[Any]], None]) -> None:
        with self._lock:
            if future.done():
                return
            # From here on the caller cannot cancel it.
            future.set_running_or_notify_cancel()
        set_outcome(future)


_lookups = NameLookups()


def is_lookup(fn: Callable[..., Any]) -> bool:
    """Return whether a function for an executor resolves a name.

    `asyncio.to_thread` wraps it into a call in the caller's context.
    """
    if isinstance(fn, partial) and isinstance(getattr(fn.func, "__self__", None), Context):
        return bool(fn.args) and fn.args[0] is socket.getaddrinfo
    return fn is socket.getaddrinfo


def submit(work: Work) -> Future[Any]:
    """Resolve a name for the tenant of the calling task."""
    return _lookups.submit(scope.turn(), work)
