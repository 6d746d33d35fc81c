"""Threads: find the thread to continue, replace a locked thread, and search archived threads.

`POST /threads/resolve {agent, website? | rule_name?, payload?}` finds or creates the thread of a
context. The answer is `resume` if exactly one thread can be resumed, `choose` if several can, and
`create` if the route has created a thread.
`POST /threads/{thread_id}/resume {website? | rule_name?, payload?}` opens a new thread that
replaces this one, for the same context or for another one. If this thread is open and the context
is another one, this thread is locked.
Searches and counts accept `include_archived`.
"""

import json
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, field_validator
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from hooks.decisions import record_decision
from my_agent.keys import CONTEXT
from my_agent.threads.policy_status import THREAD_RESOLVED, PolicyStatus
from server.routes.endpoint import Caller, Json, Refusal
from server.routes.policy import agents, content_of, governed
from threadhold import operations
from threadhold.hooks import Reject, request_note
from threadhold.host import PassedOn


class Context(BaseModel):
    """The context of a thread: a website, or a rule with its payload."""

    model_config = ConfigDict(extra="forbid", strict=True)

    website: str | None = None
    rule_name: str | None = None
    payload: Any = None

    @field_validator("website", "rule_name")
    @classmethod
    def _drop_blank(cls, text: str | None) -> str | None:
        # Forms send a blank text for an empty field.
        return text if text is not None and text.strip() else None


class Start(Context):
    """The agent and the context for which a thread is found or created."""

    agent: str


def resolution(status: int, content: Any) -> Json | None:
    """Return the policy's alternative to a new thread, or None if the answer is something else."""
    if status != 409 or not isinstance(content, dict) or content.get("error") != THREAD_RESOLVED:
        return None
    return {key: value for key, value in content.items() if key != "error"}


@governed("POST /threads/resolve")
async def resolve(caller: Caller, body: Start) -> Json:
    """Find or create a thread, and answer `{"action": "resume" | "choose" | "create", ...}`."""
    if body.agent not in agents():
        raise Refusal(422, _no_policy(f"Agent {body.agent!r}"))
    with request_note(resolve=True):
        return await _resolved(caller, body.model_dump(exclude_none=True))


@governed("POST /threads/{thread_id}/resume", otherwise=b"{}")
async def resume(caller: Caller, body: Context) -> Json:
    """Open a new thread in place of a locked thread, or of an open thread with another context.

    If the thread is open and already has the requested context, the answer names that thread.
    """
    found = await operations.read_thread(caller.user, caller.name("thread_id"))
    thread_id, metadata = found["thread_id"], found["metadata"]
    agent, context = metadata.get("agent"), body.model_dump(exclude_none=True)
    if agent not in agents() or "context_key" not in metadata:
        raise Refusal(409, _no_policy(f"Thread {thread_id}"))
    if not context and metadata["status"] == PolicyStatus.OPEN:
        record_decision("thread_resumed", agent, thread_id)
        return {"action": "resume", "thread_id": thread_id}
    context = context or {key: metadata[key] for key in CONTEXT if metadata.get(key) is not None}
    with request_note(replaces=UUID(thread_id)):
        return await _resolved(caller, {"agent": agent, **context, "resumed_from": thread_id})


async def search(caller: Caller) -> ASGIApp:
    """Let the platform search or count. Include archived threads if the body says so."""
    content = await content_of(caller)
    if not isinstance(content, dict) or "include_archived" not in content:
        return PassedOn(caller.request)
    wanted = content.pop("include_archived")
    if not isinstance(wanted, bool):
        raise HTTPException(422, "include_archived: must be true or false")
    body, note = json.dumps(content).encode(), {"include_archived": wanted}
    return PassedOn(caller.request, body=body, note=note)


ROUTES = [
    resolve,
    resume,
    governed("POST /threads/search")(search),
    governed("POST /threads/count")(search),
]


async def _resolved(caller: Caller, metadata: Json) -> Json:
    """Return the thread to resume, the choice, or the new thread."""
    try:
        made = await operations.create_thread(caller.user, metadata=metadata)
    except Reject as refusal:
        found = resolution(refusal.status_code, refusal.body)
        if found is None:
            raise
        return found
    return {"action": "create", "thread_id": made["thread_id"]}


def _no_policy(what: str) -> dict[str, str]:
    return {"error": "no_thread_policy", "detail": f"{what} is not under the thread policy"}
