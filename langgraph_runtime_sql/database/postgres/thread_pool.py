"""Thread pool: threads that do what they are given; who has worked last works next.

A pool that takes turns goes through all its threads, however little there is to do: each
connection is used again when it, and the server's process for it, have gone cold.

Some threads are kept for work that is urgent, so that it is done however long all others wait.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

Work = Callable[[], None]


class _Member:
    """A thread that waits for work."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.called = threading.Lock()
        self.called.acquire()

    def call(self, work: Work | None) -> None:
        """Give it something to do; None: go home."""
        self.work = work
        self.called.release()

    def wait(self) -> Work | None:
        self.called.acquire()
        return self.work


class ThreadPool:
    """Up to `count` threads, which come with the first work and stay, and some in reserve.

    Args:
        count: How many may work at once; what is more waits its turn.
        name: What the names of the threads begin with.
        reserve: How many more there are if some of the work is urgent.
    """

    def __init__(self, count: int, name: str, reserve: int = 0) -> None:
        self._count, self._limit, self._name = count, count + reserve, name
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[_Member] = []
        self._urgent: deque[Work] = deque()
        self._waiting: deque[Work] = deque()
        # How many are at work that is not urgent.
        self._ordinary = 0
        self._stopped = False

    def submit(self, work: Work, *, urgent: bool = False) -> Future[None]:
        """Have `work` done.

        Args:
            work: What to do.
            urgent: Whether it goes first, and also while `count` others are at work.

        Returns:
            What is set once it has been done, to what it raised if it did.

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

    def stop(self) -> None:
        """Let what was submitted be done, then send everybody home. Blocks; repeatable."""
        with self._lock:
            self._stopped = True
            while self._idle:
                self._idle.pop().call(None)
        for thread in self._threads:
            thread.join()

    def _begin(self) -> None:
        """Give what comes next to whoever has worked last, or to somebody new."""
        work = self._take()
        if work is None:
            return
        if self._idle:
            self._idle.pop().call(work)
        else:
            self._hire(work)

    def _take(self) -> Work | None:
        """What comes next, if it may be begun."""
        if self._urgent:
            return self._urgent.popleft()
        if self._waiting and self._ordinary < self._count:
            self._ordinary += 1
            return self._waiting.popleft()
        return None

    def _hire(self, work: Work) -> None:
        name = f"{self._name}_{len(self._threads)}"
        # A process that ends without a stop does not wait for them: what they were at is undone.
        thread = threading.Thread(target=self._serve, args=(work,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self, work: Work | None) -> None:
        member = _Member()
        while work is not None:
            work()
            work = self._next(member)

    def _next(self, member: _Member) -> Work | None:
        with self._lock:
            if (work := self._take()) is not None:
                return work
            if self._stopped:
                return None
            self._idle.append(member)
        return member.wait()
