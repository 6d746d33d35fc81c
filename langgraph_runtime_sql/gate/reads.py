"""Reads: the one place that applies the filters of authorization handlers to rows.

An operation asks for what the caller may see, and gets `Visible`. It shows a row only if that admits
it, and adds its condition to a search.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, true

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.gate import handlers
from langgraph_runtime_sql.gate.handlers import Filter
from langgraph_runtime_sql.gate.operations import Operation
from langgraph_runtime_sql.search import filters, thread_query
from langgraph_runtime_sql.search.thread_query import ThreadQuery


@dataclass(frozen=True, slots=True)
class Visible:
    """The rows that the caller may see, within the tenant's.

    Attributes:
        filter: The filter of the handler on their metadata; None shows all.
    """

    filter: Filter = None

    @property
    def is_limited(self) -> bool:
        """Whether a handler's filter may hide rows."""
        return bool(self.filter)

    def shows(self, metadata: Any) -> bool:
        """Return whether a row with this metadata is visible."""
        return filters.allows(self.filter, metadata)

    def only(self, row: Row | None) -> Row | None:
        """Return a row with `metadata`, or None if it is missing or hidden."""
        return row if row is not None and self.shows(row["metadata"]) else None

    def condition(self, metadata: ColumnElement[Any]) -> ColumnElement[bool]:
        """Return the condition that a row whose metadata is in this column is visible."""
        return filters.permits(self.filter, metadata) if self.filter else true()

    def threads(self, conn: Connection, metadata: Mapping[str, Any] | None) -> ThreadQuery:
        """Return the query for the visible threads that contain `metadata`."""
        return thread_query.plan(conn, metadata, self.filter)


ALL = Visible()
"""For work that no client asks for, such as that of a worker or a sweep."""


async def admit(ctx: Any, operation: Operation, value: dict[str, Any]) -> Visible:
    """Return what the caller may see.

    Args:
        ctx: The caller's `AuthContext`; None for that of the request.
        operation: What the caller asks for.
        value: The request. The handler may change `value["metadata"]` in place.

    Raises:
        HTTPException: the handler refused, or its filter is invalid.
    """
    permitted = await handlers.ask(ctx, operation, value)
    filters.validate(permitted)
    return Visible(permitted)
