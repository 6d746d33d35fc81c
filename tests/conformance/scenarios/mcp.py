"""The MCP endpoint: assistants as tools."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World

HEADERS = {"accept": "application/json, text/event-stream"}


async def rpc(w: World, method: str, params: Any = None) -> Any:
    """Send one JSON-RPC request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return await w.call("POST", "/mcp", body, headers=HEADERS)


async def tool(w: World, graph: str) -> str:
    """Create an assistant with a unique name, so that a call of it is not ambiguous."""
    name = f"tool-{w.new_id()}"
    await w.sdk.assistants.create(graph, name=name, description="a tool")
    return name


@scenario()
async def initialize(w: World) -> Any:
    return [
        await rpc(w, "initialize", {"protocolVersion": "2025-03-26"}),
        await rpc(w, "initialize", {"protocolVersion": "1999-01-01"}),
        await rpc(w, "ping"),
    ]


@scenario(alone=True)
async def tools_list(w: World) -> Any:
    """List the tools of the graphs, and ignore the tools that other scenarios add."""
    tools: list[Any] = []
    cursor: Any = 0
    while cursor is not None:
        result = (await rpc(w, "tools/list", {"cursor": str(cursor)}))["body"]["result"]
        tools += result["tools"]
        cursor = result.get("nextCursor")
    system = {"echo", "steps", "interrupt", "configured", "dispatch", "failing"}
    return sorted((t for t in tools if t["name"] in system), key=lambda t: str(t["name"]))


@scenario()
async def tools_call(w: World) -> Any:
    name = await tool(w, "echo")
    return await rpc(w, "tools/call", {"name": name, "arguments": {"value": [1, "é"]}})


@scenario()
async def tools_call_that_fails(w: World) -> Any:
    name = await tool(w, "failing")
    return await rpc(w, "tools/call", {"name": name, "arguments": {"message": "no good"}})


@scenario()
async def tools_call_refused(w: World) -> Any:
    return [
        await rpc(w, "tools/call", {"name": "nobody"}),
        await rpc(w, "tools/call", {}),
        await rpc(w, "no/such/method"),
    ]


@scenario()
async def tools_call_twice_the_same_name(w: World) -> Any:
    name = await tool(w, "echo")
    await w.sdk.assistants.create("echo", name=name)
    return await rpc(w, "tools/call", {"name": name})


@scenario()
async def malformed(w: World) -> Any:
    return [
        await w.call("POST", "/mcp", content=b"{", headers=HEADERS),
        await w.call("POST", "/mcp", [], headers=HEADERS),
        await w.call("POST", "/mcp", {"id": 1, "method": "ping"}, headers=HEADERS),
        await w.call("POST", "/mcp", {"jsonrpc": "2.0"}, headers=HEADERS),
        await w.call("POST", "/mcp", {"jsonrpc": "2.0", "method": "x"}, headers=HEADERS),
        await w.call("POST", "/mcp", {"jsonrpc": "2.0"}, headers={"accept": "text/html"}),
        await w.call("GET", "/mcp"),
        await w.call("DELETE", "/mcp"),
    ]
