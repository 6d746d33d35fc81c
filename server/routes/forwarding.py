"""Forwarding: read a request, and send other requests to the platform on behalf of its caller."""

import json
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold import gate
from threadhold.gate import Operation
from threadhold.host import route_names

# A body that is too large is read up to this multiple of the limit. Clients that send their whole
# body before they read can then read the answer.
DRAIN_FACTOR = 4

Body = TypeVar("Body", bound=BaseModel)
Headers = list[tuple[bytes, bytes]]

# Headers that describe a body. They do not hold for the body that replaces it.
_OF_A_BODY = frozenset(
    {b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"}
)
_NOT_FORWARDED = _OF_A_BODY | {b"accept-encoding", b"expect"}


@dataclass
class Answer:
    """The platform's answer to a request of a handler.

    Attributes:
        messages: The ASGI messages, in the order of their arrival.
    """

    messages: list[Message] = field(default_factory=list)

    async def take(self, message: Message) -> None:
        """Store a message. This method is an ASGI `send`."""
        self.messages.append(message)

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> Headers:
        """Return the headers that do not depend on the body, such as CORS and the request id."""
        return [pair for pair in self.messages[0]["headers"] if pair[0] not in _OF_A_BODY]

    @property
    def run(self) -> tuple[str, str]:
        """Return the ids of the thread and the run that the answer is about."""
        *_, thread, _, run = dict(self.headers)[b"content-location"].decode().split("/")
        return thread, run

    @property
    def content(self) -> Any:
        """Return the parsed JSON of the body, or None if the body is not JSON."""
        return parse(b"".join(each.get("body", b"") for each in self.messages[1:]))


@dataclass
class Request:
    """A request to the platform whose body has been read.

    Attributes:
        is_complete: Whether `body` is the complete body.
        is_too_large: Whether the body exceeds the limit.
        body: The part of the body that has been kept.
        names: The values of the path's parameters.
        accepted: The scope of the caller's last request that the platform has not refused.
    """

    _app: ASGIApp
    scope: Scope
    _receive: Receive
    _send: Send
    _messages: list[Message]
    is_complete: bool
    is_too_large: bool
    names: dict[str, str] = field(default_factory=dict)
    accepted: Scope = field(default_factory=dict)

    @classmethod
    async def read(
        cls, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, limit: int
    ) -> Self:
        """Read a request.

        A body that is too large is read up to `DRAIN_FACTOR` times the limit and not kept.

        Args:
            app: The platform.
            scope: The ASGI scope.
            receive: The ASGI `receive`.
            send: The ASGI `send`.
            limit: Maximum size of the body, in bytes.
        """
        messages: list[Message] = []
        size, more = 0, True
        while more and size <= DRAIN_FACTOR * limit:
            message = await receive()
            size += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if size <= limit:
                messages.append(message)
        is_complete = size <= limit and message["type"] == "http.request"
        return cls(app, scope, receive, send, messages, is_complete, size > limit)

    def header(self, name: bytes) -> str:
        """Return the value of a header, or an empty text. `name` is in lower case."""
        found = (value for key, value in self.scope["headers"] if key.lower() == name)
        return next(found, b"").decode("latin-1")

    @property
    def platform(self) -> ASGIApp:
        """Return the platform to which requests are forwarded."""
        return self._app

    @property
    def body(self) -> bytes:
        """Return the part of the body that has been kept."""
        return b"".join(each.get("body", b"") for each in self._messages)

    @property
    def path(self) -> str:
        """Return the path below the platform's mount."""
        return str(self.scope["path"]).removeprefix(self.scope.get("root_path", ""))

    async def pass_on(self) -> None:
        """Let the platform answer the original request."""
        await self._app(self.scope, _replay(self._messages, self._receive), self._send)

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send another request to the platform with the caller's headers, and return the answer.

        Args:
            method: The HTTP method.
            path: The path below the platform's mount.
            body: The body, which is sent as JSON. None: no body.
        """
        answer = Answer()
        scope = await self.forward(method, path, body, answer.take)
        if answer.status < 400:
            self.accepted = scope
        return answer

    def writing(self, operation: Operation, **detail: Any) -> AbstractAsyncContextManager[None]:
        """Let the block write to the graphs' tables for the caller, whom the platform has accepted.

        Args:
            operation: What the caller asks for, and may do.
            **detail: Facts for the audit log.
        """
        return gate.admitted(operation, self.accepted, **detail)

    async def enter(self, operation: Operation, **detail: Any) -> None:
        """Enter in the audit log what the caller reads, whom the platform has accepted.

        Args:
            operation: What the caller asks for, and may do.
            **detail: Facts for the audit log.
        """
        await gate.entered(operation, self.accepted, **detail)

    async def forward(self, method: str, path: str, body: Any, send: Send) -> Scope:
        """Send another request as `call` does, and pass each message of the answer to `send`.

        Returns:
            The scope of the request, to which the platform adds the user.
        """
        content = b"" if body is None else json.dumps(body).encode()
        headers = [pair for pair in self.scope["headers"] if pair[0].lower() not in _NOT_FORWARDED]
        headers += [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        full = self.scope.get("root_path", "") + path
        scope = {
            **route_names.own_scope(self.scope),
            "method": method,
            "path": full,
            "raw_path": full.encode(),
            "query_string": b"",
            "headers": headers,
        }
        message = {"type": "http.request", "body": content, "more_body": False}
        try:
            await self._app(scope, _replay([message], self._receive), send)
        finally:
            route_names.note_user(self.scope, scope)
        return scope

    async def forward_unless(self, status: int, path: str, body: Any) -> Answer | None:
        """Send a POST to the platform and pass on its answer, unless it has the status `status`.

        Returns:
            The answer with that status, which has not been sent. None: the answer has been sent.
        """
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
        """Send one ASGI message to the client."""
        await self._send(message)

    async def relay(self, answer: Answer) -> None:
        """Send an answer of the platform to the client."""
        for message in answer.messages:
            await self._send(message)

    async def answer(self, content: Any, like: Answer, *, status: int = 200) -> None:
        """Answer with JSON and with the headers of an answer of the platform.

        Args:
            content: The content of the body.
            like: The answer whose headers are used.
            status: The HTTP status.
        """
        await self.respond(JSONResponse(content, status), like.headers)

    async def respond(self, response: Response, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send a response with additional headers."""
        response.raw_headers += headers
        await response(self.scope, self._receive, self._send)

    async def refuse(self, status: int, content: Any) -> None:
        """Refuse the request.

        A request to the platform first checks the caller. If the platform answers 401 or 403, its
        answer is sent instead: a caller without rights must not see the reason.
        """
        missing_thread = "/threads/00000000-0000-0000-0000-000000000000"
        probe = await self.call("GET", missing_thread)
        if probe.status in (401, 403):
            await self.relay(probe)
            return
        # Close the connection: the server would take the unread rest for the next request.
        close = [(b"connection", b"close")] if self.is_too_large else []
        await self.respond(JSONResponse(content, status), [*probe.headers, *close])


async def read_body(
    request: Request, model: type[Body], otherwise: bytes = b"", *, content: bytes | None = None
) -> Body | None:
    """Parse the body of a request. If it is invalid, refuse the request with 422.

    Args:
        request: The request.
        model: The model of the body.
        otherwise: The JSON that replaces an empty body.
        content: The JSON to parse instead of the body.

    Returns:
        The body as a `model`. None: the request has been refused.
    """
    try:
        return model.model_validate_json(content or request.body or otherwise)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()
        ]
        await request.refuse(422, {"detail": "; ".join(problems)})
        return None


def parse(body: bytes) -> Any:
    """Parse a body as JSON. Return None if the body is not JSON.

    The encoding is UTF-8, as in the check of the JSON limits. A different one could bypass them.
    """
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
