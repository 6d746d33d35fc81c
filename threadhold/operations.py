"""Operations: what routes of a host do for a user with threads and runs, as plain functions.

Each takes a `User` of `threadhold.users` and asks what a route of the API asks: the project's
handlers, hooks and limits. It raises what that route would answer, as an `HTTPException`. Entries of
the audit log name the route of the host. A header `Idempotency-Key` of the host's request counts for
the thread or run that it creates.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from langgraph_runtime_sql.gate import handlers
from langgraph_runtime_sql.gate.operations import THREAD_SEARCH
from threadhold.api_calls import REPEATED, Call, Json, again, content_of, once
from threadhold.http import idempotency, rate_limits
from threadhold.users import User, acting

__all__ = [
    "Part",
    "Run",
    "RunStream",
    "cancel_run",
    "create_thread",
    "delete_thread",
    "is_repetition",
    "list_runs",
    "permit",
    "read_assistant",
    "read_run",
    "read_state",
    "read_thread",
    "search_threads",
    "start_run",
    "stream_run",
    "update_state",
    "wait_run",
]

_THREAD, _RUN = "/threads/{thread_id}", "/threads/{thread_id}/runs/{run_id}"


@dataclass(frozen=True)
class Run:
    """A run that a user has started.

    Attributes:
        thread_id: The id of its thread.
        run_id: Its id.
        values: Of a run that was waited for: the thread's values, or `{"__error__": ...}`.
    """

    thread_id: str
    run_id: str
    values: Any = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer, which name the run."""
        return {"content-location": f"/threads/{self.thread_id}/runs/{self.run_id}"}


class Part(NamedTuple):
    """An event of a stream.

    Attributes:
        event: Its name, such as `values`.
        data: Its content, parsed.
    """

    event: str
    data: Any


@dataclass(frozen=True)
class RunStream:
    """The events of a run.

    Attributes:
        run: The run.
    """

    run: Run
    _user: User = field(repr=False)
    _events: AsyncGenerator[Any, None] = field(repr=False)
    _counted: ExitStack = field(repr=False)

    async def parts(self) -> AsyncIterator[Part]:
        """Yield the events until the run ends. If nobody listens any more, the run goes on."""
        with self._counted, acting(self._user):
            async with aclosing(self._events) as events:
                async for name, data, _ in events:
                    yield Part(bytes(name).decode(), orjson.loads(data))

    def answer(self, events: AsyncIterator[tuple[str, Any]]) -> Response:
        """Return a stream of a host's own events, made of `parts`.

        Like a stream of the API, it has heartbeats. When the server stops, its last event,
        `resume`, names the stream of the run.

        Args:
            events: Names and contents.
        """
        from langgraph_api import sse

        async def encoded() -> AsyncIterator[tuple[bytes, Any]]:
            async for name, data in events:
                yield name.encode(), data

        counted = self._counted

        class Answer(sse.EventSourceResponse):
            async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
                # Also if the client is gone before the first event.
                with counted:
                    await super().__call__(scope, receive, send)

        where = {"location": f"{self.run.headers['content-location']}/stream"}
        response: Response = Answer(encoded(), headers={**self.run.headers, **where})
        return response


def is_repetition(user: User) -> bool:
    """Return whether the request repeats one that has created its thread or run already.

    The answer then says `Idempotent-Replayed: true`.
    """
    return REPEATED in user.asgi


async def permit(user: User) -> None:
    """Ask the project's handlers whether the user may search threads, so use the API at all.

    Raises:
        HTTPException: (403) they refuse it.
    """
    with acting(user):
        await handlers.ask(None, THREAD_SEARCH, {})


async def create_thread(
    user: User,
    *,
    thread_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_exists: str = "raise",
) -> Json:
    """Create a thread.

    Args:
        user: The user to act for.
        thread_id: Its id; by default a new one.
        metadata: Its metadata.
        if_exists: `raise` (409) or `do_nothing`.

    Raises:
        HTTPException: as `POST /threads` answers.
    """
    body = {"metadata": metadata or {}, "if_exists": if_exists}
    if thread_id is not None:
        body["thread_id"] = thread_id
    call = Call("create_thread", "POST", "/threads", body=body)
    found, made = await once(user, call)
    thread: Json = content_of(made) if found is None else {}
    return thread or await again(read_thread(user, (found or {})["thread_id"]), found or {})


async def read_thread(user: User, thread_id: str) -> Json:
    """Return a thread.

    Raises:
        HTTPException: (404) the user has none with this id; (422) it is no id.
    """
    return await _read(user, "get_thread", _THREAD, thread_id=thread_id)


async def read_state(user: User, thread_id: str) -> Json:
    """Return the state of a thread: `values`, `next`, `tasks`, ...

    Raises:
        HTTPException: as `read_thread`.
    """
    path = f"{_THREAD}/state"
    return await _read(user, "get_thread_state", path, thread_id=thread_id)


async def update_state(
    user: User, thread_id: str, values: Any, *, as_node: str | None = None
) -> None:
    """Write the state of a thread, as if a node of its graph had returned `values`.

    Args:
        user: The user to act for.
        thread_id: The thread. Its metadata names its graph (`graph_id`), or a run has.
        values: What the node returns.
        as_node: The node; by default the one that ran last.

    Raises:
        HTTPException: (404) the user has no such thread; (400) it has no graph, or the values do not
            fit it; (409) it has runs in flight; or a hook's refusal.
    """
    body = {"values": values, **({} if as_node is None else {"as_node": as_node})}
    ids = {"thread_id": thread_id}
    await Call("update_thread_state", "POST", f"{_THREAD}/state", ids, body=body).answer(user)


