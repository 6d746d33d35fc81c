"""Interface: what `langgraph_api` looks up in `langgraph_runtime.database`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from langgraph_runtime_sql import runtime


class Handle:
    """What `connect()` yields. Operations own their transactions, so it holds no connection.

    The API creates a batch of runs in one task each, which wait for each other. Where one
    fails, the others would wait for ever, so they share the fate of their handle.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed = False

    def enlist(self) -> None:
        """Cancel the current task when this handle's block fails.

        Raises:
            asyncio.CancelledError: it has failed already.
        """
        if self._failed:
            raise asyncio.CancelledError("Another operation on the same connection has failed")
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)

    def fail(self) -> None:
        """The block has failed: cancel the other tasks that are still at it."""
        self._failed = True
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel("Another operation on the same connection has failed")


@asynccontextmanager
async def connect(*, supports_core_api: bool = False) -> AsyncIterator[Handle]:
    """The interface's connection: each operation commits before it returns."""
    handle = Handle()
    try:
        yield handle
    except BaseException:
        handle.fail()
        raise


async def start_pool() -> None:
    """Make sure that the database is open. The lifespan opens it.

    Raises:
        NotStarted: outside the lifespan.
    """
    runtime.current()


async def stop_pool() -> None:
    """Nothing: the lifespan closes the database."""


async def healthcheck(*, check_db: bool = True) -> None:
    """Raise unless the database is well."""
    if check_db:
        await runtime.current().database.check()


def dependency_checks() -> dict[str, Callable[[], Awaitable[None]]]:
    """What `/ok?check_db=1` asks, by name."""
    return {"database": runtime.current().database.check}


def pool_stats(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Pool figures of a client-server database; SQLite has none."""
    return {}
