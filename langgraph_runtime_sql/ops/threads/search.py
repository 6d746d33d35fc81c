"""Finding threads: by ids, metadata, values and status, in an order, a page at a time."""

from collections.abc import Sequence
from typing import Any

from langgraph_runtime_sql import hooks, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops.authorization import (
    Filter,
    Rows,
    as_uuid,
    authorize,
    caller,
    pick,
    rows,
)
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.search import thread_query
from langgraph_runtime_sql.search.thread_query import ThreadQuery

Document = dict[str, Any]

ADVICE = (
    "Ask for fewer threads, by entries of their metadata that are short texts, numbers or "
    "booleans: an index finds those."
)


async def search(
    conn: Any,
    *,
    ids: Sequence[Any] | None = None,
    metadata: Document | None,
    values: Document | None,
    status: str | None,
    limit: int,
    offset: int,
    sort_by: str | None = None,
    sort_order: str | None = None,
    select: Sequence[str] | None = None,
    extract: dict[str, str] | None = None,
    ctx: Any = None,
) -> tuple[Rows, int | None]:
    """Threads that match, and the offset of the next page or None.

    Raises:
        HTTPException: (400) an id is not a UUID.
    """
    limit, offset = int(limit), int(offset)
    asked = _asked(metadata, values, status, limit, offset)
    permitted = await authorize(ctx, "threads", "search", asked)
    wanted = [as_uuid(each, "thread ID", 400) for each in ids] if ids else None
    who = caller(ctx)

    def fn(conn: Connection) -> list[Row]:
        query = _query(conn, asked, permitted, who, wanted)
        query = query.sorted_by(sort_by, ascending=(sort_order or "").upper() == "ASC")
        page = {**query.parameters, "limit": limit + 1, "start": offset}
        return conn.fetchall(query.page(), page)

    found = await runtime.current().database.search(fn, ADVICE)
    cursor = offset + limit if len(found) > limit else None
    page = [thread_rows.public(row) for row in found[:limit]]
    return rows([_project(row, select, extract) for row in page]), cursor


async def count(
    conn: Any,
    *,
    metadata: Document | None = None,
    values: Document | None = None,
    status: str | None = None,
    ctx: Any = None,
) -> int:
    """How many threads match."""
    asked = _asked(metadata, values, status, 0, 0)
    permitted = await authorize(ctx, "threads", "search", asked)
    who = caller(ctx)

    def fn(conn: Connection) -> int:
        query = _query(conn, asked, permitted, who)
        return int(conn.scalar(query.count(), query.parameters))

    return await runtime.current().database.search(fn, ADVICE)


def _asked(
    metadata: Document | None, values: Document | None, status: str | None, limit: int, offset: int
) -> Document:
    """What the handler sees, and may change."""
    return {
        "metadata": metadata or {},
        "values": values or {},
        "status": status,
        "limit": limit,
        "offset": offset,
    }


def _query(
    conn: Connection,
    asked: Document,
    permitted: Filter,
    who: Caller,
    ids: list[Any] | None = None,
) -> ThreadQuery:
    """The query for what is asked, within the handler's filter and what a hook leaves out."""
    without: Document = {}
    hooks.call("before_thread_search", conn, who, {**asked, "without": without})
    query = thread_query.plan(conn, asked["metadata"], permitted)
    return query.also(values=asked["values"], status=asked["status"], ids=ids).without(without)


def _project(row: Row, select: Sequence[str] | None, extract: dict[str, str] | None) -> Row:
    shown = pick(row, select)
    if not extract:
        return shown
    from langgraph_api.utils.extract import extract_path_value

    found = {name: extract_path_value(row, path) for name, path in extract.items()}
    return {**shown, "extracted": found}
