"""The command of a new run or cron: check what it writes, before the transaction that stores it."""

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.gate import state_keys
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows


async def check(assistant_id: UUID, payload: Row, permissions: Any) -> str | None:
    """Check the `command` of a run's payload, if it writes keys.

    Args:
        assistant_id: The assistant of the run.
        payload: `command` and `config` of the run.
        permissions: Those of the caller.

    Returns:
        The graph for which the command is valid, for `must_have_graph`.

    Raises:
        HTTPException: as `state_keys.check_command`.
    """
    if not state_keys.must_check(payload.get("command")):
        return None
    database = runtime.current().database
    row = await database.read(lambda conn: assistant_rows.find(conn, assistant_id))
    if row is None:
        return None
    config = {**row["config"], **(payload.get("config") or {})}
    async with state_keys.opened(row["graph_id"], config) as graph:
        state_keys.check_command(graph, payload["command"], permissions)
    return str(row["graph_id"])


def require_graph(assistant: Row, checked: str | None, payload: Row) -> None:
    """Refuse a command that was checked for another graph than the assistant has now.

    Raises:
        HTTPException: (409) the assistant has changed meanwhile.
    """
    if state_keys.must_check(payload.get("command")) and assistant["graph_id"] != checked:
        raise HTTPException(409, "The assistant has just changed its graph. Repeat the request.")
