"""Closed threads: refuse crons and A2A messages for read-only threads, with the reason.

The hooks of the policy check each write inside its transaction. Two requests need a check before
that. A cron would be created although the hooks refuse all its runs. An A2A call would fail
without a reason.
"""

import json
from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from my_agent.threads.policy_status import PolicyStatus
from server.routes.endpoint import Caller, Json, Refusal
from server.routes.policy import content_of, governed
from threadhold import operations
from threadhold.host import PassedOn

SEND = ("message/send", "SendMessage")
STREAM = ("message/stream", "SendStreamingMessage")
INVALID_PARAMS = -32602


@governed("POST /threads/{thread_id}/runs/crons")
async def cron(caller: Caller) -> ASGIApp:
    """Let the platform create a cron, unless its thread is closed."""
    refusal = await _find_refusal(caller, caller.name("thread_id"), "cron")
    if refusal is not None:
        raise Refusal(409, refusal)
    return PassedOn(caller.request)


async def message(caller: Caller) -> ASGIApp:
    """Let the platform answer an A2A call, unless it is a message for a closed thread.

    The platform's own answer to a streamed message would name no reason.
    """
    call = await content_of(caller)
    thread_id = _addressed(call)
    refusal = None if thread_id is None else await _find_refusal(caller, thread_id, "message")
    if refusal is None:
        return PassedOn(caller.request)
    error = {"code": INVALID_PARAMS, "message": refusal["detail"], "data": refusal}
    body = {"jsonrpc": "2.0", "id": call.get("id"), "error": error}
    if call["method"] in STREAM:
        event = f"event: message\ndata: {json.dumps(body)}\n\n"
        return Response(event, media_type="text/event-stream")
    return JSONResponse(body)


ROUTES = [
    cron,
    governed("POST /a2a/{assistant_id}")(message),
    governed("POST /a2a/{assistant_id}/")(message),
]


async def _find_refusal(caller: Caller, thread_id: str, what: str) -> Json | None:
    """Return the refusal of a thread of the caller, if it is closed."""
    # Imported here because the rules load the list of all domains, which is large.
    from hooks import policy
    from hooks.decisions import record_decision

    try:
        metadata = (await operations.read_thread(caller.user, thread_id))["metadata"]
    except HTTPException:
        # The platform refuses it, too.
        return None
    if not policy.is_governed(metadata) or metadata["status"] == PolicyStatus.OPEN:
        return None
    status = metadata["status"]
    record_decision("run_gated", str(metadata.get("agent")), thread_id, status=status, what=what)
    return policy.refusal(thread_id, status)


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
