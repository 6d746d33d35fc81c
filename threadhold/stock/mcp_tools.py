"""MCP tools: give each assistant a tool name of its own.

`langgraph_api` finds the assistant of a tool by name. It lists one of several assistants with the
same name, and a call of that name fails. Here each assistant has its own name (`names.tool_names`),
so a new assistant neither hides nor blocks the tool of another one.
"""

from collections.abc import Callable
from typing import Any

from langgraph_runtime_sql.ops.assistants.names import tool_name, tool_names
from threadhold.stock.graph_schemas import throttled

# The API's limit of a search.
MAX_ASSISTANTS = 1000


def client(stock: Callable[[], Any]) -> Callable[[], Any]:
    """Return `_client`, which makes a `NamedClient` that requests few schemas at a time."""
    return lambda: NamedClient(throttled(stock()))


class NamedClient:
    """The API's client for itself, which returns assistants under the names of their tools."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.assistants = _Assistants(client.assistants)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _Assistants:
    def __init__(self, assistants: Any) -> None:
        self._assistants = assistants

    async def search(
        self, *, headers: Any, limit: int = MAX_ASSISTANTS, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return a page of the caller's assistants: the system's, then the oldest first."""
        order = {"sort_by": "created_at", "sort_order": "asc"}
        search, whole = self._assistants.search, {"limit": MAX_ASSISTANTS, "headers": headers}
        # Apart, so that a thousand assistants of users cannot push them out.
        system = await search(metadata={"created_by": "system"}, **order, **whole)
        rows = {row["assistant_id"]: row for row in [*system, *await search(**order, **whole)]}
        names = tool_names(list(rows.values()))
        named = [{**row, "name": _title(row, names[key])} for key, row in rows.items()]
        return named[offset : offset + limit]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assistants, name)


def _title(row: dict[str, Any], name: str) -> str:
    """Return the assistant's own name if it gives the tool's name, for display."""
    return str(row["name"]) if tool_name(row["name"]) == name else name
