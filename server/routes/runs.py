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

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from my_agent.threads.policy_status import THREAD_LOCKED
from server.routes.endpoint import Caller, Json
from server.routes.policy import agents, content_of, governed
from server.routes.threads import resolution
from threadhold import operations
from threadhold.host import PassedOn

# Another request can lock a thread after it is found and before its run starts. Then search again.
ATTEMPTS = 3


async def start(caller: Caller) -> ASGIApp:
    """Start a run on the thread that the policy finds or creates. Pass on runs of other agents."""
    run = await content_of(caller)
    command = isinstance(run, dict) and (run.get("command") or {})
    if (
        not isinstance(run, dict)
        # A command cannot resume an interrupt without a thread. The platform refuses it.
        or (isinstance(command, dict) and command.get("resume"))
        or await _agent(caller, run.get("assistant_id")) not in agents()
    ):
        return PassedOn(caller.request)
    run.pop("on_completion", None)
    return _Started(caller, run)


ROUTES = [governed(f"POST /runs{kind}")(start) for kind in ("", "/wait", "/stream")]


class _Started:
    """The platform's answer to a run on the thread that the policy finds or creates."""

    def __init__(self, caller: Caller, run: Json) -> None:
        self._caller, self._run = caller, run
        self._kind = caller.request.url.path.rpartition("/runs")[2]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: _Refusal | None = None
        for _ in range(ATTEMPTS):
            refusal = await self._attempt(scope, receive, send)
            if refusal is None:
                return
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _attempt(self, scope: Scope, receive: Receive, send: Send) -> "_Refusal | None":
        """Start the run on a thread that can be resumed, or on a new thread.

        Returns:
            None: the request has been answered. Otherwise the refusal of a thread that was locked
            meanwhile.
        """
        new = self._on(str(uuid4()), {**self._run, "if_not_exists": "create"}, resolve=True)
        refusal = await _unless_refused(new, scope, receive, send)
        if refusal is None:
            return None
        found = resolution(409, refusal.content)
        if found is None:
            await refusal(scope, receive, send)
            return None
        thread_id = found.get("thread_id") or chosen(found["candidates"], _last_text(self._run))
        if thread_id is None:
            await self._offer(found)(scope, receive, send)
            return None
        refusal = await _unless_refused(self._on(thread_id, self._run), scope, receive, send)
        if refusal is None or refusal.is_locked:
            return refusal
        await refusal(scope, receive, send)
        return None

    def _on(self, thread_id: str, run: Json, **note: Any) -> PassedOn:
        path, body = f"/threads/{thread_id}/runs{self._kind}", json.dumps(run).encode()
        return PassedOn(self._caller.request, path=path, body=body, note=note)

    def _offer(self, choice: Json) -> Response:
        """Return the answer with the threads among which the user can choose."""
        state = {
            "messages": [{"type": "ai", "id": str(uuid4()), "content": choice["message"]}],
            "thread_choice": choice,
        }
        if self._kind == "/wait":
            return JSONResponse(state)
        if self._kind == "/stream":
            event = f"event: values\ndata: {json.dumps(state)}\n\n"
            return Response(event, media_type="text/event-stream")
        body = {"error": "thread_choice", "hint": "choose", "detail": choice["message"], **choice}
        return JSONResponse(body, 409)


class _Refusal:
    """A refusal of the platform that has not been sent."""

    def __init__(self, messages: list[Message], reason: str | None) -> None:
        self._messages, self._reason = messages, reason

    @property
    def content(self) -> Any:
        """The parsed body."""
        return json.loads(b"".join(each.get("body", b"") for each in self._messages))

    @property
    def is_locked(self) -> bool:
        """Whether the thread is closed."""
        content = self.content
        return isinstance(content, dict) and content.get("error") == THREAD_LOCKED

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._reason is not None:
            # For the audit log.
            scope["policy_refusal"] = self._reason
        for message in self._messages:
            await send(message)


async def _unless_refused(
    answer: PassedOn, scope: Scope, receive: Receive, send: Send
) -> _Refusal | None:
    """Let the platform answer, unless it refuses with 409. Return that refusal."""
    held: list[Message] = []

    async def send_or_hold(message: Message) -> None:
        if held or (message["type"] == "http.response.start" and message["status"] == 409):
            held.append(message)
        else:
            await send(message)

    await answer(scope, receive, send_or_hold)
    return _Refusal(held, answer.refused_by) if held else None


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


async def _agent(caller: Caller, assistant_id: Any) -> str | None:
    """Return the graph of an assistant. The id of an assistant may be the id of its graph."""
    if not isinstance(assistant_id, str):
        return None
    try:
        UUID(assistant_id)
    except ValueError:
        return assistant_id
    try:
        return str((await operations.read_assistant(caller.user, assistant_id))["graph_id"])
    except HTTPException:
        # The platform refuses it, too.
        return None
