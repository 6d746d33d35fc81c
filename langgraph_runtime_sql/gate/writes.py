"""Writes: the one place through which every write passes that a client asks for.

An operation is admitted first: the handlers are asked, and their filter says which rows it may change.
Its transactions run through the `Admission`. A transaction in a client's request that did not come
this way raises `UngatedWrite`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.gate import caller as callers
from langgraph_runtime_sql.gate import handlers, operations, reads
from langgraph_runtime_sql.gate.caller import Caller
from langgraph_runtime_sql.gate.operations import Operation
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.request_context import OwnWrite, own_write

__all__ = [
    "Admission",
    "OwnWrite",
    "admit",
    "admit_item",
    "by_project",
    "checked",
    "in_client_request",
    "own_write",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A write that the caller may do.

    Attributes:
        operation: What the caller asks for.
        visible: The rows that it may change.
        caller: The user of the request.
        permissions: Those of the caller.
    """

    operation: Operation
    visible: Visible
    caller: Caller
    permissions: frozenset[str]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let the block write, also by other components, such as the graph of a thread."""
        with checked(self.operation):
            yield

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(conn)` in one transaction, as `Database.write` does."""
        database: Database = process.current().database
        with self.opened():
            return await database.write(fn)


async def admit_item(action: str, value: dict[str, Any]) -> handlers.Filter:
    """Admit what a route of the store does to items, until the request ends.

    Args:
        action: The action of an operation on items.
        value: The request. The handler may change it in place.

    Returns:
        The handler's filter on the values of items, in the store's own language.

    Raises:
        HTTPException: the handler refused.
    """
    operation = _ON_ITEMS[action]
    permitted = await handlers.ask(None, operation, value)
    if operation.writes:
        request_context.admitted.set(operation.name)
    return permitted


_ON_ITEMS = {each.action: each for each in operations.ALL if each.kind == "item"}


async def admit(ctx: Any, operation: Operation, value: dict[str, Any]) -> Admission:
    """Admit a write.

    Args:
        ctx: The caller's `AuthContext`; None for that of the request.
        operation: What the caller asks for.
        value: The request. The handler may change `value["metadata"]` in place.

    Raises:
        HTTPException: the handler refused, or its filter is invalid.
    """
    visible = await reads.admit(ctx, operation, value)
    return Admission(
        operation=operation,
        visible=visible,
        caller=callers.caller(ctx),
        permissions=callers.permissions(ctx),
    )


def checked(operation: Operation) -> AbstractContextManager[None]:
    """Let the block write for a caller whose right to an operation the host has checked itself."""
    return request_context.admitting(operation.name)


@contextmanager
def in_client_request() -> Iterator[None]:
    """Refuse, in the block, writes that were not admitted."""
    with request_context.admitting(request_context.NOTHING):
        yield


@contextmanager
def by_project() -> Iterator[None]:
    """Let the project's own code write items in a request, such as a route of its `http.app`.

    It is trusted, as in a run. Of what was admitted already, nothing changes.
    """
    if request_context.admitted.get() != request_context.NOTHING:
        yield
        return
    with request_context.admitting("project"):
        yield
