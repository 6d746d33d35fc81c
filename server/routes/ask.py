"""Questions: answer a question from the documents, in a new or an existing conversation.

`POST /api/ask {question, thread_id?}` answers with `{thread_id, answer, citations}`. If the client
accepts `text/event-stream`, the answer is a stream of events: `thread_id`, a `token` for each piece
of the answer, and then `citations` and `end`, or `error` instead of both. A question without a
thread creates a thread, and so does one with a new UUID. A form may be posted instead of JSON.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from server.routes.conversation import UNFINISHED, is_new, text_of
from server.routes.endpoint import Caller, Json, Refusal, endpoint
from server.routes.events import Event, stream_run
from threadhold import operations
from threadhold.operations import Part

GRAPH = "chat"


class Question(BaseModel):
    """A question. Without `thread_id`, the question creates a thread."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str = Field(description="The question")
    thread_id: str | None = Field(
        None, description="Continues this conversation; a new id begins one"
    )


def _as_json(request: Request, content: bytes) -> bytes:
    """Return a body as JSON: it may also be a URL-encoded form.

    Raises:
        HTTPException: (415, 422) it is another form, or no UTF-8.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        raise HTTPException(
            415, 'Send JSON or a URL-encoded form: {"question": ..., "thread_id": ...}'
        )
    if kind != "application/x-www-form-urlencoded":
        return content
    try:
        pairs = parse_qsl(content.decode(), max_num_fields=10)
    except ValueError as error:
        raise HTTPException(422, "The form cannot be read: encode it as UTF-8") from error
    # An empty field of a form means the same as no field; `parse_qsl` leaves it out.
    return json.dumps(dict(pairs)).encode()


@endpoint("POST /api/ask", convert=_as_json)
async def ask(caller: Caller, body: Question) -> Response:
    """Run the chat on a question. If the thread is busy, the run waits for the earlier runs."""
    if (problem := _find_problem(body.question)) is not None:
        raise HTTPException(422, f"question: {problem}")
    thread_id = str(uuid4()) if body.thread_id is None else body.thread_id
    run: Json = {
        "assistant_id": GRAPH,
        "input": {"messages": [{"role": "user", "content": body.question}]},
        "multitask_strategy": "enqueue",
    }
    if body.thread_id is None or await is_new(caller, thread_id, GRAPH):
        run["if_not_exists"] = "create"
    if caller.accepts("text/event-stream"):
        run["stream_mode"] = ["messages-tuple", "updates"]
        return await stream_run(caller, thread_id, run, AnswerEvents())
    return await _answer(caller, thread_id, run)


ROUTES = [ask]


class AnswerEvents:
    """The events that the client receives of a run that answers a question."""

    def __init__(self) -> None:
        self._answer: Json | None = None
        self._error: Json | None = None

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        """Yield the thread and the run, so that the client can continue the conversation."""
        yield Event("thread_id", {"thread_id": thread_id, "run_id": run_id})

    def follow(self, part: Part) -> Iterator[Event]:
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


async def _answer(caller: Caller, thread_id: str, run: Json) -> Response:
    """Wait for the run and answer with JSON. If the client disconnects, the run continues."""
    done = await operations.wait_run(caller.user, thread_id, run)
    # A repeated request waits for the run of the first one.
    thread, state = {"thread_id": done.thread_id}, done.values
    if (error := _failure(state)) is not None:
        raise Refusal(502, {**error, "detail": error["message"], **thread}, done.headers)
    return JSONResponse(
        {**thread, "citations": state["citations"], **_said(state)}, headers=done.headers
    )


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
