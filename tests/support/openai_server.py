"""An OpenAI-compatible server on loopback whose every answer a test decides.

It speaks `/v1/chat/completions` (plain and as server-sent events) and `/v1/models` as the real
API does, so that tests drive the real client over real HTTP:

    openai_server.enqueue(rate_limited(), say("Hello there"))
    ...
    assert openai_server.requests[-1].body["model"] == "gpt-4o-mini"
"""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.openai_replies import (
    JSON,
    Answer,
    Failure,
    Gate,
    Reply,
    completion,
    deltas,
    usage,
)

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

BROKEN = Failure(status=500, message="The server had an error")

UNSCRIPTED = Failure(status=400, message="No reply is scripted for this request")

# Seconds; far above what anything here takes, so that only a broken server meets it.
PATIENCE = 60.0


@dataclass
class Received:
    """One request as it came in."""

    headers: dict[str, str]
    body: JSON
    # Set once the client has gone away in the middle of a stream.
    abandoned: threading.Event = field(default_factory=threading.Event)


Script = Reply | Callable[[Received], Reply]


class ConnectionCutError(Exception):
    """Raised inside a stream to make the server drop the connection."""


class OpenAIServer:
    """The server; a context manager that serves from a thread of its own.

    Attributes:
        api_key: the only key that is let in.
        requests: everything that was asked of `/v1/chat/completions`, in order.
        fallback: answers when nothing is enqueued; by default that is an error.
    """

    def __init__(self, api_key: str = "test-key") -> None:
        self.api_key = api_key
        self.models = ["gpt-4o-mini"]
        self.reset()
        self._started = threading.Event()
        # Clients are cached by address, with connections of an event loop long closed; ports come
        # round again, this does not.
        self._prefix = f"/{uuid4().hex}/v1"
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(
            # Streams that a gate holds back would keep a graceful exit waiting for ever.
            uvicorn.Config(
                self._app(),
                log_config=None,
                access_log=False,
                ws="none",
                timeout_graceful_shutdown=0,
                # Longer than clients keep one: else it is closed just as they ask something.
                timeout_keep_alive=75,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="openai-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is to be."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}{self._prefix}"

    def enqueue(self, *replies: Script) -> None:
        """Answers for the next requests, each an answer, a failure or a function of the request."""
        self._replies.extend(replies)

    def reset(self) -> None:
        """Forgets every request and every reply, for a server that several tests share."""
        self.requests: list[Received] = []
        self.fallback: Script = UNSCRIPTED
        self._replies: deque[Script] = deque()

    @property
    def bodies(self) -> list[JSON]:
        """The body of each request."""
        return [request.body for request in self.requests]

    def gate(self) -> Gate:
        """A gate for one answer of this server."""
        return Gate(self._loop)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(PATIENCE):
            raise RuntimeError("The scripted OpenAI server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route(f"{self._prefix}/chat/completions", self._complete, methods=["POST"]),
                Route(f"{self._prefix}/models", self._list_models),
            ],
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._started.set()
        yield

    def _refusal(self, request: Request) -> Failure | None:
        if request.headers.get("authorization") == f"Bearer {self.api_key}":
            return None
        return Failure(status=401, message="Incorrect API key provided", code="invalid_api_key")

    async def _list_models(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return failed(refusal)
        models = [{"id": name, "object": "model", "owned_by": "test"} for name in self.models]
        return JSONResponse({"object": "list", "data": models})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        received = Received(dict(request.headers), body)
        self.requests.append(received)
        reply = self._refusal(request) or complaint(body) or self._next_reply(received)
        if isinstance(reply, Failure):
            return failed(reply)
        if unknown := {tool.name for tool in reply.tool_calls} - offered_tools(body):
            return failed(Failure(status=400, message=f"The request offers no tool {unknown}"))
        if body.get("stream"):
            return StreamingResponse(events(reply, received), media_type="text/event-stream")
        await reply.paced()
        if reply.ending != "whole":
            return failed(BROKEN)
        return JSONResponse(completion(reply, body))

    def _next_reply(self, received: Received) -> Reply:
        script = self._replies.popleft() if self._replies else self.fallback
        return script(received) if callable(script) else script


def failed(failure: Failure) -> Response:
    return JSONResponse(failure.body, status_code=failure.status, headers=failure.headers)


def offered_tools(body: JSON) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools") or []}


def complaint(body: JSON) -> Failure | None:
    """What the real API has against this request, if anything."""
    problem: str | None
    if not isinstance(body.get("model"), str):
        problem = "you must provide a model parameter"
    elif not body.get("messages"):
        problem = "[] is too short - 'messages'"
    elif body.get("stream_options") and not body.get("stream"):
        problem = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    elif response_format_is_wrong(body.get("response_format")):
        problem = "Missing required parameter: 'response_format.json_schema.schema'."
    else:
        problem = tool_order_problem(body["messages"])
    return Failure(status=400, message=problem) if problem else None


def response_format_is_wrong(response_format: JSON | None) -> bool:
    if response_format is None or response_format.get("type") != "json_schema":
        return False
    return not {"name", "schema"} <= response_format.get("json_schema", {}).keys()


def tool_order_problem(messages: list[JSON]) -> str | None:
    """Every tool call is answered by the messages right after it, and nothing else answers one."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                return "messages with role 'tool' must be a response to a preceding tool call"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            break
        open_calls = {tool["id"] for tool in message.get("tool_calls") or []}
    if open_calls:
        return f"tool_call_ids did not have response messages: {', '.join(sorted(open_calls))}"
    return None


async def events(answer: Answer, received: Received) -> AsyncIterator[str]:
    """The answer as server-sent events."""
    try:
        async for data in chunks(answer, received.body):
            yield f"data: {data}\n\n"
    except (asyncio.CancelledError, GeneratorExit):
        received.abandoned.set()
        raise


async def chunks(answer: Answer, body: JSON) -> AsyncIterator[str]:
    whole = completion(answer, body)
    base = {key: whole[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk"
    counted = bool((body.get("stream_options") or {}).get("include_usage"))

    def chunk(delta: JSON, finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return json.dumps({**base, "choices": [choice], **({"usage": None} if counted else {})})

    yield chunk({"role": "assistant", "content": ""})
    for delta in deltas(answer):
        await answer.paced()
        yield chunk(delta)
    if answer.ending == "cut":
        raise ConnectionCutError
    if answer.ending == "error":
        yield json.dumps(BROKEN.body)
    if answer.ending == "whole":
        yield chunk({}, answer.finish_reason)
        if counted:
            yield json.dumps({**base, "choices": [], "usage": usage(answer, body)})
        yield "[DONE]"


async def close_connections(model: "ChatOpenAI") -> None:
    """Closes what langchain-openai keeps open in a cache, past the event loop of this test."""
    await model.root_async_client.close()


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A scripted model endpoint that nothing points at yet."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[OpenAIServer]:
    """The same for a module, whose server has it as its model."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture
async def model_endpoint(
    openai_server: OpenAIServer, no_model: pytest.MonkeyPatch
) -> AsyncIterator[OpenAIServer]:
    """The same, and the environment says that it is the one to use."""
    no_model.setenv("OPENAI_API_KEY", openai_server.api_key)
    no_model.setenv("OPENAI_BASE_URL", openai_server.base_url)
    yield openai_server
    # Imported here, since every test session loads this module and few need a model.
    from langchain_openai import ChatOpenAI

    from my_agent.models import chat_model

    model = chat_model()
    if isinstance(model, ChatOpenAI):
        await close_connections(model)


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without a model, whatever the developer's own says."""
    for name in ("API_KEY", "BASE_URL", "MODEL", "TIMEOUT", "MAX_RETRIES", "STREAM_USAGE"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    return monkeypatch
