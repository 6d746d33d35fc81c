"""Threads: which one to go on with, a new one in place of a locked one, and archived ones.

`POST /threads/resolve {agent, website? | rule_name?, payload?}` answers what
starting without a thread means: `resume` the only one that can be resumed,
`choose` among several, or `create`, which has been done.
`POST /threads/{thread_id}/resume` opens a new thread for a locked one's context.
Searches and counts take `include_archived`.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from langgraph_runtime_sql.hooks import noting
from server.routes.forwarding import Answer, Request, parse

RESOLVED = "thread_resolved"
# What a thread's metadata says that its successor is about, too.
CONTEXT = ("agent", "website", "rule_name", "payload")


class Start(BaseModel):
    """Who wants to start, and about what."""

    model_config = ConfigDict(extra="forbid", strict=True)

    agent: str
    website: str | None = None
    rule_name: str | None = None
    payload: Any = None


def resolution(answer: Answer) -> dict[str, Any] | None:
    """What to do instead of creating a thread, if the policy said so."""
    content = answer.content if answer.status == 409 else None
    if not isinstance(content, dict) or content.get("error") != RESOLVED:
        return None
    return {key: value for key, value in content.items() if key != "error"}


async def resolve(request: Request, agents: frozenset[str]) -> None:
    """Answer `{"action": "resume" | "choose" | "create", ...}`."""
    try:
        start = Start.model_validate_json(request.body)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()
        ]
        await request.refuse(422, {"detail": "; ".join(problems)})
        return
    if start.agent not in agents:
        await request.refuse(422, _no_policy(f"Agent {start.agent!r}"))
        return
    with noting(resolve=True):
        answer = await request.ask(
            "POST", "/threads", {"metadata": start.model_dump(exclude_none=True)}
        )
    if (found := resolution(answer)) is not None:
        await request.answer(found, answer)
    else:
        await _created(request, answer)


async def resume(request: Request, agents: frozenset[str]) -> None:
    """Open a new thread for a locked one's context; one that is open is answered itself."""
    thread_id = request.path.split("/")[2]
    found = await request.ask("GET", f"/threads/{thread_id}")
    if found.status != 200:
        await request.relay(found)
        return
    metadata = found.content["metadata"]
    if metadata.get("agent") not in agents or "context_key" not in metadata:
        await request.answer(_no_policy(f"Thread {thread_id}"), found, status=409)
        return
    if metadata["status"] == "open":
        await request.answer({"action": "resume", "thread_id": thread_id}, found)
        return
    context = {key: metadata[key] for key in CONTEXT if metadata.get(key) is not None}
    body = {"metadata": {**context, "resumed_from": thread_id}}
    await _created(request, await request.ask("POST", "/threads", body))


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
    with noting(include_archived=wanted):
        await request.relay(await request.ask("POST", request.path, body))


async def _created(request: Request, answer: Answer) -> None:
    """Answer with the new thread, or with why there is none."""
    if answer.status != 200:
        await request.relay(answer)
        return
    await request.answer({"action": "create", "thread_id": answer.content["thread_id"]}, answer)


def _no_policy(what: str) -> dict[str, str]:
    return {"error": "no_thread_policy", "detail": f"{what} is not under the thread policy"}
