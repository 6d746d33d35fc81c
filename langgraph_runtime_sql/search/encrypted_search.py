"""Search for threads by encrypted values: the database cannot compare them, so Python does.

The other conditions of the search still run in the database. The search examines a bounded number
of their matches, in the requested order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import active
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.search.thread_query import ThreadQuery

# The threads that one search decrypts at most, and those of one statement.
EXAMINED = 2000
PAGE = 200


def wanted(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values to compare in Python: none without them, or without encryption."""
    if not values or not active():
        return {}
    found: dict[str, Any] = json_codec.plain(dict(values))
    return found


def matching(conn: Connection, query: ThreadQuery, values: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the threads of a query whose values contain `values`, in the query's order.

    Args:
        conn: The transaction, with the time limit of a search.
        query: The other conditions.
        values: From `wanted`.

    Raises:
        HTTPException: (422) more than `EXAMINED` threads meet the other conditions.
        SearchTimeout: the time limit was reached.
    """
    for start in range(0, EXAMINED, PAGE):
        page = {**query.parameters, "limit": PAGE, "start": start}
        found = conn.fetchall(query.page(), page)
        for row in found:
            conn.check_deadline()
            if filters.contains(row["values"], values):
                yield row
        if len(found) < PAGE:
            return
    raise HTTPException(
        422,
        f"Values are encrypted, so a search for them examines at most {EXAMINED} threads. Restrict "
        "it by metadata or status.",
    )
