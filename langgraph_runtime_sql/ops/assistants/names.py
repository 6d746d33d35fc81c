"""Names: reserve the names of the graphs for the assistants of the system.

MCP shows each assistant as a tool with the assistant's name. An assistant of a user with the name
of a graph would stand in for the graph's own tool.
"""

import re
from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

# Characters.
MAX_TOOL_NAME = 128
_BLANKS = re.compile(r"\s+")
_INVALID = re.compile(r"[^a-zA-Z0-9_\-.]")


def tool_name(name: str) -> str:
    """Return the MCP tool name of an assistant's name; empty if it has no valid character."""
    return _INVALID.sub("", _BLANKS.sub("_", name.strip()))[:MAX_TOOL_NAME]


def refuse_reserved(assistant_id: UUID, name: str | None) -> None:
    """Refuse the name of a graph for an assistant that is not the system's.

    Args:
        assistant_id: The assistant that gets the name.
        name: The name; None changes nothing.

    Raises:
        HTTPException: (422) the name belongs to a graph.
    """
    from langgraph_api.graph import GRAPHS, SYSTEM_ASSISTANT_IDS

    if name is None or str(assistant_id) in SYSTEM_ASSISTANT_IDS:
        return
    for graph in GRAPHS:
        if tool_name(graph) == tool_name(name):
            raise HTTPException(
                422,
                f"The name {name!r} is reserved for the server's own assistant of the graph "
                f"{graph!r}. Choose another name",
            )


def tool_names(assistants: list[dict[str, Any]]) -> dict[str, str]:
    """Return a unique MCP tool name for each assistant, by assistant id.

    The assistants of the system have the names of their graphs. A name that is taken, or empty,
    gets the beginning of the assistant's id.

    Args:
        assistants: Rows with `assistant_id`, `graph_id` and `name`, those that choose first at
            the beginning.
    """
    from langgraph_api.graph import GRAPHS, SYSTEM_ASSISTANT_IDS

    reserved = {tool_name(graph) for graph in GRAPHS}
    found: dict[str, str] = {}
    used: set[str] = set()
    # The system's first, so that no order of creation takes the name of a graph.
    for row in sorted(assistants, key=lambda row: row["assistant_id"] not in SYSTEM_ASSISTANT_IDS):
        identifier = row["assistant_id"]
        is_system = identifier in SYSTEM_ASSISTANT_IDS
        name = tool_name(row["graph_id"] if is_system else row["name"])
        if not name or name in used or (name in reserved and not is_system):
            name = _with_id(name, identifier, used)
        used.add(name)
        found[identifier] = name
    return found


def _with_id(name: str, identifier: str, used: set[str]) -> str:
    base = name or "assistant"
    short = f"{base[: MAX_TOOL_NAME - 9]}-{identifier[:8]}"
    return short if short not in used else f"{base[: MAX_TOOL_NAME - 37]}-{identifier}"
