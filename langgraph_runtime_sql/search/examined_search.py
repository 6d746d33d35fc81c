"""Examined search: compare values of threads in Python where the database cannot.

It cannot compare encrypted values, nor lists that a thread's row leaves to its checkpoint. The other
conditions of the search still run in the database. The search examines a bounded number of their
matches, in the requested order.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import active
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.search.thread_query import ThreadQuery

# Characters of JSON from which a list of a state stays out of its thread's row.
LONG = 16 * 1024
# The threads that one search examines at most, and those of one statement.
EXAMINED = 2000
PAGE = 200

Complete = Callable[[Connection, list[Row]], None]
"""Adds to rows what they leave to their checkpoints."""


def wanted(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values to compare in Python; none if the database can compare them all.

    Raises:
        HTTPException: (422) arrays hold too many values.
    """
    found = filters.searchable(values or {})
    # A long list contains short ones.
    return found if active() or any(type(each) is list for each in found.values()) else {}


def matching(
    conn: Connection, query: ThreadQuery, values: Mapping[str, Any], complete: Complete
) -> Iterator[Row]:
    """Yield the threads of a query whose values contain `values`, in the query's order.

    Args:
        conn: The transaction, with the time limit of a search.
        query: The other conditions. Without encryption it finds the threads whose rows contain
            `values`, and those whose rows leave something out.
        values: From `wanted`.
        complete: Completes rows.

    Raises:
        HTTPException: (422) more than `EXAMINED` threads have to be examined.
        SearchTimeout: the time limit was reached.
    """
    start = examined = 0
    while examined < EXAMINED:
        page = {**query.parameters, "limit": PAGE, "start": start}
        found = conn.fetchall(query.page(), page)
        for row in found:
            conn.check_deadline()
            if not active() and row["long_values"] is None:
                yield row
                continue
            examined += 1
            complete(conn, [row])
            if filters.contains(row["values"], values):
                yield row
        if len(found) < PAGE:
            return
        start += PAGE
    raise HTTPException(
        422,
        "The database cannot compare values that are encrypted, nor long lists, so a search for "
        f"them examines at most {EXAMINED} threads. Restrict it by metadata or status.",
    )
