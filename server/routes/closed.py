"""Closed threads: refuse crons and A2A messages for read-only threads, with the reason.

The hooks of the policy check each write inside its transaction. Two requests need a check before
that. A cron would be created although the hooks refuse all its runs. An A2A call would fail
without a reason.
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
    """Let the platform create a cron, unless its thread is closed."""
    found, refusal = await _find_refusal(request, request.names["thread_id"], "cron")
    if refusal is None:
        await request.pass_on()
    else:
        await request.answer(refusal, found, status=409)


async def message(request: Request, agents: frozenset[str]) -> None:
    """Let the platform answer an A2A call, unless it is a message for a closed thread.

    The platform's own answer to a streamed message would name no reason.
    """
    call = parse(request.body)
    thread_id = _addressed(call)
    if thread_id is None:
        await request.pass_on()
        return
    found, refusal = await _find_refusal(request, thread_id, "message")
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


async def _find_refusal(
    request: Request, thread_id: str, what: str
) -> tuple[Answer, dict[str, Any] | None]:
    """Read a thread on behalf of the caller. Return the answer, and the refusal if it is closed."""
    # Imported here because the rules load the list of all domains, which is large.
    from hooks import policy
    from hooks.decisions import record_decision

    found = await request.call("GET", f"/threads/{thread_id}")
    metadata = found.content["metadata"] if found.status == 200 else {}
    if not policy.is_governed(metadata) or metadata["status"] == PolicyStatus.OPEN:
        return found, None
    status = metadata["status"]
    record_decision("run_gated", str(metadata.get("agent")), thread_id, status=status, what=what)
    return found, policy.refusal(thread_id, status)


def _addressed(call: Any) -> str | None:
    """Return the thread to which an A2A call sends a message, or None."""
    if not isinstance(call, dict) or call.get("method") not in (*SEND, *STREAM):
        return None
    params = call.get("params")
    sent = params.get("message") if isinstance(params, dict) else None
    context = sent.get("contextId") if isinstance(sent, dict) else None
    try:
        return str(UUID(context)) if isinstance(context, str) else None
    except ValueError:
        return None
