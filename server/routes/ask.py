"""Questions: answer a question from the documents, in a new or an existing conversation.

`POST /api/ask {question, thread_id?}` answers with `{thread_id, answer, citations}`. If the client
accepts `text/event-stream`, the answer is a stream of events: `thread_id`, a `token` for each piece
of the answer, and then `citations` and `end`, or `error` instead of both. A question without a
thread creates a thread, and so does one with a new UUID. A form may be posted instead of JSON.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

from langgraph_sdk.schema import StreamPart
from pydantic import BaseModel, ConfigDict

from server.routes.conversation import UNFINISHED, Json, find_or_new_thread, text_of
from server.routes.events import Event, stream_run
from server.routes.forwarding import Request, read_body

GRAPH = "chat"


class Question(BaseModel):
    """A question. Without `thread_id`, the question creates a thread."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str
    thread_id: str | None = None


async def ask(request: Request) -> None:
    """Run the chat on a question. If the thread is busy, the run waits for the earlier runs."""
    body = await _read(request)
    if body is None:
        return
    if (problem := _find_problem(body.question)) is not None:
        await request.refuse(422, {"detail": f"question: {problem}"})
        return
    thread_id, is_new = uuid4(), True
    if body.thread_id is not None:
        found = await find_or_new_thread(request, body.thread_id, GRAPH)
        if found is None:
            return
        thread_id, is_new = found[0], found[1] is not None
    run: Json = {
        "assistant_id": GRAPH,
        "input": {"messages": [{"role": "user", "content": body.question}]},
        "multitask_strategy": "enqueue",
    }
    if is_new:
        run["if_not_exists"] = "create"
    if _wants_events(request):
        run["stream_mode"] = ["messages-tuple", "updates"]
        await stream_run(request, f"/threads/{thread_id}/runs/stream", run, AnswerEvents())
    else:
        await _answer(request, f"/threads/{thread_id}/runs/wait", run)


async def _read(request: Request) -> Question | None:
    """Parse the body, which is JSON or a URL-encoded form. None: the request has been refused."""
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        detail = 'Send JSON or a URL-encoded form: {"question": ..., "thread_id": ...}'
        await request.refuse(415, {"detail": detail})
        return None
    if kind != "application/x-www-form-urlencoded":
        return await read_body(request, Question)
    try:
        pairs = parse_qsl(request.body.decode(), max_num_fields=10)
    except ValueError:
        await request.refuse(422, {"detail": "The form cannot be read: encode it as UTF-8"})
        return None
    # An empty field of a form means the same as no field; `parse_qsl` leaves it out.
    return await read_body(request, Question, content=json.dumps(dict(pairs)).encode())


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {"POST /api/ask": ask}


class AnswerEvents:
    """The events that the client receives of a run that answers a question."""

    def __init__(self) -> None:
        self._answer: Json | None = None
        self._error: Json | None = None

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        """Yield the thread and the run, so that the client can continue the conversation."""
        yield Event("thread_id", {"thread_id": thread_id, "run_id": run_id})

    def follow(self, part: StreamPart) -> Iterator[Event]:
        """Yield the answer's tokens. Keep the answer and the error for `end`."""
        data: Any = part.data
        if part.event == "messages":
            chunk, metadata = data
            if metadata.get("langgraph_node") == "generate" and (text := text_of(chunk)):
                yield Event("token", {"content": text})
        elif part.event == "updates" and "generate" in data:
            self._answer = data["generate"]
        elif part.event == "error":
            self._error = data

    def end(self) -> Iterator[Event]:
        """Yield the citations and the complete answer, or the error."""
        if self._error is not None or self._answer is None:
            yield Event("error", self._error or UNFINISHED)
            return
        yield Event("citations", {"citations": self._answer["citations"]})
        yield Event("end", _said(self._answer))


async def _answer(request: Request, path: str, run: Json) -> None:
    """Wait for the run and answer with JSON. If the client disconnects, the run continues."""
    body = {"on_disconnect": "continue", **run}
    waited = await request.call("POST", path, body)
    if waited.status != 200:
        await request.relay(waited)
        return
    # A repeated request waits for the run of the first one.
    thread_id, state = waited.run[0], waited.content
    if (error := _failure(state)) is not None:
        failed = {**error, "detail": error["message"], "thread_id": thread_id}
        await request.answer(failed, waited, status=502)
        return
    answer = {
        "thread_id": thread_id,
        "citations": state["citations"],
        **_said(state),
    }
    await request.answer(answer, waited)


def _said(state: Json) -> Json:
    """Return the answer, and what is wrong with it if anything is."""
    message = state["messages"][-1]
    incomplete = bool(message.get("additional_kwargs", {}).get("incomplete"))
    return {
        "answer": text_of(message),
        **({"unsupported": found} if (found := state.get("unsupported")) else {}),
        **({"incomplete": True} if incomplete else {}),
        **({"uncertain": True} if state.get("uncertain") else {}),
    }


def _failure(state: Any) -> Json | None:
    """Return the error of a run that ended without an answer, or None."""
    if not isinstance(state, dict):
        return UNFINISHED
    if "__error__" in state:
        error: Json = state["__error__"]
        return error
    messages = state.get("messages")
    return None if messages and messages[-1]["type"] == "ai" else UNFINISHED


def _find_problem(question: str) -> str | None:
    """Return what is wrong with a question, or None."""
    # Imported here because the import loads the graph, which other projects do not have.
    from my_agent.chat.settings import ChatSettings

    longest = ChatSettings.from_environment().question_max_length
    if not question.strip():
        return "must not be blank"
    if len(question) > longest:
        return f"must have at most {longest} characters; it has {len(question)}"
    return None


def _wants_events(request: Request) -> bool:
    accepted = [value for name, value in request.scope["headers"] if name.lower() == b"accept"]
    return b"text/event-stream" in b",".join(accepted).lower()
