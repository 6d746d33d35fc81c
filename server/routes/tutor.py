"""The tutor: send a message to the tutor, and read the messages and corrections of a thread.

`POST /tutor/chat {message, thread_id?}` answers with events: `thread_id`, a `token` for each
piece of the answer, a `correction` for each mistake, and then `end`, or `error` instead.
`GET /tutor/threads/{thread_id}/messages`, `/corrections` and `/summary` read the thread.
"""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.routes.conversation import UNFINISHED, find_thread, text_of
from server.routes.endpoint import Caller, Json, endpoint
from server.routes.events import Event, stream_run
from threadhold import operations
from threadhold.operations import Part

GRAPH = "tutor"
ROLES = {"human": "user", "ai": "assistant"}


class Chat(BaseModel):
    """A message to the tutor. Without `thread_id`, the message creates a thread."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str
    thread_id: str | None = None


@endpoint("POST /tutor/chat")
async def chat(caller: Caller, body: Chat) -> Response:
    """Run the tutor on a message and stream its answer.

    If the thread is busy, the run waits for the earlier runs.
    """
    if (problem := _find_problem(body.message)) is not None:
        raise HTTPException(422, f"message: {problem}")
    thread_id = str(uuid4())
    if body.thread_id is not None:
        thread_id = (await find_thread(caller, body.thread_id, GRAPH))["thread_id"]
    message = _make_message(body.message, caller.header("idempotency-key"))
    run = {
        "assistant_id": GRAPH,
        "input": {"messages": [message]},
        "stream_mode": ["messages-tuple", "updates"],
        "multitask_strategy": "enqueue",
    }
    if body.thread_id is None:
        run["if_not_exists"] = "create"
    return await stream_run(caller, thread_id, run, TutorEvents(message["id"]))


def _make_message(text: str, key: str) -> Json:
    """Make a message of the user. Its timestamp is the current time, not the start of its run.

    Args:
        text: The message.
        key: The request's `Idempotency-Key`, whose repetitions have the same message; may be empty.
    """
    # Imported here because the import loads the graph, which other projects do not have.
    from my_agent.tutor.state import TIMESTAMP, now

    return {
        "type": "human",
        "id": str(uuid5(NAMESPACE_OID, f"{key}\0{text}") if key else uuid4()),
        "content": text,
        "additional_kwargs": {TIMESTAMP: now()},
    }


def _find_problem(message: str) -> str | None:
    """Return what is wrong with a message, or None."""
    from my_agent.tutor.settings import TutorSettings

    longest = TutorSettings.from_environment().max_message_length
    if not message.strip():
        return "must not be blank"
    if len(message) > longest:
        return f"must have at most {longest} characters; it has {len(message)}"
    return None


class TutorEvents:
    """The events that the client receives of a run of the tutor.

    Args:
        message_id: The id of the user's message.
    """

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._corrections: list[Json] = []
        self._checks: list[Json] = []
        self._answer: Json | None = None
        self._error: Json | None = None

    def begin(self, thread_id: str, run_id: str) -> Iterator[Event]:
        """Yield the ids of the thread, the run and the message."""
        names = {"thread_id": thread_id, "run_id": run_id, "message_id": self._message_id}
        yield Event("thread_id", names)

    def follow(self, part: Part) -> Iterator[Event]:
        """Yield the answer's tokens. Keep the answer, the corrections and the error for `end`."""
        data: Any = part.data
        if part.event == "messages":
            chunk, metadata = data
            if metadata.get("langgraph_node") == "reply" and (text := text_of(chunk)):
                yield Event("token", {"content": text})
        elif part.event == "updates":
            for node, update in data.items():
                self._keep(node, update)
        elif part.event == "error":
            self._error = data

    def _keep(self, node: str, update: Any) -> None:
        if node == "reply":
            [self._answer] = update["messages"]
        elif node == "correct":
            self._corrections = update["corrections"]
            self._checks = [_check(each) for each in update["messages"]]

    def end(self) -> Iterator[Event]:
        """Yield the corrections and the complete answer, or the error."""
        if self._error is not None or self._answer is None:
            yield Event("error", self._error or UNFINISHED)
            return
        for correction in self._corrections:
            yield Event("correction", correction)
        yield Event("end", {"message": _client_message(self._answer), "checks": self._checks})


def _check(message: Json) -> Json:
    """Return how a message of the user was checked. Commands of practice are not checked."""
    nothing: Json = {"checked_by": [], "degraded": None, "issues": 0}
    return {"message_id": message["id"], **(message["additional_kwargs"].get("check") or nothing)}


@endpoint("GET /tutor/threads/{thread_id}/messages")
async def messages(caller: Caller) -> Json:
    """Answer with all messages of a thread, each as `{id, role, content, timestamp}`."""

    def view(state: Json) -> Json:
        return {
            "messages": [
                _client_message(each) for each in state["messages"] if each["type"] in ROLES
            ]
        }

    return await _show(caller, view)


@endpoint("GET /tutor/threads/{thread_id}/corrections")
async def corrections(caller: Caller) -> Json:
    """Answer with all corrections of a thread."""
    return await _show(caller, lambda state: {"corrections": state["corrections"]})


@endpoint("GET /tutor/threads/{thread_id}/summary")
async def summary(caller: Caller) -> Json:
    """Answer with a summary of a thread's corrections."""
    from my_agent.tutor.summary import summarize

    return await _show(caller, lambda state: dict(summarize(state["corrections"])))


ROUTES = [chat, messages, corrections, summary]


async def _show(caller: Caller, view: Callable[[Json], Json]) -> Json:
    """Return a view of a thread's state."""
    thread = await find_thread(caller, caller.name("thread_id"), GRAPH)
    found = await operations.read_state(caller.user, thread["thread_id"])
    state = {"messages": [], "corrections": [], **(found["values"] or {})}
    return {"thread_id": thread["thread_id"], **view(state)}


def _client_message(message: Json) -> Json:
    """Convert a message to the form that clients receive."""
    kwargs = message["additional_kwargs"]
    shown = {
        "id": message["id"],
        "role": ROLES[message["type"]],
        "content": text_of(message),
        # Only a thread that another graph wrote before can have messages without a timestamp.
        "timestamp": kwargs.get("timestamp"),
    }
    # `check` is of the user's messages, `finish` of answers that were cut, `exercise` of answers
    # that ask one.
    return shown | {
        name: kwargs[name] for name in ("check", "finish", "exercise") if name in kwargs
    }
