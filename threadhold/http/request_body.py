"""Request body: received within its limits, read once, and kept in the ASGI scope for all who need it."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

TOO_SLOW = "The body of the request did not arrive in time"

_KEY = "threadhold.body"


class Body:
    """The body of a request.

    Args:
        receive: Receives it from the client.
        limit: The largest body, in bytes.
        seconds: The time for it, from the first attempt to read it.
        refusal: What a client is told that sends more.
        declared: Its size as the client declares it.

    Attributes:
        content: The whole body, as soon as `read` has read it.
        refused: The status, 413 or 408, of a body that is too large or too slow; otherwise 0.
        refusal: What the client is told then.
    """

    def __init__(
        self, receive: Receive, *, limit: int, seconds: float, refusal: str, declared: int = 0
    ) -> None:
        self.content: bytes | None = None
        self.refused, self.refusal = 0, refusal
        self._receive, self._limit, self._seconds = receive, limit, seconds
        self._declared, self._received = declared, 0
        self._deadline: float | None = None
        self._is_complete = False

    async def receive(self) -> Message:
        """Return the next message of the client.

        Raises:
            HTTPException: (413) the body is too large; (408) it did not arrive in time.
        """
        if self._is_complete:
            # From here on, only a disconnect follows.
            return await self._receive()
        if self._declared > self._limit:
            raise self._refused(413, self.refusal)
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            raise self._refused(408, TOO_SLOW) from error
        self._is_complete = message["type"] != "http.request" or not message.get("more_body", False)
        self._received += len(message.get("body", b""))
        if self._received > self._limit:
            raise self._refused(413, self.refusal)
        return message

    def _refused(self, status: int, refusal: str) -> HTTPException:
        self.refused, self.refusal = status, refusal
        return HTTPException(status, refusal)


class Replaced:
    """A body in place of that of the client.

    Args:
        content: The body.
        receive: Receives what the client sends after its own.
    """

    def __init__(self, content: bytes, receive: Receive) -> None:
        self.content: bytes | None = None
        self._left: bytes | None = content
        self._receive = receive

    async def receive(self) -> Message:
        """Return the body, and then the next message of the client."""
        if self._left is None:
            return await self._receive()
        left, self._left = self._left, None
        return {"type": "http.request", "body": left, "more_body": False}


def put(scope: Scope, body: Body | Replaced) -> Receive:
    """Make a body that of a request. Return what receives it."""
    scope[_KEY] = body
    return body.receive


def again(scope: Scope, content: bytes, receive: Receive) -> Receive:
    """Return what receives a body that was read, once more: for an app that knows nothing of this module.

    Args:
        scope: The ASGI scope.
        content: The body.
        receive: Receives what the client sends after it.
    """
    body = Replaced(content, receive)
    body.content = content
    return put(scope, body)


def drop(scope: Scope) -> None:
    """Let go of the body of a request that has been answered, which may be large."""
    scope.pop(_KEY, None)


async def read(scope: Scope, receive: Receive) -> bytes:
    """Return the whole body of a request. Only the first call reads it.

    Args:
        scope: The ASGI scope.
        receive: What the caller receives by, because a project's middleware may change the body.

    Raises:
        HTTPException: as `Body.receive`.
        ClientDisconnect: the client left before the end of the body.
    """
    body: Body | Replaced = scope[_KEY]
    if body.content is None:
        parts = []
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body.content = b"".join(parts)
    return body.content
