"""Thread pool: the thread that worked last gets the next work.

A round-robin pool would use all its threads, however little work there is. Each connection, and the
server's process for it, would have gone cold before its next use.

Reserved threads run urgent work however long all others wait.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

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
        reserve: How many more threads there are for urgent work.
    """

    def __init__(self, count: int, name: str, reserve: int = 0) -> None:
        self._count, self._limit, self._name = count, count + reserve, name
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[_Worker] = []
        self._urgent: deque[Work] = deque()
        self._waiting: deque[Work] = deque()
        # The number of threads at work that is not urgent.
        self._ordinary = 0
        self._stopped = False

    def submit(self, work: Work, *, urgent: bool = False) -> Future[None]:
        """Queue `work`.

        Args:
            work: The function to call.
            urgent: Run it first, also while `count` threads are busy.

        Returns:
            A future that is set when the work is done, with its error if it raised one.

        Raises:
            RuntimeError: the pool was stopped.
        """
        done: Future[None] = Future()

        def reported() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # the caller's to handle
                done.set_exception(error)
            else:
                done.set_result(None)
            if not urgent:
                with self._lock:
                    self._ordinary -= 1

        with self._lock:
            if self._stopped:
                raise RuntimeError("The pool was stopped")
            (self._urgent if urgent else self._waiting).append(reported)
            if self._idle or len(self._threads) < self._limit:
                self._begin()
        return done

    def usage(self) -> tuple[int, int, int]:
        """Return the most threads, the busy ones, and how much work waits."""
        with self._lock:
            busy = len(self._threads) - len(self._idle)
            return self._limit, busy, len(self._urgent) + len(self._waiting)

    def stop(self) -> None:
        """Finish the submitted work, then end the threads. Blocks; repeatable."""
        with self._lock:
            self._stopped = True
            while self._idle:
                self._idle.pop().call(None)
        for thread in self._threads:
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
        if self._waiting and self._ordinary < self._count:
            self._ordinary += 1
            return self._waiting.popleft()
        return None

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
