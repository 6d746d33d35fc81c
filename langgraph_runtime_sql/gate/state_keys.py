"""State keys: what a client may write to the state of a graph.

With the option `state_keys` at `input`, clients write only the keys of a graph's input schema: by the
state routes, by supersteps, and by the `command` of a run or cron. Whatever starts the run is the
same: HTTP, the event stream, MCP, A2A or a cron. langgraph itself drops other keys of a run's
`input`. The values of `command.resume` are answers to a node, not state.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import process

GOTO = "threads:goto"
"""The permission to let a run continue at a node of the client's choice."""


def limited() -> bool:
    """Return whether clients may write only the keys of a graph's input."""
    return process.current().options.state_keys == "input"


def must_check(command: Any) -> bool:
    """Return whether a command writes keys that `check_command` must see. One that resumes does not."""
    if not command or not limited():
        return False
    return not isinstance(command, Mapping) or any(command.get(name) for name in ("update", "goto"))


def check_values(graph: Any, values: Any) -> None:
    """Check the values that a client writes to the state of `graph`, or of a subgraph in it.

    Raises:
        HTTPException: (422) the graph does not take all of their keys from outside.
    """
    if not limited() or values is None:
        return
    if _WHOLE in (taken := _taken(graph)):
        return
    rows = values if isinstance(values, list | tuple) else [values]
    _refuse(taken, [key for each in rows for key in _keys(each)])


def check_command(graph: Any, command: Any, permissions: Collection[str]) -> None:
    """Check the command of a run, a cron or a superstep.

    Args:
        graph: The graph that will get it.
        command: `update`, `goto` and `resume`, as the client sent them.
        permissions: Those of the caller.

    Raises:
        HTTPException: (403) it has `goto`, for which the caller has no permission; (422) the graph
            does not take all of its keys from outside, or it is no command.
    """
    if not must_check(command):
        return
    if not isinstance(command, Mapping):
        raise HTTPException(422, "`command` must be an object with `update`, `goto` or `resume`")
    if command.get("goto") and GOTO not in permissions:
        raise HTTPException(
            403, f"`goto` needs the permission {GOTO!r} on this server. Leave it out."
        )
    goto = command.get("goto") or ()
    sent = [each for each in (goto if isinstance(goto, list) else [goto]) if isinstance(each, dict)]
    keys = [key for each in sent for key in _keys(each.get("input"))]
    _refuse(_taken(graph), [*keys, *_updated(command.get("update"))])


def _updated(update: Any) -> Iterator[str]:
    """Yield the keys of an update: of an object, or of a list of pairs."""
    if isinstance(update, list | tuple):
        for each in update:
            is_pair = isinstance(each, list | tuple) and len(each) == 2
            yield str(each[0]) if is_pair else _WHOLE
        return
    yield from _keys(update)


def _keys(values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        yield from map(str, values)
    elif values is not None:
        yield _WHOLE


# What langgraph calls a state that has no keys.
_WHOLE = "__root__"


def _refuse(taken: frozenset[str], sent: Collection[str]) -> None:
    foreign = sorted(set(sent) - taken)
    if foreign:
        allowed = ", ".join(f"`{key}`" for key in sorted(taken)) or "no keys"
        raise HTTPException(
            422,
            f"This graph does not take {', '.join(f'`{key}`' for key in foreign)} from outside. "
            f"Its input has {allowed}. Remove the other keys.",
        )


def _taken(graph: Any) -> frozenset[str]:
    """Return the keys of a graph's input."""
    builder: Any = getattr(graph, "builder", None)
    schemas = getattr(builder, "schemas", None)
    if schemas:
        return frozenset(map(str, schemas.get(builder.input_schema) or ()))
    # A graph of langgraph's lower interface names its channels. A function has no keys.
    channels = getattr(graph, "input_channels", ())
    return frozenset(() if isinstance(channels, str) else map(str, channels))


@asynccontextmanager
async def opened(graph_id: str, config: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Open a graph in order to read its schema; a factory makes it with `config`."""
    from langgraph.pregel import Pregel
    from langgraph_api.graph import GRAPHS, get_graph
    from langgraph_api.store import get_store

    static = GRAPHS.get(graph_id)
    if isinstance(static, Pregel):
        yield static
        return
    stored: Any = {**config, "configurable": {**(config.get("configurable") or {})}}
    store = await get_store()
    async with get_graph(graph_id, stored, store=store, access_context="assistants.read") as graph:
        yield graph
