"""Runs without a thread, for agents under the thread policy: give each run a thread.

`/runs`, `/runs/wait` and `/runs/stream` resume the thread if exactly one can be resumed. If none
can be resumed, they create a thread in the transaction that creates the run. `Content-Location`
names the thread. If several threads can be resumed, no run starts and the assistant asks the user
to choose: `/runs/wait` answers with a state, `/runs/stream` with a `values` event, and `/runs`,
whose answer must be a run, with 409. A message that names one of the threads, or its number in the
list, chooses it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from starlette.responses import Response

from contexts.policy_status import THREAD_LOCKED
from server.routes.forwarding import Answer, Request, parse
from server.routes.threads import resolution
from threadhold.hooks import request_note

# Another request can lock a thread after it is found and before its run starts. Then search again.
ATTEMPTS = 3


async def start(request: Request, agents: frozenset[str]) -> None:
    """Start a run on the thread that the policy finds or creates. Pass on runs of other agents."""
    run = parse(request.body)
    command = isinstance(run, dict) and (run.get("command") or {})
    if (
        not isinstance(run, dict)
        # A command cannot resume an interrupt without a thread. The platform refuses it.
        or (isinstance(command, dict) and command.get("resume"))
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
    """Start the run on a thread that can be resumed, or on a new thread.

    Returns:
        None: the request has been answered. Otherwise the refusal of a thread that was locked
        meanwhile.
    """
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
    thread_id = found.get("thread_id") or chosen(found["candidates"], _last_text(run))
    if thread_id is None:
        await _offer(request, found, refusal)
        return None
    path = f"/threads/{thread_id}/runs{kind}"
    refusal = await request.forward_unless(409, path, run)
    if refusal is None or _is_locked(refusal):
        return refusal
    await request.relay(refusal)
    return None


def chosen(candidates: Sequence[Mapping[str, Any]], text: str) -> str | None:
    """Return the thread that a text names: by its label, a word of it, or its number. Pure.

    Args:
        candidates: the offered threads, each with `thread_id` and `label`.
        text: the user's message.
    """
    words = " ".join(text.casefold().split()).strip(" .!\"'")
    labels = [str(each["label"]).casefold() for each in candidates]
    if words.isdigit() and 0 < int(words) <= len(labels):
        named = [int(words) - 1]
    else:
        named = [at for at, label in enumerate(labels) if words == label]
        # `The one for acme.com, please` and, for a label with a time, `acme.com`.
        named = named or [at for at, label in enumerate(labels) if label and _has(words, label)]
        named = named or [
            at for at, label in enumerate(labels) if words == label.partition(" (")[0]
        ]
    return str(candidates[named[0]]["thread_id"]) if len(named) == 1 else None


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def _last_text(run: dict[str, Any]) -> str:
    """Return the text of the last message in a run's input; empty if there is none."""
    values = run.get("input")
    messages = values.get("messages") if isinstance(values, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else messages
    content = last.get("content") if isinstance(last, dict) else last
    return content if isinstance(content, str) else ""


def _is_locked(refusal: Answer) -> bool:
    content = refusal.content
    return isinstance(content, dict) and content.get("error") == THREAD_LOCKED


async def _agent(request: Request, assistant_id: Any) -> str | None:
    """Return the graph of an assistant. The id of an assistant may be the id of its graph."""
    if not isinstance(assistant_id, str):
        return None
    try:
        identifier = UUID(assistant_id)
    except ValueError:
        return assistant_id
    answer = await request.call("GET", f"/assistants/{identifier}")
    return answer.content.get("graph_id") if answer.status == 200 else None


async def _offer(request: Request, choice: dict[str, Any], refusal: Answer) -> None:
    """Answer with the threads among which the user can choose."""
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
