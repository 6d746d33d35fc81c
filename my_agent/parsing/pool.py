"""Pool: the workers of this process, which start with the first task, and tenants in turn."""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from my_agent.parsing.process import Failure, Process
from my_agent.parsing.unreadable import Unreadable
from my_agent.turns import TenantThreads

T = TypeVar("T")
SECONDS = 30.0
"""Time that a task may take."""
MEMORY = 1 << 30
"""Bytes of memory that a worker may take."""
# At least two: one tenant never has all.
PROCESSES = max(2, min(4, os.cpu_count() or 2))
# Tasks of one tenant that may wait.
MOST_WAITING = 200
# The turn of work that no run of a tenant causes.
NOBODY = ""

logger = logging.getLogger(__name__)


class Pool:
    """Worker processes.

    Args:
        processes: How many there are at most; at least two.
    """

    def __init__(self, processes: int = PROCESSES) -> None:
        # A worker ends with the thread that started it, so the threads stay.
        self._turns = TenantThreads("parsing", threads=processes, most=MOST_WAITING)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._stops = 0
        self._lock = threading.Lock()

    def submit(
        self,
        function: Callable[..., T],
        *arguments: Any,
        tenant: str,
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> Future[T]:
        """Return the future of a parser's result.

        Args:
            function: A function of a module, whose result has an annotated type that JSON can show.
            arguments: What it is called with.
            tenant: Whose turn it takes.
            seconds: Time that it may take.
            memory: Bytes of memory that it may take.

        Raises:
            TooManyWaiting: so much of the tenant's work waits already.
        """
        return self._turns.submit(tenant, lambda: self._call(function, arguments, seconds, memory))

    def pids(self) -> list[int]:
        """Return the ids of the workers."""
        with self._lock:
            return [each.pid for each in self._all]

    def stop(self) -> None:
        """Cancel what waits and kill the workers; their tasks fail. A later task starts others."""
        self._turns.cancel()
        with self._lock:
            idle, busy = self._idle, self._all.difference(self._idle)
            self._idle, self._all = [], set()
            self._stops += 1
        for process in idle:
            process.stop()
        # The threads that read from them close their pipes.
        for process in busy:
            process.kill()

    def _call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], seconds: float, memory: int
    ) -> T:
        process = self._process()
        try:
            return process.call(function, arguments, seconds, memory)
        except Failure as error:
            logger.warning("Parser failed: %s: %s", function.__qualname__, error.place)
            raise
        finally:
            self._give_back(process)

    def _process(self) -> Process:
        """Return the process that worked last, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            stops = self._stops
        process = Process()
        with self._lock:
            if stops == self._stops:
                self._all.add(process)
                return process
        process.stop()
        raise Unreadable("the server stops: try again")

    def _give_back(self, process: Process) -> None:
        with self._lock:
            if process.is_usable:
                self._idle.append(process)
                return
            self._all.discard(process)
        process.stop()


_pool = Pool()
# A server that ends otherwise closes the pipes, which ends the workers, too.
atexit.register(_pool.stop)


async def run(
    function: Callable[..., T],
    *arguments: Any,
    tenant: str | None = None,
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> T:
    """Return the result of a parser, from a worker process.

    Args:
        function: A function of a module, whose result has an annotated type that JSON can show.
        arguments: What it is called with.
        tenant: Whose turn it takes; None: of the current run.
        seconds: Time that it may take, without its wait for other tenants.
        memory: Bytes of memory that it may take. Only Linux has this limit.

    Raises:
        Unreadable: the parser raised it, or exceeded a limit of time or memory.
        TooManyWaiting: so much of the tenant's work waits already.
    """
    owner = _of_run() if tenant is None else tenant
    return await asyncio.wrap_future(
        _pool.submit(function, *arguments, tenant=owner, seconds=seconds, memory=memory)
    )


def call(
    function: Callable[..., T],
    *arguments: Any,
    tenant: str,
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> T:
    """As `run`, but blocks."""
    found = _pool.submit(function, *arguments, tenant=tenant, seconds=seconds, memory=memory)
    try:
        return found.result()
    except KeyboardInterrupt:
        # The interpreter does not end before its threads.
        stop()
        raise


def stop() -> None:
    """End the workers of this process. A later task starts others. Repeatable."""
    _pool.stop()


def _of_run() -> str:
    # Imported late, because workers import this module without any need of langgraph.
    from langgraph.config import get_config

    from my_agent.user import caller

    try:
        return caller(get_config()).tenant_id
    except RuntimeError:
        # Outside of a run, as a background job is.
        return NOBODY
