"""Runs without a thread, of agents that have the thread policy: they run on a thread all the same.

`/runs`, `/runs/wait` and `/runs/stream` go on with the only thread that can be
resumed, or make a new one in the transaction that makes the run;
`Content-Location` names it. Where several could be resumed there is no run:
`/runs/wait` answers with a state and `/runs/stream` with a `values` event in
which the assistant asks which one, and `/runs`, which has to name a run, with 409.
"""

import json
from typing import Any
from uuid import UUID, uuid4

from starlette.responses import Response

from contexts.policy_status import THREAD_LOCKED
from langgraph_runtime_sql.hooks import request_note
from server.routes.forwarding import Answer, Request, parse
from server.routes.threads import resolution

# A thread may be locked between the moment it is found and its run: then another is found.
ATTEMPTS = 3


async def start(request: Request, agents: frozenset[str]) -> None:
    """Run on the thread that the policy finds or makes; leave other agents' runs alone."""
    run = parse(request.body)
    resumes = isinstance(run, dict) and (run.get("command") or {})
    if (
        not isinstance(run, dict)
        # Without a thread there is nothing to resume, which the platform says.
        or (isinstance(resumes, dict) and resumes.get("resume"))
        or await _agent(request, run.get("assistant_id")) not in agents
    ):
        await request.pass_on()
        return
    run.pop("on_completion", None)
    answer: Answer | None = None
    for _ in range(ATTEMPTS):
        answer = await _attempt(request, run)
        if answer is None:
            return
    if answer is not None:
        await request.relay(answer)


async def _attempt(request: Request, run: dict[str, Any]) -> Answer | None:
    """Start the run; None once the request is answered, else the refusal of a thread just locked."""
    kind = request.path.removeprefix("/runs")
    new = {**run, "if_not_exists": "create"}
    with request_note(resolve=True):
        refusal = await request.forward_unless(409, f"/threads/{uuid4()}/runs{kind}", new)
    if refusal is None:
        return None
    found = resolution(refusal)
    if found is None:
        await request.relay(refusal)
        return None
    if found["action"] == "choose":
        await _offer(request, found, refusal)
        return None
    path = f"/threads/{found['thread_id']}/runs{kind}"
    refusal = await request.forward_unless(409, path, run)
    if refusal is None or _is_locked(refusal):
        return refusal
    await request.relay(refusal)
    return None


def _is_locked(refusal: Answer) -> bool:
    content = refusal.content
    return isinstance(content, dict) and content.get("error") == THREAD_LOCKED


async def _agent(request: Request, assistant_id: Any) -> str | None:
    """The graph of an assistant, which is named by its id or by the graph itself."""
    if not isinstance(assistant_id, str):
        return None
    try:
        identifier = UUID(assistant_id)
    except ValueError:
        return assistant_id
    answer = await request.ask("GET", f"/assistants/{identifier}")
    return answer.content.get("graph_id") if answer.status == 200 else None


async def _offer(request: Request, choice: dict[str, Any], refusal: Answer) -> None:
    """Answer with what the user can choose from."""
    state = {
        "messages": [{"type": "ai", "id": str(uuid4()), "content": choice["message"]}],
        "thread_choice": choice,
    }
    if request.path.endswith("/wait"):
        await request.answer(state, refusal)
    elif request.path.endswith("/stream"):
        event = f"event: values\ndata: {json.dumps(state)}\n\n"
        await request.respond(Response(event, media_type="text/event-stream"), refusal.headers)
    else:
        body = {"error": "thread_choice", "hint": "choose", "detail": choice["message"], **choice}
        await request.answer(body, refusal, status=409)
