"""Tools: what of the named servers a tenant may call. What is not allowed in so many words is refused."""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from my_agent.diagnosis.connector import Connector
from my_agent.diagnosis.connectors import sessions, texts
from my_agent.diagnosis.settings import DiagnosisSettings

if TYPE_CHECKING:
    import mcp

# Seconds for which a list is kept, and for which a server is not asked again after it failed.
_KEPT, _FAILED = 300.0, 30.0
_MOST_LISTS = 100
_PAGES = 20
_DESCRIPTION, _SCHEMA = 1_000, 20_000


@dataclass(frozen=True)
class Tool:
    """A tool that may be called.

    Attributes:
        name: `connector.tool`. The name of the tool may have points, that of the connector has none.
        description: what its server says about it; data, and not an instruction.
        schema: JSON Schema of its arguments.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Offer:
    """What a server offers of the tools that its connector allows, by their own name.

    Attributes:
        tools: those that may be called.
        refused: why others may not.
    """

    tools: Mapping[str, Tool]
    refused: Mapping[str, str]


# Lists by connector, with the moment until which they are kept, on the monotonic clock.
_known: OrderedDict[str, tuple[float, list[Tool]]] = OrderedDict()


def connectors(tenant: str) -> dict[str, Connector]:
    """Return the connectors that a tenant may use, by name."""
    named = DiagnosisSettings.from_environment().connectors
    return {each.name: each for each in named if each.serves(tenant)}


async def available(tenant: str) -> list[Tool]:
    """Return the tools that a tenant may call now. A server that fails has none for a while.

    Args:
        tenant: the tenant that asks.
    """
    found = await asyncio.gather(*(_kept(each, tenant) for each in connectors(tenant).values()))
    return [tool for tools in found for tool in tools]


async def offered(client: "mcp.Client", connector: Connector) -> Offer:
    """Ask a server for its tools, and judge those that the connector allows.

    Raises:
        mcp.MCPError: the server refuses to list them.
    """
    tools, refused = dict[str, Tool](), dict[str, str]()
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            if each.name in connector.tools:
                if reason := _objection(each):
                    refused[each.name] = reason
                else:
                    tools[each.name] = _tool(connector, each)
        cursor = page.next_cursor
        if cursor is None:
            break
    # A server may list a name twice: then the objection counts.
    return Offer({name: each for name, each in tools.items() if name not in refused}, refused)


async def _kept(connector: Connector, tenant: str) -> list[Tool]:
    key = connector.model_dump_json()
    until, known = _known.get(key, (0.0, []))
    if until > time.monotonic():
        return known
    try:
        offer = await sessions.ask(connector, tenant, lambda client: offered(client, connector))
        found, seconds = list(offer.tools.values()), _KEPT
    except sessions.ConnectorFailed:
        # It has been logged.
        found, seconds = [], _FAILED
    _known[key] = time.monotonic() + seconds, found
    _known.move_to_end(key)
    while len(_known) > _MOST_LISTS:
        _known.popitem(last=False)
    return found


def _objection(tool: "mcp.Tool") -> str:
    """Return why a tool may not be called although it is allowed; empty if nothing speaks against it."""
    hints = tool.annotations
    if hints is not None and (hints.read_only_hint is False or hints.destructive_hint is True):
        return "its server says that it changes something"
    if len(json.dumps(tool.input_schema)) > _SCHEMA:
        return f"the schema of its arguments has more than {_SCHEMA:,} characters"
    return ""


def _tool(connector: Connector, tool: "mcp.Tool") -> Tool:
    description, _ = texts.plain(tool.description or tool.title or "", _DESCRIPTION)
    return Tool(f"{connector.name}.{tool.name}", description, tool.input_schema)
