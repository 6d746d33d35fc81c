"""The A2A endpoint, which offers an assistant as an agent."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World, system_assistant
from .assistants import NOWHERE

AGENT = f"/a2a/{system_assistant('echo')}"
JSON = {"accept": "application/json"}
STREAM = {"accept": "text/event-stream"}


def message(text: str, **more: Any) -> dict[str, Any]:
    parts = [{"kind": "text", "text": text}]
    return {"message": {"role": "user", "messageId": "m1", "parts": parts, **more}}


async def rpc(w: World, method: str, params: Any, agent: str = AGENT) -> Any:
    """Send one JSON-RPC request to an agent."""
    body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
    return await w.call("POST", agent, body, headers=JSON)


@scenario()
async def message_send(w: World) -> Any:
    return await rpc(w, "message/send", message("hello"))


@scenario()
async def message_send_in_a_context(w: World) -> Any:
    first = await rpc(w, "message/send", message("one"))
    context = first["body"]["result"]["contextId"]
    second = await rpc(w, "message/send", message("two", contextId=context))
    return [second["body"], (await w.sdk.threads.get(context))["values"]]


@scenario()
async def message_send_to_a_failing_agent(w: World) -> Any:
    agent = f"/a2a/{system_assistant('failing')}"
    return await rpc(w, "message/send", message("hello"), agent)


@scenario()
async def message_stream(w: World) -> Any:
    body = {"jsonrpc": "2.0", "id": "1", "method": "message/stream", "params": message("hello")}
    return await w.sse("POST", AGENT, body, headers=STREAM)


@scenario()
async def tasks_get(w: World) -> Any:
    sent = (await rpc(w, "message/send", message("hello")))["body"]["result"]
    params = {"id": sent["id"], "contextId": sent["contextId"]}
    return [
        await rpc(w, "tasks/get", params),
        await rpc(w, "tasks/get", {**params, "historyLength": 1}),
        await rpc(w, "tasks/get", {"id": NOWHERE, "contextId": sent["contextId"]}),
        await rpc(w, "tasks/get", {}),
    ]


@scenario()
async def tasks_list(w: World) -> Any:
    sent = (await rpc(w, "message/send", message("hello")))["body"]["result"]
    return await rpc(w, "ListTasks", {"contextId": sent["contextId"]})


@scenario()
async def tasks_cancel(w: World) -> Any:
    sent = (await rpc(w, "message/send", message("hello")))["body"]["result"]
    return [
        await rpc(w, "tasks/cancel", {"id": sent["id"], "contextId": sent["contextId"]}),
        await rpc(w, "tasks/cancel", {"id": NOWHERE}),
    ]


@scenario()
async def agent_card(w: World) -> Any:
    return [
        await w.call("GET", f"{AGENT}/.well-known/agent-card.json"),
        await w.call("GET", f"/.well-known/agent-card.json?assistant_id={AGENT.split('/')[2]}"),
        await w.call("GET", f"/a2a/{NOWHERE}/.well-known/agent-card.json"),
        await w.call("GET", "/.well-known/agent-card.json"),
    ]


@scenario()
async def refused(w: World) -> Any:
    return [
        await rpc(w, "message/send", {}),
        await rpc(w, "message/send", message("hello"), f"/a2a/{NOWHERE}"),
        await rpc(w, "message/send", message("hello"), "/a2a/nope"),
        await rpc(w, "message/send", {"message": {"role": "user", "messageId": "m", "parts": []}}),
        await rpc(w, "message/send", message("hello", contextId="nope")),
        await rpc(w, "message/send", message("hello", taskId=NOWHERE)),
        await rpc(w, "no/such", {}),
        await w.call("POST", AGENT, content=b"{", headers=JSON),
        await w.call("GET", AGENT),
        await w.call("DELETE", AGENT),
    ]
