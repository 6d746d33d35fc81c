"""Threads: find the thread to continue, replace a locked thread, and search archived threads.

`POST /threads/resolve {agent, website? | rule_name?, payload?}` finds or creates the thread of a
context. The answer is `resume` if exactly one thread can be resumed, `choose` if several can, and
`create` if the route has created a thread.
`POST /threads/{thread_id}/resume {website? | rule_name?, payload?}` opens a new thread that
replaces this one, for the same context or for another one. If this thread is open and the context
is another one, this thread is locked.
Searches and counts accept `include_archived`.
"""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, field_validator

from contexts.keys import CONTEXT
from contexts.policy_status import THREAD_RESOLVED, PolicyStatus
from hooks.decisions import record_decision
from server.routes.forwarding import Answer, Request, parse, read_body
from threadhold.hooks import request_note


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


def resolution(answer: Answer) -> dict[str, Any] | None:
    """Return the policy's alternative to a new thread, or None if the answer is something else."""
    content = answer.content if answer.status == 409 else None
    if not isinstance(content, dict) or content.get("error") != THREAD_RESOLVED:
        return None
    return {key: value for key, value in content.items() if key != "error"}


async def resolve(request: Request, agents: frozenset[str]) -> None:
    """Find or create a thread, and answer `{"action": "resume" | "choose" | "create", ...}`."""
    start = await read_body(request, Start)
    if start is None:
        return
    if start.agent not in agents:
        await request.refuse(422, _no_policy(f"Agent {start.agent!r}"))
        return
    with request_note(resolve=True):
        body = {"metadata": start.model_dump(exclude_none=True)}
        await _answer_resolution(request, await request.call("POST", "/threads", body))


async def resume(request: Request, agents: frozenset[str]) -> None:
    """Open a new thread in place of a locked thread, or of an open thread with another context.

    If the thread is open and already has the requested context, the answer names that thread.
    """
    wanted = await read_body(request, Context, otherwise=b"{}")
    if wanted is None:
        return
    found = await request.call("GET", f"/threads/{request.names['thread_id']}")
    if found.status != 200:
        await request.relay(found)
        return
    thread_id, metadata = found.content["thread_id"], found.content["metadata"]
    agent, context = metadata.get("agent"), wanted.model_dump(exclude_none=True)
    if agent not in agents or "context_key" not in metadata:
        await request.answer(_no_policy(f"Thread {thread_id}"), found, status=409)
        return
    if not context and metadata["status"] == PolicyStatus.OPEN:
        record_decision("thread_resumed", agent, thread_id)
        await request.answer({"action": "resume", "thread_id": thread_id}, found)
        return
    context = context or {key: metadata[key] for key in CONTEXT if metadata.get(key) is not None}
    body = {"metadata": {"agent": agent, **context, "resumed_from": thread_id}}
    with request_note(replaces=UUID(thread_id)):
        await _answer_resolution(request, await request.call("POST", "/threads", body))


async def search(request: Request, agents: frozenset[str]) -> None:
    """Let the platform search or count. Include archived threads if the body says so."""
    body = parse(request.body) if b"include_archived" in request.body else None
    if not isinstance(body, dict) or "include_archived" not in body:
        await request.pass_on()
        return
    wanted = body.pop("include_archived")
    if not isinstance(wanted, bool):
        await request.refuse(422, {"detail": "include_archived: must be true or false"})
        return
    with request_note(include_archived=wanted):
        await request.relay(await request.call("POST", request.path, body))


async def _answer_resolution(request: Request, answer: Answer) -> None:
    """Answer with the thread to resume, the choice, the new thread, or the platform's refusal."""
    if (found := resolution(answer)) is not None:
        await request.answer(found, answer)
    elif answer.status == 200:
        made = {"action": "create", "thread_id": answer.content["thread_id"]}
        await request.answer(made, answer)
    else:
        await request.relay(answer)


def _no_policy(what: str) -> dict[str, str]:
    return {"error": "no_thread_policy", "detail": f"{what} is not under the thread policy"}
