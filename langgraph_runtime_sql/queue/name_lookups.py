"""Name look-ups: resolve host names in threads of their own, with a share for each tenant.

asyncio resolves names in its default executor, which also runs nodes. Many webhooks at a name server
that does not answer would occupy all of its threads. Every look-up of an event loop comes here: of
webhooks, of HTTP clients and of the website reader.
"""

import asyncio
import socket
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from functools import partial
from typing import Any

from langgraph_runtime_sql import process
from langgraph_runtime_sql.tenancy import scope

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
        self._pool = ThreadPoolExecutor(threads, "name-lookup")
        self._threads, self._each, self._seconds = threads, each, seconds
        # Tenants in the order of their turns.
        self._waiting: OrderedDict[str | None, deque[tuple[Future[Any], Work]]] = OrderedDict()
        self._active: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    def submit(self, tenant: str | None, work: Work) -> Future[Any]:
        """Resolve a name for a tenant.

        Returns:
            The result of `work`. After the time limit, `socket.gaierror` with EAI_AGAIN.
        """
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.setdefault(tenant, deque()).append((future, work))
        asyncio.get_running_loop().call_later(self._seconds, self._expire, future)
        self._start()
        return future

    def _start(self) -> None:
        """Start the look-ups for which there are threads, each tenant in turn."""
        with self._lock:
            for tenant in list(self._waiting):
                queue = self._waiting[tenant]
                while queue and queue[0][0].done():
                    queue.popleft()
                if not queue:
                    del self._waiting[tenant]
                    continue
                if self._active.total() >= self._threads:
                    return
                if self._active[tenant] < self._each:
                    self._waiting.move_to_end(tenant)
                    self._active[tenant] += 1
                    self._pool.submit(self._work, tenant, *queue.popleft())

    def _work(self, tenant: str | None, future: Future[Any], work: Work) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            self._finish(future, partial(Future.set_exception, exception=error))
        else:
            self._finish(future, partial(Future.set_result, result=result))
        finally:
            with self._lock:
                self._active[tenant] -= 1
                if not self._active[tenant]:
                    del self._active[tenant]
            self._start()

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
    visible = scope.current(process.configuration().options.tenant_key)
    return _lookups.submit(visible.tenant, work)
