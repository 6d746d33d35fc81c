"""Turns: one thread for work that must not run twice at once, with tenants in turn.

A tenant waits for one step of another tenant, and not for the other's backlog.
"""

import asyncio
import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """One thread that works for tenants in turn.

    Args:
        name: The name of the thread.
        niceness: How much CPU time the thread, and the threads that it starts, leave to others, from
            0 to 19. Only Linux has a niceness of threads.
    """

    def __init__(self, name: str, niceness: int = 0) -> None:
        self._thread = ThreadPoolExecutor(1, name, partial(_yield_to_others, niceness))
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, tenant: str, work: Callable[[], T]) -> Future[T]:
        """Return the future of `work`, which begins when it is the tenant's turn.

        Cancelled work is not begun.
        """
        future: Future[T] = Future()

        def step() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # the caller gets it
                future.set_exception(error)

        with self._lock:
            self._waiting.setdefault(tenant, deque()).append(step)
        self._thread.submit(self._next)
        return future

    async def run(self, tenant: str, work: Callable[[], T]) -> T:
        """Return the result of `work` when it is the tenant's turn. Cancelled work is not begun."""
        return await asyncio.wrap_future(self.submit(tenant, work))

    def _next(self) -> None:
        with self._lock:
            tenant, queue = next(iter(self._waiting.items()))
            step = queue.popleft()
            if queue:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]
        step()


def _yield_to_others(niceness: int) -> None:
    if sys.platform == "linux" and niceness:
        thread = threading.get_native_id()
        # A process may not become less nice than it is.
        wanted = max(niceness, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, wanted)
