"""Threads: which one to go on with, a new one in place of a locked one, and archived ones.

`POST /threads/resolve {agent, website? | rule_name?, payload?}` answers what
starting without a thread means: `resume` the only one that can be resumed,
`choose` among several, or `create`, which has been done.
`POST /threads/{thread_id}/resume {website? | rule_name?, payload?}` opens a new thread
for a locked one's context, or for another one, when an open thread locks.
Searches and counts take `include_archived`.
"""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, field_validator

from contexts.keys import CONTEXT
from contexts.policy_status import THREAD_RESOLVED, PolicyStatus
from hooks.decisions import decided
from langgraph_runtime_sql.hooks import request_note
from server.routes.forwarding import Answer, Request, parse, read_body


class Context(BaseModel):
    """What a session is about."""

    model_config = ConfigDict(extra="forbid", strict=True)

    website: str | None = None
    rule_name: str | None = None
    payload: Any = None

    @field_validator("website", "rule_name")
    @classmethod
    def _is_said(cls, text: str | None) -> str | None:
        # As forms send what nobody has filled in.
        return text if text is not None and text.strip() else None


class Start(Context):
    """Who wants to start, and about what."""

    agent: str


def resolution(answer: Answer) -> dict[str, Any] | None:
    """What to do instead of creating a thread, if the policy said so."""
    content = answer.content if answer.status == 409 else None
    if not isinstance(content, dict) or content.get("error") != THREAD_RESOLVED:
        return None
    return {key: value for key, value in content.items() if key != "error"}


async def resolve(request: Request, agents: frozenset[str]) -> None:
    """Answer `{"action": "resume" | "choose" | "create", ...}`."""
    start = await read_body(request, Start)
    if start is None:
        return
    if start.agent not in agents:
        await request.refuse(422, _no_policy(f"Agent {start.agent!r}"))
        return
    with request_note(resolve=True):
        body = {"metadata": start.model_dump(exclude_none=True)}
        await _resolved(request, await request.ask("POST", "/threads", body))


async def resume(request: Request, agents: frozenset[str]) -> None:
    """Open a new thread in place of one that is locked, or whose user goes on to another context.

    A thread that is open and of the context asked for is answered itself.
    """
    wanted = await read_body(request, Context, otherwise=b"{}")
    if wanted is None:
        return
    found = await request.ask("GET", f"/threads/{request.names['thread_id']}")
    if found.status != 200:
        await request.relay(found)
        return
    thread_id, metadata = found.content["thread_id"], found.content["metadata"]
    agent, context = metadata.get("agent"), wanted.model_dump(exclude_none=True)
    if agent not in agents or "context_key" not in metadata:
        await request.answer(_no_policy(f"Thread {thread_id}"), found, status=409)
        return
    if not context and metadata["status"] == PolicyStatus.OPEN:
        decided("thread_resumed", agent, thread_id)
        await request.answer({"action": "resume", "thread_id": thread_id}, found)
        return
    context = context or {key: metadata[key] for key in CONTEXT if metadata.get(key) is not None}
    body = {"metadata": {"agent": agent, **context, "resumed_from": thread_id}}
    with request_note(replaces=UUID(thread_id)):
        await _resolved(request, await request.ask("POST", "/threads", body))


async def search(request: Request, agents: frozenset[str]) -> None:
    """Let the platform search or count, among archived threads too if the body asks for them."""
    body = parse(request.body) if b"include_archived" in request.body else None
    if not isinstance(body, dict) or "include_archived" not in body:
        await request.pass_on()
        return
    wanted = body.pop("include_archived")
    if not isinstance(wanted, bool):
        await request.refuse(422, {"detail": "`include_archived` must be true or false"})
        return
    with request_note(include_archived=wanted):
        await request.relay(await request.ask("POST", request.path, body))


async def _resolved(request: Request, answer: Answer) -> None:
    """Answer with the thread to go on with, the new one, or why there is neither."""
    if (found := resolution(answer)) is not None:
        await request.answer(found, answer)
    elif answer.status == 200:
        made = {"action": "create", "thread_id": answer.content["thread_id"]}
        await request.answer(made, answer)
    else:
        await request.relay(answer)


def _no_policy(what: str) -> dict[str, str]:
    return {"error": "no_thread_policy", "detail": f"{what} is not under the thread policy"}
