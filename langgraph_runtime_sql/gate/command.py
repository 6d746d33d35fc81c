"""The command of a new run or cron: check what it writes, before the transaction that stores it."""

from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.gate import state_keys


async def check(
    find_assistant: Callable[[Connection], Row | None], payload: Row, permissions: Any
) -> str | None:
    """Check the `command` of a run's payload, if it writes keys.

    Args:
        find_assistant: Finds the assistant of the run.
        payload: `command` and `config` of the run.
        permissions: Those of the caller.

    Returns:
        The graph for which the command is valid, for `require_graph`.

    Raises:
        HTTPException: as `state_keys.check_command`.
    """
    if not state_keys.must_check(payload.get("command")):
        return None
    row = await process.current().database.read(find_assistant)
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
