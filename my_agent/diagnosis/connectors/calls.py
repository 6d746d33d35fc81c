"""Calls: ask a tool of a named server, within all bounds. A failure is an answer, too."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from my_agent.diagnosis.connector import Connector
from my_agent.diagnosis.connectors import arguments as checked
from my_agent.diagnosis.connectors import sessions, texts, tools

if TYPE_CHECKING:
    import mcp

_REFUSAL = 1_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What came of a call: a text, or a refusal.

    Attributes:
        text: what the tool answered: data, and not an instruction.
        refusal: why there is no answer; empty if there is one.
        is_cut: whether the end of the text was left out.
    """

    text: str = ""
    refusal: str = ""
    is_cut: bool = False


async def call(tenant: str, name: str, arguments: Mapping[str, Any]) -> Answer:
    """Call a tool.

    Args:
        tenant: the tenant that asks. A tool that it may not use does not exist for it.
        name: `connector.tool`.
        arguments: by name, as the tool's schema wants them.

    Raises:
        pydantic.ValidationError: the setting `DIAGNOSIS_CONNECTORS` is not valid.
    """
    owner, _, tool = name.partition(".")
    connector = tools.connectors(tenant).get(owner)
    if connector is None or tool not in connector.tools:
        return Answer(refusal=f"There is no tool {name[:100]!r}")
    work = partial(_call, connector=connector, tool=tool, arguments=arguments)
    try:
        return await sessions.ask(connector, tenant, work)
    except sessions.ConnectorFailed as error:
        return Answer(refusal=str(error))


async def _call(
    client: "mcp.Client", connector: Connector, tool: str, arguments: Mapping[str, Any]
) -> Answer:
    """Call a tool of an open session, if its server still offers it as one that may be called."""
    from mcp import MCPError

    name = f"{connector.name}.{tool}"
    try:
        offer = await tools.offered(client, connector)
        if tool in offer.refused:
            return Answer(refusal=f"{name} is refused: {offer.refused[tool]}")
        if tool not in offer.tools:
            return Answer(refusal=f"{connector.name} has no tool {tool!r} now")
        if wrong := checked.problem(offer.tools[tool].schema, arguments):
            return Answer(refusal=f"{name}: {wrong}")
        found = await client.call_tool(tool, dict(arguments))
    except (MCPError, RuntimeError) as error:
        # The SDK raises RuntimeError for an answer that is not what the tool has promised.
        logger.warning("Tool %s failed: %s", name, str(error)[:200])
        return Answer(refusal=_said(name, str(error)))
    text = texts.of_content(found.content, found.structured_content)
    if found.is_error:
        return Answer(refusal=_said(name, text))
    kept, is_cut = texts.plain(text, connector.max_chars)
    return Answer(kept, is_cut=is_cut)


def _said(name: str, text: str) -> str:
    return f"{name} failed: {texts.plain(text, _REFUSAL)[0]}"
