"""Turns: threads for work that few may do at once, with tenants in turn.

A tenant waits for one step of another tenant, and not for the other's backlog.
"""

import asyncio
import os
import sys
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Step = Callable[[], None]


class TooManyWaiting(RuntimeError):
    """So much of the tenant's work waits already that no more is accepted. Try again later."""


class TenantThreads:
    """Threads that work for tenants in turn. One tenant never has all of them.

    Args:
        name: The name of the threads.
        niceness: How much CPU time the threads, and the threads that they start, leave to others, from
            0 to 19. Only Linux has a niceness of threads.
        threads: How many there are. They start with the first work.
        most: How much of one tenant's work may wait; None: no limit.
    """

    def __init__(
        self, name: str, niceness: int = 0, *, threads: int = 1, most: int | None = None
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, name, partial(_yield_to_others, niceness))
        self._each, self._most = max(1, threads - 1), most
        self._waiting: OrderedDict[str, deque[tuple[Future[Any], Step]]] = OrderedDict()
        self._begun: Counter[str] = Counter()
        self._lock = threading.Lock()

    def submit(self, tenant: str, work: Callable[[], T]) -> Future[T]:
        """Return the future of `work`, which begins when it is the tenant's turn.

        Cancelled work is not begun.

        Raises:
            TooManyWaiting: `most` of the tenant's work waits already.
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
            queue = self._waiting.setdefault(tenant, deque())
            if self._most is not None and len(queue) >= self._most:
                raise TooManyWaiting(f"{self._most} tasks of yours wait already: try again later")
            queue.append((future, step))
        self._threads.submit(self._serve)
        return future

    async def run(self, tenant: str, work: Callable[[], T]) -> T:
        """Return the result of `work` when it is the tenant's turn. Cancelled work is not begun.

        Raises:
            TooManyWaiting: `most` of the tenant's work waits already.
        """
        return await asyncio.wrap_future(self.submit(tenant, work))

    def cancel(self) -> None:
        """Cancel all work that has not begun."""
        with self._lock:
            waiting = [future for queue in self._waiting.values() for future, _ in queue]
            self._waiting.clear()
        for future in waiting:
            future.cancel()

    def _serve(self) -> None:
        """Do work until none may begin. The end of a tenant's work lets its next work begin."""
        while (taken := self._take()) is not None:
            tenant, step = taken
            step()
            with self._lock:
                self._begun[tenant] -= 1
                if not self._begun[tenant]:
                    del self._begun[tenant]

    def _take(self) -> tuple[str, Step] | None:
        with self._lock:
            free = (each for each in self._waiting if self._begun[each] < self._each)
            if (tenant := next(free, None)) is None:
                return None
            queue = self._waiting[tenant]
            _, step = queue.popleft()
            if queue:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]
            self._begun[tenant] += 1
            return tenant, step


def _yield_to_others(niceness: int) -> None:
    if sys.platform == "linux" and niceness:
        thread = threading.get_native_id()
        # A process may not become less nice than it is.
        wanted = max(niceness, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, wanted)
