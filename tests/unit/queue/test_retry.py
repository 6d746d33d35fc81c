"""Repeating a request: only for our own errors, only while nothing was committed."""

import inspect
import sqlite3
from collections.abc import Awaitable, Callable

import pytest

from langgraph_runtime_sql import retry
from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded
from langgraph_runtime_sql.retry import retry_db


class Handler:
    """A handler that raises the given errors in order, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, *args: object) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def wrapped(handler: Handler) -> Callable[..., Awaitable[str]]:
    async def endpoint(*args: object) -> str:
        """What the route's documentation is made of."""
        return await handler(*args)

    return retry_db(endpoint)


async def test_busy_database_is_tried_three_times() -> None:
    handler = Handler(DatabaseBusy(), DatabaseBusy())
    assert await wrapped(handler)() == "answer"
    assert handler.calls == 3
    handler = Handler(*(DatabaseBusy() for _ in range(9)))
    with pytest.raises(DatabaseBusy):
        await wrapped(handler)()
    assert handler.calls == 3


@pytest.mark.parametrize(
    "error", [DatabaseOverloaded(), ValueError("no"), sqlite3.OperationalError("locked")]
)
async def test_request_is_not_repeated_after_other_errors(error: Exception) -> None:
    """A driver's error may come from a graph, or may follow a commit."""
    handler = Handler(error)
    with pytest.raises(type(error)):
        await wrapped(handler)()
    assert handler.calls == 1


def test_only_our_own_errors_are_retriable_or_overload() -> None:
    for error in (*retry.RETRIABLE_EXCEPTIONS, *retry.OVERLOADED_EXCEPTIONS):
        assert error.__module__ == "langgraph_runtime_sql.errors"


def test_wrapped_route_keeps_its_name_and_documentation() -> None:
    endpoint = wrapped(Handler())
    assert endpoint.__name__ == "endpoint"
    assert inspect.isfunction(endpoint)
    assert endpoint.__doc__ == "What the route's documentation is made of."
