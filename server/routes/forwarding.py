"""Forwarding: a request that is read here, and asked of the platform in another form."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# How many times too large a body may be before it is cut off.
PATIENCE = 4

Body = TypeVar("Body", bound=BaseModel)
Headers = list[tuple[bytes, bytes]]

# They describe the body that is replaced.
_OF_A_BODY = frozenset(
    {b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"}
)
_NOT_ASKED = _OF_A_BODY | {b"accept-encoding", b"expect"}


@dataclass
class Answer:
    """The platform's answer to something it was asked.

    Attributes:
        messages: The ASGI messages, as they came.
    """

    messages: list[Message] = field(default_factory=list)

    async def take(self, message: Message) -> None:
        """Keep a message; this is an ASGI `send`."""
        self.messages.append(message)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> Headers:
        """Those that hold for another body as well: CORS, request id."""
        return [pair for pair in self.messages[0]["headers"] if pair[0] not in _OF_A_BODY]

    @property
    def content(self) -> Any:
        """The body's JSON, or None if it has none."""
        return parse(b"".join(each.get("body", b"") for each in self.messages[1:]))


@dataclass
class Request:
    """A request to the platform, whose body has been read.

    Attributes:
        whole: Whether all of the body is here.
        is_too_large: Whether the rest was not read because there is too much.
        body: What is here of it.
        names: What stands in the path where the route has names in braces.
    """

    _app: ASGIApp
    scope: Scope
    _receive: Receive
    _send: Send
    _messages: list[Message]
    whole: bool
    is_too_large: bool
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def read(
        cls, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, limit: int
    ) -> Self:
        """The request, with its body if that has no more than `limit` bytes.

        Of a larger one some more is read, so that the client gets to reading the answer.
        """
        messages: list[Message] = []
        size, more = 0, True
        while more and size <= PATIENCE * limit:
            message = await receive()
            size += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if size <= limit:
                messages.append(message)
        whole = size <= limit and message["type"] == "http.request"
        return cls(app, scope, receive, send, messages, whole, size > limit)

    @property
    def platform(self) -> ASGIApp:
        """What is asked."""
        return self._app

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self._messages)

    @property
    def path(self) -> str:
        """The path below the platform's mount."""
        return str(self.scope["path"]).removeprefix(self.scope.get("root_path", ""))

    async def pass_on(self) -> None:
        """Let the platform answer the request as it came."""
        await self._app(self.scope, _replay(self._messages, self._receive), self._send)

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask the platform something else on behalf of the same caller."""
        answer = Answer()
        await self.forward(method, path, body, answer.take)
        return answer

    async def forward(self, method: str, path: str, body: Any, send: Send) -> None:
        """The same, with each message of the answer sent to `send`."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = [pair for pair in self.scope["headers"] if pair[0].lower() not in _NOT_ASKED]
        headers += [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        full = self.scope.get("root_path", "") + path
        scope = {
            **self.scope,
            "method": method,
            "path": full,
            "raw_path": full.encode(),
            "query_string": b"",
            "headers": headers,
        }
        message = {"type": "http.request", "body": content, "more_body": False}
        await self._app(scope, _replay([message], self._receive), send)

    async def forward_unless(self, status: int, path: str, body: Any) -> Answer | None:
        """Let the platform answer a POST, unless with `status`: that answer is returned."""
        held = Answer()

        async def send(message: Message) -> None:
            if held.messages or (
                message["type"] == "http.response.start" and message["status"] == status
            ):
                await held.take(message)
            else:
                await self._send(message)

        await self.forward("POST", path, body, send)
        return held if held.messages else None

    async def send(self, message: Message) -> None:
        """Answer with one ASGI message."""
        await self._send(message)

    async def relay(self, answer: Answer) -> None:
        """Answer as the platform has."""
        for message in answer.messages:
            await self._send(message)

    async def answer(self, content: Any, like: Answer, *, status: int = 200) -> None:
        """Answer with JSON, and the headers that the platform gave its answer."""
        await self.respond(JSONResponse(content, status), like.headers)

    async def respond(self, response: Response, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Answer with a response of our own."""
        response.raw_headers += headers
        await response(self.scope, self._receive, self._send)

    async def refuse(self, status: int, content: Any) -> None:
        """Refuse the request, once it is certain that the caller may ask anything at all."""
        nothing = "/threads/00000000-0000-0000-0000-000000000000"
        probe = await self.ask("GET", nothing)
        if probe.status in (401, 403):
            await self.relay(probe)
            return
        # What has not been read of the body would be taken for the next request.
        close = [(b"connection", b"close")] if self.is_too_large else []
        await self.respond(JSONResponse(content, status), [*probe.headers, *close])


async def read_body(request: Request, model: type[Body], otherwise: bytes = b"") -> Body | None:
    """The body, or `otherwise` where there is none, as a `model`; None once the request is refused."""
    try:
        return model.model_validate_json(request.body or otherwise)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()
        ]
        await request.refuse(422, {"detail": "; ".join(problems)})
        return None


def parse(body: bytes) -> Any:
    """The JSON in a body, or None if it has none. The encoding is UTF-8, by which it was counted."""
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError):
        return None


def _replay(messages: Iterable[Message], receive: Receive) -> Receive:
    rest = iter(messages)

    async def replayed() -> Message:
        message = next(rest, None)
        return await receive() if message is None else message

    return replayed
