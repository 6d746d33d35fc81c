"""The functions that `langgraph_api` looks up in `langgraph_runtime.database`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from langgraph_runtime_sql import process


class Handle:
    """The value of `connect()`. It holds no connection: operations own their transactions.

    The API creates the runs of a batch in one task each, and these tasks wait for each other. If
    one fails, the handle cancels the others, which would otherwise wait forever.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed = False

    def enlist(self) -> None:
        """Cancel the current task when this handle's block fails.

        Raises:
            asyncio.CancelledError: the block has failed already.
        """
        if self._failed:
            raise asyncio.CancelledError("Another operation on the same connection has failed")
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)

    def fail(self) -> None:
        """Cancel the other enlisted tasks, because the block has failed."""
        self._failed = True
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel("Another operation on the same connection has failed")


@asynccontextmanager
async def connect(*, supports_core_api: bool = False) -> AsyncIterator[Handle]:
    """Yield the interface's connection. Each operation commits before it returns."""
    handle = Handle()
    try:
        yield handle
    except BaseException:
        handle.fail()
        raise


async def start_pool() -> None:
    """Check that the lifespan has opened the database.

    Raises:
        NotStarted: outside the lifespan.
    """
    process.current()


async def stop_pool() -> None:
    """Do nothing: the lifespan closes the database."""


async def healthcheck(*, check_db: bool = True) -> None:
    """Raise unless the database answers."""
    if check_db:
        await process.current().database.check()


def dependency_checks() -> dict[str, Callable[[], Awaitable[None]]]:
    """Return the checks of `/ok?check_db=1` by name."""
    return {"database": process.current().database.check}


def pool_stats(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return no figures: `langgraph_api` asks for those of its own Postgres pool."""
    return {}
