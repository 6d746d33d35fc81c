"""The tutor: a message to it, and what a thread of its keeps.

`POST /tutor/chat {message, thread_id?}` answers with events: `thread_id`, a `token` for each
piece of the answer, a `correction` where something was wrong, and then `end`, or `error` in its
place. `GET /tutor/threads/{thread_id}/messages`, `/corrections` and `/summary` read the thread.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

from langgraph_sdk.schema import StreamPart
from pydantic import BaseModel, ConfigDict

from server.routes.conversation import UNFINISHED, Json, find_thread, read_body, text_of
from server.routes.events import Event, tell
from server.routes.forwarding import Request

GRAPH = "tutor"
ROLES = {"human": "user", "ai": "assistant"}


class Chat(BaseModel):
    """A message to the tutor; without a thread it begins one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str
    thread_id: str | None = None


async def chat(request: Request) -> None:
    """Run the tutor on a message, in its turn if the thread is busy, and stream what it says."""
    asked = await read_body(request, Chat)
    if asked is None:
        return
    if (problem := _problem(asked.message)) is not None:
        await request.refuse(422, {"detail": f"message: {problem}"})
        return
    thread_id = uuid4()
    if asked.thread_id is not None:
        found = await find_thread(request, asked.thread_id, GRAPH)
        if found is None:
            return
        thread_id = found
    message = _sent(asked.message)
    run = {
        "assistant_id": GRAPH,
        "input": {"messages": [message]},
        "stream_mode": ["messages-tuple", "updates"],
        "multitask_strategy": "enqueue",
    }
    if asked.thread_id is None:
        run["if_not_exists"] = "create"
    await tell(request, f"/threads/{thread_id}/runs/stream", run, Lesson(message["id"]))


def _sent(text: str) -> Json:
    """A message of the user's, of this moment: it may have to wait for its turn."""
    # Here, since it brings the graph, and other projects have another one.
    from my_agent.tutor.state import TIMESTAMP, now

    return {
        "type": "human",
        "id": str(uuid4()),
        "content": text,
        "additional_kwargs": {TIMESTAMP: now()},
    }


def _problem(message: str) -> str | None:
    """What is wrong with a message, if anything."""
    from my_agent.tutor.settings import TutorSettings

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
            if metadata.get("langgraph_node") == "reply" and (text := text_of(chunk)):
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


async def messages(request: Request) -> None:
    """All messages of a thread, as `{id, role, content, timestamp}`."""

    def view(state: Json) -> Json:
        return {"messages": [_shown(each) for each in state["messages"] if each["type"] in ROLES]}

    await _show(request, view)


async def corrections(request: Request) -> None:
    """All corrections of a thread."""
    await _show(request, lambda state: {"corrections": state["corrections"]})


async def summary(request: Request) -> None:
    """What its corrections say, taken together."""
    from my_agent.tutor.summary import summarize

    await _show(request, lambda state: dict(summarize(state["corrections"])))


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {
    "POST /tutor/chat": chat,
    "GET /tutor/threads/{thread_id}/messages": messages,
    "GET /tutor/threads/{thread_id}/corrections": corrections,
    "GET /tutor/threads/{thread_id}/summary": summary,
}


async def _show(request: Request, view: Callable[[Json], Json]) -> None:
    """Answer with a view of a thread's state."""
    thread_id = await find_thread(request, request.names["thread_id"], GRAPH)
    if thread_id is None:
        return
    answer = await request.ask("GET", f"/threads/{thread_id}/state")
    if answer.status != 200:
        await request.relay(answer)
        return
    state = {"messages": [], "corrections": [], **(answer.content["values"] or {})}
    await request.answer({"thread_id": str(thread_id), **view(state)}, answer)


def _shown(message: Json) -> Json:
    """A message as the tutor's clients see it."""
    return {
        "id": message["id"],
        "role": ROLES[message["type"]],
        "content": text_of(message),
        # Without one only if a thread of another graph's has been said to be the tutor's.
        "timestamp": message["additional_kwargs"].get("timestamp"),
    }
