"""Names: reserve the names of the graphs for the assistants of the system.

MCP shows each assistant as a tool with the assistant's name. An assistant of a user with the name
of a graph would stand in for the graph's own tool, and one whose name only looks the same would be
called by people and models that mean the graph.
"""

import re
import unicodedata
from itertools import chain, count
from typing import Any
from uuid import UUID

import decancer_py
from starlette.exceptions import HTTPException

# Characters.
MAX_TOOL_NAME = 128
_BLANKS = re.compile(r"\s+")
_INVALID = re.compile(r"[^a-zA-Z0-9_\-.]")


def tool_name(name: str) -> str:
    """Return the MCP tool name of an assistant's name; empty if it has no valid character."""
    return _INVALID.sub("", _BLANKS.sub("_", name.strip()))[:MAX_TOOL_NAME]


def look(name: str) -> str:
    """Return what a reader sees of a name: letters and digits, those that look alike as one.

    Case, accents, blanks, punctuation and invisible characters do not count.
    """
    return "".join(filter(str.isalnum, _cured(name)))


def _cured(name: str) -> str:
    # Not left to the library: some accents, zero-width characters (blanks for it) and overrides of
    # the direction, which it obeys.
    apart = unicodedata.normalize("NFKD", name)
    visible = (each for each in apart if unicodedata.category(each) not in ("Cf", "Mn"))
    return str(decancer_py.parse("".join(visible)))


def _resembles(name: str, graph: str) -> bool:
    """Return whether a name gives the tool of a graph, or looks like the graph's name."""
    if tool_name(name) == tool_name(graph):
        return True
    # Punctuation may stand for a letter (`$`), or for nothing.
    forms = (look(name), "".join(_cured(name).split()))
    # The library also compares `1` with `l`, `0` with `o`, and the like.
    return bool(look(graph)) and any(decancer_py.parse(each) == look(graph) for each in forms)


def refuse_reserved(assistant_id: UUID, name: str | None) -> None:
    """Refuse the name of a graph, or one that looks like it, for an assistant of a user.

    Args:
        assistant_id: The assistant that gets the name.
        name: The name; None changes nothing.

    Raises:
        HTTPException: (422) the name belongs to a graph, or looks like it.
    """
    from langgraph_api.graph import GRAPHS, SYSTEM_ASSISTANT_IDS

    if name is None or str(assistant_id) in SYSTEM_ASSISTANT_IDS:
        return
    for graph in GRAPHS:
        if _resembles(name, graph):
            raise HTTPException(
                422,
                # As ASCII, so that the message shows which characters only look like others.
                f"The name {name!a} is reserved for the server's own assistant of the graph "
                f"{graph!r}. Choose another name",
            )


def tool_names(assistants: list[dict[str, Any]]) -> dict[str, str]:
    """Return a unique MCP tool name for each assistant, by assistant id.

    The assistants of the system have the names of their graphs. A name that is empty, or looks like
    one that is taken, gets the beginning of the assistant's id.

    Args:
        assistants: Rows with `assistant_id`, `graph_id` and `name`, those that choose first at
            the beginning.
    """
    from langgraph_api.graph import GRAPHS, SYSTEM_ASSISTANT_IDS

    found: dict[str, str] = {}
    used: set[str] = set()
    looks: set[str] = set()
    # The system's first, so that no order of creation takes the name of a graph.
    for row in sorted(assistants, key=lambda row: row["assistant_id"] not in SYSTEM_ASSISTANT_IDS):
        identifier = row["assistant_id"]
        is_system = identifier in SYSTEM_ASSISTANT_IDS
        shown = row["graph_id"] if is_system else row["name"]
        name, seen = tool_name(shown), look(shown)
        is_taken = name in used or (
            not is_system and (seen in looks or any(_resembles(shown, graph) for graph in GRAPHS))
        )
        if not name or is_taken:
            name = _with_id(name, identifier, used)
        used.add(name)
        looks.update({seen, look(name)})
        found[identifier] = name
    return found


def _with_id(name: str, identifier: str, used: set[str]) -> str:
    """Return a name that ends in the id, or in a number too: users may choose such a name."""
    base = name or "assistant"
    ends = chain((identifier[:8], identifier), (f"{identifier}-{each}" for each in count(2)))
    names = (f"{base[: MAX_TOOL_NAME - len(end) - 1]}-{end}" for end in ends)
    return next(each for each in names if each not in used)
