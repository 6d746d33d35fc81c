"""A2A: who sends a message to a thread that is read-only is told so, in the words of JSON-RPC.

The gate is the hook's. But the API's own answer to a streamed message says no more than
that something went wrong.
"""

import json
from typing import Any
from uuid import UUID

from starlette.responses import JSONResponse, Response

from hooks import policy
from hooks.decisions import decided
from server.routes.forwarding import Request, parse

SEND = ("message/send", "SendMessage")
STREAM = ("message/stream", "SendStreamingMessage")
INVALID_PARAMS = -32602


async def send(request: Request, agents: frozenset[str]) -> None:
    """Let the platform answer, unless the message is for a thread that takes none."""
    call = parse(request.body)
    thread_id = _thread(call)
    if thread_id is None:
        await request.pass_on()
        return
    found = await request.ask("GET", f"/threads/{thread_id}")
    metadata = found.content["metadata"] if found.status == 200 else {}
    if not policy.is_governed(metadata) or metadata["status"] == policy.OPEN:
        await request.pass_on()
        return
    status = metadata["status"]
    decided("run_gated", str(metadata.get("agent")), thread_id, status=status, what="message")
    refusal = policy.refusal(thread_id, status)
    error = {"code": INVALID_PARAMS, "message": refusal["detail"], "data": refusal}
    body = {"jsonrpc": "2.0", "id": call.get("id"), "error": error}
    answer: Response = JSONResponse(body)
    if call["method"] in STREAM:
        event = f"event: message\ndata: {json.dumps(body)}\n\n"
        answer = Response(event, media_type="text/event-stream")
    await request.respond(answer, found.headers)


def _thread(call: Any) -> str | None:
    """The thread that a message is for, if it is a message for one."""
    if not isinstance(call, dict) or call.get("method") not in (*SEND, *STREAM):
        return None
    params = call.get("params")
    message = params.get("message") if isinstance(params, dict) else None
    context = message.get("contextId") if isinstance(message, dict) else None
    try:
        return str(UUID(context)) if isinstance(context, str) else None
    except ValueError:
        return None
