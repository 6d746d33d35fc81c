"""The tutor: a message to it, and what a thread of its keeps.

`POST /tutor/chat {message, thread_id?}` answers with events: `thread_id`, a `token` for each
piece of the answer, a `correction` where something was wrong, and then `end`, or `error` in its
place. `GET /tutor/threads/{thread_id}/messages`, `/corrections` and `/summary` read the thread.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

from langgraph_sdk.schema import StreamPart
from pydantic import BaseModel, ConfigDict, ValidationError

from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import TIMESTAMP
from my_agent.tutor.summary import summarize
from server.routes.events import Event, tell
from server.routes.forwarding import Answer, Request

GRAPH = "tutor"
ROLES = {"human": "user", "ai": "assistant"}
Json = dict[str, Any]


class Chat(BaseModel):
    """A message to the tutor; without a thread it begins one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str
    thread_id: str | None = None


async def chat(request: Request) -> None:
    """Run the tutor on a message, in its turn if the thread is busy, and stream what it says."""
    try:
        asked = Chat.model_validate_json(request.body)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()
        ]
        await request.refuse(422, {"detail": "; ".join(problems)})
        return
    if (problem := _problem(asked.message)) is not None:
        await request.refuse(422, {"detail": f"message: {problem}"})
        return
    if asked.thread_id is not None and await _find(request, asked.thread_id) is None:
        return
    message_id = str(uuid4())
    run = {
        "assistant_id": GRAPH,
        "input": {"messages": [{"role": "user", "content": asked.message, "id": message_id}]},
        "stream_mode": ["messages-tuple", "updates"],
        "multitask_strategy": "enqueue",
    }
    if asked.thread_id is None:
        run["if_not_exists"] = "create"
    thread_id = uuid4() if asked.thread_id is None else UUID(asked.thread_id)
    await tell(request, f"/threads/{thread_id}/runs/stream", run, Lesson(message_id))


def _problem(message: str) -> str | None:
    """What is wrong with a message, if anything."""
    longest = TutorSettings.from_environment().max_message_length
    if not message.strip():
        return "Write something"
    if len(message) > longest:
        return f"At most {longest} characters, this has {len(message)}"
    return None


class Lesson:
    """What the client is told of a run of the tutor's.

    Args:
        message_id: The message that it is about.
    """

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._corrections: list[Json] = []
        self._answer: Json | None = None
        self._error: Json | None = None

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        """Where the conversation is, for the client to keep."""
        names = {"thread_id": thread_id, "run_id": run_id, "message_id": self._message_id}
        yield Event("thread_id", names)

    def follow(self, part: StreamPart) -> Iterator[Event]:
        """The answer's tokens, as they come; what else there is waits for the end."""
        data: Any = part.data
        if part.event == "messages":
            chunk, metadata = data
            if metadata.get("langgraph_node") == "reply" and (text := _text(chunk)):
                yield Event("token", {"content": text})
        elif part.event == "updates":
            for node, update in data.items():
                self._note(node, update)
        elif part.event == "error":
            self._error = data

    def _note(self, node: str, update: Any) -> None:
        if node == "reply":
            [self._answer] = update["messages"]
        elif node == "correct":
            self._corrections = update["corrections"]

    def end(self) -> Iterator[Event]:
        """The corrections and the whole answer; or why there is none."""
        if self._error is not None or self._answer is None:
            yield Event("error", self._error or UNFINISHED)
            return
        for correction in self._corrections:
            yield Event("correction", correction)
        yield Event("end", {"message": _shown(self._answer)})


UNFINISHED = {
    "error": "Unfinished",
    "message": "The run was stopped, or goes on elsewhere: read the thread's messages later",
}


async def messages(request: Request) -> None:
    """All messages of a thread, as `{id, role, content, timestamp}`."""
    await _show(
        request,
        lambda state: {
            "messages": [_shown(each) for each in state["messages"] if each["type"] in ROLES]
        },
    )


async def corrections(request: Request) -> None:
    """All corrections of a thread."""
    await _show(request, lambda state: {"corrections": state["corrections"]})


async def summary(request: Request) -> None:
    """What its corrections say, taken together."""
    await _show(request, lambda state: dict(summarize(state["corrections"])))


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "POST /tutor/chat": chat,
    "GET /tutor/threads/{thread_id}/messages": messages,
    "GET /tutor/threads/{thread_id}/corrections": corrections,
    "GET /tutor/threads/{thread_id}/summary": summary,
}


async def _show(request: Request, view: Callable[[Json], Json]) -> None:
    """Answer with a view of a thread's state."""
    thread_id = request.names["thread_id"]
    if await _find(request, thread_id) is None:
        return
    answer = await request.ask("GET", f"/threads/{UUID(thread_id)}/state")
    if answer.status != 200:
        await request.relay(answer)
        return
    state = {"messages": [], "corrections": [], **(answer.content["values"] or {})}
    await request.answer({"thread_id": str(UUID(thread_id)), **view(state)}, answer)


async def _find(request: Request, thread_id: str) -> Answer | None:
    """The platform's answer for a thread of the tutor's; None once the request is refused."""
    try:
        identifier = UUID(thread_id)
    except ValueError:
        await request.refuse(404, {"detail": "Thread not found"})
        return None
    found = await request.ask("GET", f"/threads/{identifier}")
    if found.status != 200:
        await request.relay(found)
        return None
    # A thread without runs is not yet anybody's.
    graph = found.content["metadata"].get("graph_id", GRAPH)
    if graph != GRAPH:
        detail = f"Thread {identifier} is a conversation with {graph!r}, not with the tutor"
        await request.answer({"error": "other_graph", "detail": detail}, found, status=409)
        return None
    return found


def _shown(message: Json) -> Json:
    """A message as the tutor's clients see it."""
    return {
        "id": message["id"],
        "role": ROLES[message["type"]],
        "content": _text(message),
        "timestamp": message["additional_kwargs"][TIMESTAMP],
    }


def _text(message: Json) -> str:
    """The text of a message, whose content may be in blocks."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")