async def search_threads(user: User, **wanted: Any) -> list[Json]:
    """Return threads of the user, the newest first.

    Args:
        user: The user to act for.
        **wanted: As the body of `POST /threads/search`: `metadata`, `status`, `limit`, `offset`, ...

    Raises:
        HTTPException: as that route answers.
    """
    call = Call("search_threads", "POST", "/threads/search", body=wanted)
    found: list[Json] = content_of(await call.answer(user))
    return found


async def delete_thread(user: User, thread_id: str) -> None:
    """Delete a thread with its runs and states.

    Raises:
        HTTPException: as `read_thread`.
    """
    await Call("delete_thread", "DELETE", _THREAD, {"thread_id": thread_id}).answer(user)


async def read_assistant(user: User, assistant_id: str) -> Json:
    """Return an assistant.

    Raises:
        HTTPException: (404) the user sees none with this id; (422) it is no id.
    """
    path = "/assistants/{assistant_id}"
    return await _read(user, "get_assistant", path, assistant_id=assistant_id)


async def start_run(user: User, thread_id: str, run: Mapping[str, Any]) -> Run:
    """Start a run in the background.

    Args:
        user: The user to act for.
        thread_id: The thread. With `"if_not_exists": "create"`, it may be new.
        run: As the body of `POST /threads/{thread_id}/runs`: `assistant_id`, `input`, ...

    Raises:
        HTTPException: as that route answers: 404, 409, 422, 429 or a hook's refusal.
    """
    found, made = await once(user, _of_run("create_run", "", thread_id, run))
    if found is not None:
        await again(read_run(user, found["thread_id"], found["run_id"]), found)
        return Run(found["thread_id"], found["run_id"])
    return _started(made)


async def wait_run(user: User, thread_id: str, run: Mapping[str, Any]) -> Run:
    """Start a run and return it with its values at its end. The arguments are those of `start_run`.

    Raises:
        HTTPException: as `start_run`.
    """
    with rate_limits.stream(user.fields, thread_id):
        found, made = await once(user, _of_run("wait_run", "/wait", thread_id, run))
        if found is not None:
            await again(read_run(user, found["thread_id"], found["run_id"]), found)
            joined = Call("join_run", "GET", f"{_RUN}/join", found)
            made = await joined.answer(user)
        with acting(user):
            text = b"".join([bytes(each) async for each in made.body_iterator])
    return replace(_started(made), values=orjson.loads(text))


async def stream_run(user: User, thread_id: str, run: Mapping[str, Any]) -> RunStream:
    """Start a run and return its events. The arguments are those of `start_run`.

    Raises:
        HTTPException: as `start_run`.
    """
    body = {"on_disconnect": "continue", **run}
    if idempotency.has_key(user.asgi):
        # A repeated request gets the stream from its beginning.
        body["stream_resumable"] = True
    with ExitStack() as counted:
        counted.enter_context(rate_limits.stream(user.fields, thread_id))
        found, made = await once(user, _of_run("stream_run", "/stream", thread_id, body))
        if found is not None:
            await again(read_run(user, found["thread_id"], found["run_id"]), found)
            joined = Call("join_run_stream", "GET", f"{_RUN}/stream", found)
            made = await joined.answer(user)
        return RunStream(_started(made), user, made.body_iterator, counted.pop_all())


async def read_run(user: User, thread_id: str, run_id: str) -> Json:
    """Return a run.

    Raises:
        HTTPException: as `read_thread`.
    """
    return await _read(user, "get_run", _RUN, thread_id=thread_id, run_id=run_id)


async def list_runs(
    user: User, thread_id: str, *, status: str | None = None, limit: int = 10
) -> list[Json]:
    """Return runs of a thread, the newest first.

    Raises:
        HTTPException: as `read_thread`.
    """
    query = {"limit": limit, **({} if status is None else {"status": status})}
    call = Call("list_runs", "GET", f"{_THREAD}/runs", {"thread_id": thread_id}, query=query)
    found: list[Json] = content_of(await call.answer(user))
    return found


async def cancel_run(user: User, thread_id: str, run_id: str, *, action: str = "interrupt") -> None:
    """End a pending run, or ask the worker of a running one to stop it.

    Args:
        user: The user to act for.
        thread_id: The thread of the run.
        run_id: The run.
        action: `interrupt`, or `rollback`, which also deletes what the run has stored.

    Raises:
        HTTPException: (404) the user has no such run in flight; or a handler's refusal.
    """
    ids = {"thread_id": thread_id, "run_id": run_id}
    call = Call("cancel_run", "POST", f"{_RUN}/cancel", ids, query={"action": action})
    await call.answer(user)


def _of_run(function: str, end: str, thread_id: str, run: Mapping[str, Any]) -> Call:
    ids = {"thread_id": thread_id}
    return Call(function, "POST", f"{_THREAD}/runs{end}", ids, body=dict(run))


async def _read(user: User, function: str, route: str, **values: str) -> Json:
    found: Json = content_of(await Call(function, "GET", route, values).answer(user))
    return found


def _started(answer: Any) -> Run:
    _, _, thread, _, run = answer.headers["content-location"].split("/")
    return Run(thread, run)
