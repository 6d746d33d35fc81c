"""Which errors a request is repeated for, and which ones mean "come back later".

A request is repeated after errors that were raised *before anything was committed*: a
repeated handler that creates a thread would otherwise meet its own first
attempt and answer 409 for a thread its client has just been given. A driver's
exception never is, because a graph that talks to a database of its own may
raise the same class.

Another attempt at a run is made also where its server went away: it goes on from what is stored.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph_runtime_sql.errors import DatabaseAway, DatabaseBusy, DatabaseOverloaded

P = ParamSpec("P")
T = TypeVar("T")

RETRIABLE_EXCEPTIONS: tuple[type[BaseException], ...] = (DatabaseBusy, DatabaseAway)
"""Make another attempt at the run that failed by one of these."""

_UNDONE: tuple[type[BaseException], ...] = (DatabaseBusy,)

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
            except _UNDONE:
                await asyncio.sleep(PAUSE_SECONDS)
        return await func(*args, **kwargs)

    return handler
