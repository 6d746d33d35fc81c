"""Asking: a question to the documents, and what comes after it in the same conversation.

`POST /api/ask {question, thread_id?}` answers with `{thread_id, answer, citations}`, or, where
events are asked for, with `thread_id`, a `token` for each piece of the answer, `citations` and
`end`, or `error` in their place. Without a thread, a question begins one of its own.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

from langgraph_sdk.schema import StreamPart
from pydantic import BaseModel, ConfigDict

from server.routes.conversation import UNFINISHED, Json, find_thread, read_body, text_of
from server.routes.events import Event, tell
from server.routes.forwarding import Request

GRAPH = "chat"


class Question(BaseModel):
    """A question; without a thread it begins one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str
    thread_id: str | None = None


async def ask(request: Request) -> None:
    """Run the chat on a question, in its turn if the thread is busy."""
    asked = await read_body(request, Question)
    if asked is None:
        return
    if (problem := _problem(asked.question)) is not None:
        await request.refuse(422, {"detail": f"question: {problem}"})
        return
    thread_id = uuid4()
    if asked.thread_id is not None:
        found = await find_thread(request, asked.thread_id, GRAPH)
        if found is None:
            return
        thread_id = found
    run: Json = {
        "assistant_id": GRAPH,
        "input": {"messages": [{"role": "user", "content": asked.question}]},
        "multitask_strategy": "enqueue",
    }
    if asked.thread_id is None:
        run["if_not_exists"] = "create"
    if _wants_events(request):
        run["stream_mode"] = ["messages-tuple", "updates"]
        await tell(request, f"/threads/{thread_id}/runs/stream", run, Telling())
    else:
        await _answer(request, str(thread_id), run)


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {"POST /api/ask": ask}


class Telling:
    """What the client is told of a run that answers a question."""

    def __init__(self) -> None:
        self._answer: Json | None = None
        self._error: Json | None = None

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        """Where the conversation is, for the client to go on with."""
        yield Event("thread_id", {"thread_id": thread_id, "run_id": run_id})

    def follow(self, part: StreamPart) -> Iterator[Event]:
        """The answer's tokens, as they come; what else there is waits for the end."""
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
        """What the answer rests on, and the whole of it; or why there is none."""
        if self._error is not None or self._answer is None:
            yield Event("error", self._error or UNFINISHED)
            return
        yield Event("citations", {"citations": self._answer["citations"]})
        yield Event("end", {"answer": text_of(self._answer["messages"][-1])})


async def _answer(request: Request, thread_id: str, run: Json) -> None:
    """Answer with JSON once the run is over. It goes on if the client leaves."""
    body = {"on_disconnect": "continue", **run}
    waited = await request.ask("POST", f"/threads/{thread_id}/runs/wait", body)
    if waited.status != 200:
        await request.relay(waited)
        return
    state = waited.content
    if (error := _failure(state)) is not None:
        failed = {**error, "detail": error["message"], "thread_id": thread_id}
        await request.answer(failed, waited, status=502)
        return
    told = {
        "thread_id": thread_id,
        "answer": text_of(state["messages"][-1]),
        "citations": state["citations"],
    }
    await request.answer(told, waited)


def _failure(state: Any) -> Json | None:
    """Why a run has ended without an answer, if it has."""
    if not isinstance(state, dict):
        return UNFINISHED
    if "__error__" in state:
        error: Json = state["__error__"]
        return error
    messages = state.get("messages")
    return None if messages and messages[-1]["type"] == "ai" else UNFINISHED


def _problem(question: str) -> str | None:
    """What is wrong with a question, if anything."""
    # Here, since it brings the graph, and other projects have another one.
    from my_agent.chat.settings import ChatSettings

    longest = ChatSettings.from_environment().question_max_length
    if not question.strip():
        return "Ask something"
    if len(question) > longest:
        return f"At most {longest} characters, this has {len(question)}"
    return None


def _wants_events(request: Request) -> bool:
    accepted = [value for name, value in request.scope["headers"] if name.lower() == b"accept"]
    return b"text/event-stream" in b",".join(accepted).lower()
