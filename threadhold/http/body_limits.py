"""Body limits: refuse request bodies and WebSocket frames that are too large, complex or slow."""

import asyncio
import json

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold.http import host_routes, json_limits, origins, validation
from threadhold.http.answer_status import AnswerStatus

# The server reads up to this many times the limit before it closes the connection.
DRAIN_FACTOR = 10
DRAIN_PAUSE_SECONDS = 5.0

TOO_SLOW = "The body of the request did not arrive in time"

_METHODS_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")


class BodyLimit:
    """Answer 413 to a request whose declared or received body is larger than `limit` bytes.

    Answer 408 if the body has not arrived `seconds` after the first attempt to read it.

    Starlette's `max_body_size` is not enough: it does not drain the body, close the
    connection or answer with JSON, and its refusal can be caught by a handler.
    """

    def __init__(self, app: ASGIApp, *, limit: int, seconds: float) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared, large = self._declared(scope), host_routes.here.large_body(scope)
        if large is None and declared > self._limit:
            await self._refuse_size(self._too_large(declared), scope, receive, send)
        elif large is None:
            await self._count(scope, receive, send, self._limit, self._too_large())
        else:
            # Its route looks first who sends it.
            await self._count(scope, receive, send, large.limit, large.refusal, declared)

    def _too_large(self, declared: int | None = None) -> str:
        return json_limits.too_large(self._limit, declared)

    @staticmethod
    def _declared(scope: Scope) -> int:
        declared = Headers(scope=scope).get("content-length", "")
        return int(declared) if declared.isdecimal() else 0

    async def _count(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        limit: int,
        refusal: str,
        declared: int = 0,
    ) -> None:
        received, refused, answer = 0, 0, AnswerStatus(send)
        deadline: float | None = None
        complete = False

        async def receive_in_time() -> Message:
            nonlocal deadline, complete
            if complete:
                # From here on, only a disconnect follows.
                return await receive()
            if deadline is None:
                deadline = asyncio.get_running_loop().time() + self._seconds
            async with asyncio.timeout_at(deadline):
                message = await receive()
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def receive_and_count() -> Message:
            nonlocal received, refused
            if declared > limit:
                refused = 413
                raise HTTPException(413, refusal)
            try:
                message = await receive_in_time()
            except TimeoutError as error:
                refused = 408
                raise HTTPException(408, TOO_SLOW) from error
            received += len(message.get("body", b""))
            if received > limit:
                refused = 413
                raise HTTPException(413, refusal)
            return message

        async def send_unless_refused(message: Message) -> None:
            # A handler may catch the exception above and answer something else.
            if answer.status or not refused:
                await answer(message)

        await self._app(scope, receive_and_count, send_unless_refused)
        if refused == 413 and not answer.status:
            await self._refuse_size(refusal, scope, receive, send)
        elif refused and not answer.status:
            await self._refuse(refused, TOO_SLOW, scope, receive, send)

    async def _refuse_size(self, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
        if "expect" not in Headers(scope=scope):
            await self._drain(receive)
        await self._refuse(413, detail, scope, receive, send)

    @staticmethod
    async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
        # Unread parts of the body make the connection unusable for another request.
        response = JSONResponse({"detail": detail}, status, headers={"connection": "close"})
        await response(scope, receive, send)

    async def _drain(self, receive: Receive) -> None:
        """Read the rest of the body, because most clients read no answer before they sent it.

        Stop when the client pauses, or takes too long for the whole. If it sends too much, the
        connection is closed and the client loses the answer.
        """
        left = DRAIN_FACTOR * self._limit
        end = asyncio.get_running_loop().time() + self._seconds
        while left > 0:
            pause = asyncio.get_running_loop().time() + DRAIN_PAUSE_SECONDS
            try:
                async with asyncio.timeout_at(min(end, pause)):
                    message = await receive()
            except TimeoutError:
                return
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
            left -= len(message.get("body", b""))


class JsonLimit:
    """Refuse a JSON body with too many values or levels, before anything parses it.

    The status is 422. JSON-RPC routes answer 400 with an error object.
    """

    def __init__(self, app: ASGIApp, *, limits: json_limits.Limits, json_rpc: bool) -> None:
        self._app = app
        self._limits = limits
        self._json_rpc = json_rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in origins.SAFE:
            await self._app(scope, receive, send)
            return
        body, last = await self._read(receive)
        problem = await json_limits.find_problem(body, self._limits)
        if problem is None:
            await self._app(scope, _replay(body, last, receive), send)
        elif self._json_rpc:
            error = validation.JsonRpcError(validation.INVALID_REQUEST, problem)
            await JSONResponse(error.body, 400)(scope, receive, send)
        else:
            scope["error_detail"] = problem
            await JSONResponse({"detail": problem}, 422)(scope, receive, send)

    @staticmethod
    async def _read(receive: Receive) -> tuple[bytes, Message]:
        """Return the body and the last message, which may be a disconnect."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or not message.get("more_body", False):
                return bytes(body), message


def _replay(body: bytes, last: Message, receive: Receive) -> Receive:
    """Make a `receive` that returns a body that has been read, then a disconnect if there was one."""
    left = [last] if last["type"] != "http.request" else []
    left.append({"type": "http.request", "body": body, "more_body": bool(left)})

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed


class FrameLimit:
    """Answer WebSocket frames that are binary, too large or too complex with an error frame.

    The stock handler would parse frames of any size, and ends silently on binary ones.
    """

    def __init__(self, app: ASGIApp, *, limit: int, limits: json_limits.Limits) -> None:
        self._app = app
        self._limit = limit
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def receive_valid() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                problem = await self._problem(message)
                if problem is None:
                    return message
                answer = {"type": "error", "id": None, "error": "invalid_argument"}
                text = json.dumps({**answer, "message": problem})
                await send({"type": "websocket.send", "text": text})

        await self._app(scope, receive_valid, send)

    async def _problem(self, message: Message) -> str | None:
        text = message.get("text")
        if text is None:
            return "Protocol commands must be text frames."
        frame = text.encode()
        if len(frame) > self._limit:
            return json_limits.too_large(self._limit, len(frame))
        return await json_limits.find_problem(frame, self._limits)
