"""An OpenAI-compatible server on loopback with answers that tests script.

It serves `/v1/chat/completions` (as JSON and as server-sent events) and `/v1/models` like the real
API, so that tests use the real client over HTTP:

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
    Page,
    Reply,
    completion,
    deltas,
    usage,
)

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

BROKEN = Failure(status=500, message="The server had an error")

UNSCRIPTED = Failure(status=400, message="No reply is scripted for this request")

# Seconds; far more than any wait needs, so that only a broken server reaches the limit.
PATIENCE = 60.0


@dataclass
class Received:
    """A received request."""

    headers: dict[str, str]
    body: JSON
    # Set when the client disconnects during a stream.
    abandoned: threading.Event = field(default_factory=threading.Event)


Script = Reply | Callable[[Received], Reply]


class ConnectionCutError(Exception):
    """Raised inside a stream to make the server drop the connection."""


class OpenAIServer:
    """The server, a context manager that serves from its own thread.

    Attributes:
        api_key: the only accepted key.
        models: the names that `/v1/models` lists.
        requests: the requests to `/v1/chat/completions`, in order.
        fallback: the reply if none is enqueued; by default an error.
    """

    def __init__(self, api_key: str = "test-key") -> None:
        self.api_key = api_key
        self.models = ["gpt-4o-mini"]
        self.reset()
        self._started = threading.Event()
        # langchain-openai caches clients by address, with connections of a closed event loop. Ports
        # are reused; this prefix is not.
        self._prefix = f"/{uuid4().hex}/v1"
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(
            # A graceful exit would wait forever for streams that a gate holds back.
            uvicorn.Config(
                self._app(),
                log_config=None,
                access_log=False,
                # Before uvicorn 0.36, another one becomes that of all later tests of the process.
                loop="asyncio",
                ws="none",
                timeout_graceful_shutdown=0,
                # Longer than clients keep a connection. Otherwise the server may close it during a
                # request.
                timeout_keep_alive=75,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="openai-server", daemon=True)

    @property
    def base_url(self) -> str:
        """Return the value for OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}{self._prefix}"

    def enqueue(self, *replies: Script) -> None:
        """Add replies for the next requests: answers, failures or functions of the request."""
        self._replies.extend(replies)

    def reset(self) -> None:
        """Remove all requests and replies, for a server that several tests share."""
        self.requests: list[Received] = []
        self.fallback: Script = UNSCRIPTED
        self._replies: deque[Script] = deque()

    @property
    def bodies(self) -> list[JSON]:
        """Return the body of each request."""
        return [request.body for request in self.requests]

    def gate(self) -> Gate:
        """Create a gate for one answer of this server."""
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
        if isinstance(reply, Page):
            return Response(reply.body, media_type=reply.media_type)
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
    """Return the real API's refusal of this request, or None."""
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
    """Return the error of the real API for misplaced tool messages, or None.

    The answers to tool calls must follow their calls directly.
    """
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
    """Yield the answer as server-sent events."""
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
    """Close the connections in langchain-openai's cache, which outlives the test's event loop."""
    await model.root_async_client.close()


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """Start a scripted model endpoint; no setting names it."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[OpenAIServer]:
    """Start a scripted model endpoint for all tests of a module."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture
async def model_endpoint(
    openai_server: OpenAIServer, no_model: pytest.MonkeyPatch
) -> AsyncIterator[OpenAIServer]:
    """Start a scripted model endpoint that the environment names."""
    no_model.setenv("OPENAI_API_KEY", openai_server.api_key)
    no_model.setenv("OPENAI_BASE_URL", openai_server.base_url)
    yield openai_server
    # Imported here, because every session loads this module and few tests need a model.
    from langchain_openai import ChatOpenAI

    from my_agent.models import chat_model

    model = chat_model()
    if isinstance(model, ChatOpenAI):
        await close_connections(model)


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Remove the model settings of the developer's environment."""
    for name in (
        "API_KEY",
        "BASE_URL",
        "MODEL",
        "TIMEOUT",
        "TURN_SECONDS",
        "MAX_RETRIES",
        "STREAM_USAGE",
    ):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    return monkeypatch
