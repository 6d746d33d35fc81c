"""Retry: which database errors cause a retry, and which a 503.

A request is repeated only if nothing was committed. Otherwise a repeated "create thread" would find
its own first attempt and answer 409. A run is retried after every error of our database, because it
continues from its last checkpoint. Drivers' exceptions do not count: a graph with a database of its
own may raise the same classes.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded

P = ParamSpec("P")
T = TypeVar("T")

RETRIABLE_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy, DatabaseOverloaded)
"""Errors after which a run gets another attempt."""

REPEATED_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy,)
"""Errors after which a request is repeated, because nothing was committed."""

OVERLOADED_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy, DatabaseOverloaded)
"""Errors that a request answers with 503."""

ATTEMPTS = 3
PAUSE_SECONDS = 0.01


def retry_db(func: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Repeat `func`, `ATTEMPTS` times at most, while the database is busy.

    Raises:
        DatabaseBusy: the last attempt failed, too.
    """

    @functools.wraps(func)
    async def handler(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return await func(*args, **kwargs)
            except REPEATED_EXCEPTIONS:
                await asyncio.sleep(PAUSE_SECONDS)
        return await func(*args, **kwargs)

    return handler
