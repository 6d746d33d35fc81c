"""Which errors are repeated, and which ones mean "come back later".

A request is repeated only after errors that were raised *before anything was
committed*: a repeated handler that creates a thread would otherwise meet its own
first attempt and answer 409 for a thread its client has just been given. A run is
tried again after every error of our database: it goes on from its last checkpoint,
whether or not the write that failed was stored. A driver's exception is no reason,
because a graph that talks to a database of its own may raise the same class.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded

P = ParamSpec("P")
T = TypeVar("T")

RETRIABLE_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy, DatabaseOverloaded)
"""Give a run another attempt: it was the database's fault."""

REPEATED_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy,)
"""Repeat the request: nothing was committed."""

OVERLOADED_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy, DatabaseOverloaded)
"""Answer 503: the server is well, the moment is not."""

ATTEMPTS = 3
PAUSE_SECONDS = 0.01


def retry_db(func: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Repeat the whole of `func`, at most three times, while the database is busy.

    Raises:
        DatabaseBusy: it still was at the last attempt.
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
