"""Finding threads: by ids, metadata, values and status, in an order, a page at a time."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, func
from sqlalchemy import select as select_rows

from langgraph_runtime_sql import database, filters
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.ops import thread_rows
from langgraph_runtime_sql.ops.access import Filter, Rows, as_uuid, authorize, pick, rows
from langgraph_runtime_sql.statements import Row
from langgraph_runtime_sql.tables import threads

SORTABLE = ("thread_id", "created_at", "updated_at", "state_updated_at", "status")
Document = dict[str, Any]


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

    def fn(conn: Connection) -> list[Row]:
        statement, sparse = _matching(conn, asked, permitted, wanted)
        ordered = _ordered(statement, sort_by, sort_order, sparse=sparse)
        return conn.fetchall(ordered.limit(limit + 1).offset(offset))

    found = await database.current().read(fn)
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

    def fn(conn: Connection) -> int:
        statement, _ = _matching(conn, asked, permitted, None)
        ids = statement.with_only_columns(threads.c.thread_id).subquery()
        return int(conn.scalar(select_rows(func.count().label("n")).select_from(ids)))

    return await database.current().read(fn)


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


def _matching(
    conn: Connection, asked: Document, permitted: Filter, ids: list[UUID] | None
) -> tuple[Select[Any], bool]:
    """The threads that match, and whether they are found from few rows."""
    conditions, sparse = filters.thread_conditions(conn, asked["metadata"], permitted)
    if asked["values"]:
        conditions.append(filters.has(threads.c["values"], asked["values"]))
    if asked["status"]:
        conditions.append(threads.c.status == asked["status"])
    if ids is not None:
        conditions.append(threads.c.thread_id.in_(ids))
        sparse = True
    return select_rows(threads).where(and_(True, *conditions)), sparse


def _ordered(
    statement: Select[Any], sort_by: str | None, sort_order: str | None, *, sparse: bool
) -> Select[Any]:
    column: Any = threads.c[sort_by if sort_by in SORTABLE else "updated_at"]
    if sparse:
        # Hide the column from the planner, which would else walk its index
        # through every thread rather than sort the few that match.
        column = func.coalesce(column, None)
    tie = threads.c.thread_id
    if (sort_order or "").upper() == "ASC":
        return statement.order_by(column.asc(), tie.asc())
    return statement.order_by(column.desc(), tie.desc())


def _project(row: Row, select: Sequence[str] | None, extract: dict[str, str] | None) -> Row:
    shown = pick(row, select)
    if not extract:
        return shown
    from langgraph_api.utils.extract import extract_path_value

    found = {name: extract_path_value(row, path) for name, path in extract.items()}
    return {**shown, "extracted": found}
