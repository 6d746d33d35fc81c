"""Closed threads: what the platform takes for one that is read-only, or refuses in fewer words.

The gate is the hook's, in the transaction of each write. Here is who asks for something
that only later comes to it, or hears no reason.
"""

import json
from typing import Any
from uuid import UUID

from starlette.responses import JSONResponse, Response

from contexts.policy_status import PolicyStatus
from server.routes.forwarding import Answer, Request, parse

SEND = ("message/send", "SendMessage")
STREAM = ("message/stream", "SendStreamingMessage")
INVALID_PARAMS = -32602


async def cron(request: Request, agents: frozenset[str]) -> None:
    """Let the platform make a cron, unless all of its runs would be refused."""
    found, refusal = await _ask(request, request.names["thread_id"], "cron")
    if refusal is None:
        await request.pass_on()
    else:
        await request.answer(refusal, found, status=409)


async def message(request: Request, agents: frozenset[str]) -> None:
    """Let the platform answer an A2A call, unless it is a message for a thread that takes none.

    What the platform answers to a streamed one says only that something went wrong.
    """
    call = parse(request.body)
    thread_id = _addressed(call)
    if thread_id is None:
        await request.pass_on()
        return
    found, refusal = await _ask(request, thread_id, "message")
    if refusal is None:
        await request.pass_on()
        return
    error = {"code": INVALID_PARAMS, "message": refusal["detail"], "data": refusal}
    body = {"jsonrpc": "2.0", "id": call.get("id"), "error": error}
    answer: Response = JSONResponse(body)
    if call["method"] in STREAM:
        event = f"event: message\ndata: {json.dumps(body)}\n\n"
        answer = Response(event, media_type="text/event-stream")
    await request.respond(answer, found.headers)


async def _ask(request: Request, thread_id: str, what: str) -> tuple[Answer, dict[str, Any] | None]:
    """The thread as its caller sees it, and the refusal if it is closed."""
    # Here, because the rules bring the list of all domains, which only they need.
    from hooks import policy
    from hooks.decisions import decided

    found = await request.ask("GET", f"/threads/{thread_id}")
    metadata = found.content["metadata"] if found.status == 200 else {}
    if not policy.is_governed(metadata) or metadata["status"] == PolicyStatus.OPEN:
        return found, None
    status = metadata["status"]
    decided("run_gated", str(metadata.get("agent")), thread_id, status=status, what=what)
    return found, policy.refusal(thread_id, status)


def _addressed(call: Any) -> str | None:
    """The thread that a message is for, if it is a message for one."""
    if not isinstance(call, dict) or call.get("method") not in (*SEND, *STREAM):
        return None
    params = call.get("params")
    sent = params.get("message") if isinstance(params, dict) else None
    context = sent.get("contextId") if isinstance(sent, dict) else None
    try:
        return str(UUID(context)) if isinstance(context, str) else None
    except ValueError:
        return None
