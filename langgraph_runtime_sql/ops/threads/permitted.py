"""Permitted threads: find the row of a thread that the caller may use."""

from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.ops.authorization import as_uuid, authorize
from langgraph_runtime_sql.ops.threads import rows as thread_rows


async def permitted_thread(thread_id: Any, ctx: Any, action: str) -> Row:
    """Return the stored row of a thread if its handler permits `action`.

    Raises:
        HTTPException: (404) it does not exist or a filter hides it.
    """
    identifier = as_uuid(thread_id, "thread ID")
    permitted = await authorize(ctx, "threads", action, {"thread_id": identifier})
    row = await runtime.current().database.read(
        lambda conn: thread_rows.find_permitted(conn, identifier, permitted)
    )
    if row is None:
        raise HTTPException(404, f"Thread with ID {identifier} not found")
    return row
