"""The search for threads: by ids, metadata, values and status."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import structlog

from langgraph_runtime_sql import hooks, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import active
from langgraph_runtime_sql.errors import DamagedCheckpoint
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.caller import Caller, caller
from langgraph_runtime_sql.gate.operations import THREAD_SEARCH
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.answers import Rows, page_of, pick, rows
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.long_values import complete
from langgraph_runtime_sql.search import examined_search
from langgraph_runtime_sql.search.thread_query import ThreadQuery

logger = structlog.stdlib.get_logger(__name__)

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
    exclude_metadata: Sequence[Document] | None = None,
    ctx: Any = None,
) -> tuple[Rows, int | None]:
    """Return a page of matching threads, and the offset of the next page or None.

    Args:
        exclude_metadata: Threads whose metadata contains one of these documents are left out.

    Raises:
        HTTPException: (400) an id is not a UUID; (422) encrypted or long values of too many threads
            would have to be examined, or too many documents are excluded.
    """
    limit, offset = int(limit), int(offset)
    value = as_asked(metadata, values, status, limit, offset)
    visible = await reads.admit(ctx, THREAD_SEARCH, value)
    wanted = [as_uuid(each, "thread ID", 400) for each in ids] if ids else None
    requester = caller(ctx)

    def fn(conn: Connection) -> list[Row]:
        query = query_of(conn, value, visible, requester, wanted).excluding(exclude_metadata or ())
        query = query.sorted_by(sort_by, ascending=(sort_order or "").upper() == "ASC")
        if wanted_values := examined_search.wanted(value["values"]):
            matches = examined_search.matching(conn, query, wanted_values, complete)
            return list(islice(matches, offset, offset + limit + 1))
        if select and not extract:
            query = query.only(select)
        page = {**query.parameters, "limit": limit + 1, "start": offset}
        found = conn.fetchall(query.page(), page)
        # The last one only says that there are more.
        for row in found[:limit]:
            make_whole(conn, row)
        return found

    found = await runtime.current().database.search(fn, ADVICE)
    page, following = page_of(found, limit, offset)
    shown = [_project(thread_rows.public(row), select, extract) for row in page]
    return rows(shown), following


async def count(
    conn: Any,
    *,
    metadata: Document | None = None,
    values: Document | None = None,
    status: str | None = None,
    exclude_metadata: Sequence[Document] | None = None,
    ctx: Any = None,
) -> int:
    """Return the number of matching threads, as `search` does."""
    value = as_asked(metadata, values, status, 0, 0)
    visible = await reads.admit(ctx, THREAD_SEARCH, value)
    requester = caller(ctx)

    def fn(conn: Connection) -> int:
        query = query_of(conn, value, visible, requester).excluding(exclude_metadata or ())
        if wanted_values := examined_search.wanted(value["values"]):
            return sum(1 for _ in examined_search.matching(conn, query, wanted_values, complete))
        return int(conn.scalar(query.count(), query.parameters))

    return await runtime.current().database.search(fn, ADVICE)


def make_whole(conn: Connection, row: Row) -> None:
    """Add a thread's long values, without letting one damaged thread fail a list."""
    try:
        complete(conn, [row])
    except DamagedCheckpoint as error:
        logger.error(str(error), action="checkpoint_damaged")
        # Rather nothing than a part.
        row["values"] = None


def as_asked(
    metadata: Document | None, values: Document | None, status: str | None, limit: int, offset: int
) -> Document:
    """Return the search as the handler sees and may change it."""
    return {
        "metadata": metadata or {},
        "values": values or {},
        "status": status,
        "limit": limit,
        "offset": offset,
    }


def query_of(
    conn: Connection,
    value: Document,
    visible: Visible,
    requester: Caller,
    ids: list[Any] | None = None,
) -> ThreadQuery:
    """Return the query, limited by the handler's filter and the hook's exclusions."""
    without: Document = {}
    hooks.call("before_thread_search", conn, requester, {**value, "without": without})
    query = visible.threads(conn, value["metadata"])
    # The database finds no encrypted values.
    in_sql = None if active() else value["values"]
    is_exact = not examined_search.wanted(value["values"])
    found = query.also(values=in_sql, is_exact=is_exact, status=value["status"], ids=ids)
    return found.without(without)


def _project(row: Row, select: Sequence[str] | None, extract: dict[str, str] | None) -> Row:
    shown = pick(row, select)
    if not extract:
        return shown
    from langgraph_api.utils.extract import extract_path_value

    found = {name: extract_path_value(row, path) for name, path in extract.items()}
    return {**shown, "extracted": found}
