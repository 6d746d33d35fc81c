"""Thread pool: tenants take turns, and the thread that worked last gets the next work.

A round-robin pool would use all its threads, however little work there is. Each connection, and the
server's process for it, would have gone cold before its next use.

No tenant has all threads at work, so another tenant's work begins at once. Reserved threads run urgent
work however long all others wait.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from langgraph_runtime_sql.tenant_queue import TenantQueue

T = TypeVar("T")
Work = Callable[[], None]


class _Worker:
    """A thread that waits for work."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.called = threading.Lock()
        self.called.acquire()

    def call(self, work: Work | None) -> None:
        """Assign work; None ends the thread."""
        self.work = work
        self.called.release()

    def wait(self) -> Work | None:
        self.called.acquire()
        return self.work


class ThreadPool:
    """Up to `count` threads that start with the first work and stay, and some in reserve.

    Args:
        count: How many may work at once; further work waits.
        name: The prefix of the threads' names.
        each: How many of them may work for one tenant; default all but one.
        reserve: How many more threads there are for urgent work.
    """

    def __init__(self, count: int, name: str, each: int | None = None, *, reserve: int = 0) -> None:
        self._count, self._limit, self._name = count, count + reserve, name
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[_Worker] = []
        self._urgent: deque[Work] = deque()
        self._waiting: TenantQueue[Work] = TenantQueue(max(1, count - 1) if each is None else each)
        # The number of threads at work that is not urgent.
        self._ordinary = 0
        self._stopped = False

    def submit(
        self,
        work: Callable[[], T],
        *,
        tenant: str | None = None,
        urgent: bool = False,
        most: int | None = None,
    ) -> Future[T]:
        """Queue `work`.

        Args:
            work: The function to call.
            tenant: Whose turn it takes; None: the platform's.
            urgent: Run it first, also while `count` threads are busy.
            most: How much of a tenant's work may wait; None: no limit.

        Returns:
            The future of its result. Cancelled work is not begun.

        Raises:
            RuntimeError: the pool was stopped.
            TooManyWaiting: `most` of the tenant's work waits already.
        """
        done: Future[T] = Future()
        run = partial(_run, work, done)
        with self._lock:
            if self._stopped:
                raise RuntimeError("The pool was stopped")
            if urgent:
                self._urgent.append(run)
            else:
                self._waiting.add(tenant, run, most)
            if self._idle or len(self._threads) < self._limit:
                self._begin()
        return done

    def usage(self) -> tuple[int, int, int]:
        """Return the most threads, the busy ones, and how much work waits."""
        with self._lock:
            busy = len(self._threads) - len(self._idle)
            return self._limit, busy, len(self._urgent) + len(self._waiting)

    def stop(self, *, wait: bool = True) -> None:
        """Finish the submitted work, then end the threads. Repeatable.

        Args:
            wait: Block until the threads have ended.
        """
        with self._lock:
            self._stopped = True
            while self._idle:
                self._idle.pop().call(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _begin(self) -> None:
        """Assign the next work to the thread that worked last, or to a new one."""
        work = self._take()
        if work is None:
            return
        if self._idle:
            self._idle.pop().call(work)
        else:
            self._start_thread(work)

    def _take(self) -> Work | None:
        """Return the next work that may start; None if there is none."""
        if self._urgent:
            return self._urgent.popleft()
        if self._ordinary >= self._count or (found := self._waiting.take()) is None:
            return None
        self._ordinary += 1
        return partial(self._ended_after, *found)

    def _ended_after(self, tenant: str | None, work: Work) -> None:
        work()
        with self._lock:
            self._ordinary -= 1
            self._waiting.ended(tenant)

    def _start_thread(self, work: Work) -> None:
        name = f"{self._name}_{len(self._threads)}"
        # Daemon threads: a process that ends without a stop does not wait for them. The database
        # rolls their work back.
        thread = threading.Thread(target=self._serve, args=(work,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self, work: Work | None) -> None:
        worker = _Worker()
        while work is not None:
            work()
            work = self._next(worker)

    def _next(self, worker: _Worker) -> Work | None:
        with self._lock:
            if (work := self._take()) is not None:
                return work
            if self._stopped:
                return None
            self._idle.append(worker)
        return worker.wait()


def _run(work: Callable[[], T], done: Future[T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  # the caller's to handle
        done.set_exception(error)
    else:
        done.set_result(result)
