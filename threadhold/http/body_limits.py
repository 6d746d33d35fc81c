"""Body limits: refuse request bodies and WebSocket frames that are too large, complex or slow."""

import asyncio
import json

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold.http import host_routes, json_limits, origins, request_body, validation
from threadhold.http.layers import Exchange
from threadhold.http.request_body import Body

# The server reads up to this many times the limit before it closes the connection.
DRAIN_FACTOR = 10
DRAIN_PAUSE_SECONDS = 5.0


class BodyLimit:
    """Answer 413 to a request whose declared or received body is larger than `limit` bytes.

    Answer 408 if the body has not arrived `seconds` after the first attempt to read it.

    Starlette's `max_body_size` is not enough: it does not drain the body, close the
    connection or answer with JSON, and its refusal can be caught by a handler.
    """

    def __init__(self, *, limit: int, seconds: float) -> None:
        self._limit, self._seconds = limit, seconds

    async def __call__(self, exchange: Exchange) -> ASGIApp | None:
        scope = exchange.scope
        if scope["type"] != "http":
            return None
        declared, large = _declared(scope), host_routes.here.large_body(scope)
        if large is None and declared > self._limit:
            return self._refusal(413, json_limits.too_large(self._limit, declared))
        # The route of a large body looks first who sends it.
        body = Body(
            exchange.receive,
            limit=self._limit if large is None else large.limit,
            seconds=self._seconds,
            refusal=json_limits.too_large(self._limit) if large is None else large.refusal,
            declared=declared,
        )
        self._watch(exchange, body)
        return None

    def _watch(self, exchange: Exchange, body: Body) -> None:
        """Answer a body that is refused while the app reads it."""
        receive, send = exchange.receive, exchange.send

        async def send_unless_refused(message: Message) -> None:
            # A handler may catch the refusal and answer something else.
            if exchange.status or not body.refused:
                await send(message)

        async def refuse(error: BaseException | None) -> None:
            if error is None and body.refused and not exchange.status:
                refusal = self._refusal(body.refused, body.refusal)
                await refusal(exchange.scope, receive, exchange.answer)

        exchange.after(request_body.drop, exchange.scope)
        exchange.receive = request_body.put(exchange.scope, body)
        exchange.send = send_unless_refused
        exchange.at_end(refuse)

    def _refusal(self, status: int, detail: str) -> ASGIApp:
        async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
            if status == 413 and "expect" not in Headers(scope=scope):
                await self._drain(receive)
            # Unread parts of the body make the connection unusable for another request.
            answer = JSONResponse({"detail": detail}, status, headers={"connection": "close"})
            await answer(scope, receive, send)

        return refuse

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


def _declared(scope: Scope) -> int:
    declared = Headers(scope=scope).get("content-length", "")
    return int(declared) if declared.isdecimal() else 0


class JsonLimit:
    """Refuse a JSON body with too many values or levels, before anything parses it.

    The status is 422. JSON-RPC routes answer 400 with an error object.
    """

    def __init__(self, limits: json_limits.JsonLimits, *, json_rpc: bool) -> None:
        self._limits, self._json_rpc = limits, json_rpc

    async def __call__(self, exchange: Exchange) -> ASGIApp | None:
        scope = exchange.scope
        if scope["type"] != "http" or scope["method"] in origins.SAFE:
            return None
        body = await request_body.read(scope, exchange.receive)
        problem = await json_limits.find_problem(body, self._limits)
        if problem is None:
            if self._json_rpc:
                # The SDK of MCP receives the body itself.
                exchange.receive = request_body.again(scope, body, exchange.receive)
            return None
        if self._json_rpc:
            error = validation.JsonRpcError(validation.INVALID_REQUEST, problem)
            return JSONResponse(error.body, 400)
        scope["error_detail"] = problem
        return JSONResponse({"detail": problem}, 422)


class FrameLimit:
    """Answer WebSocket frames that are binary, too large or too complex with an error frame.

    The stock handler would parse frames of any size, and ends silently on binary ones.
    """

    def __init__(self, *, limit: int, limits: json_limits.JsonLimits) -> None:
        self._limit, self._limits = limit, limits

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.scope["type"] != "websocket":
            return
        receive, send = exchange.receive, exchange.send

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

        exchange.receive = receive_valid

    async def _problem(self, message: Message) -> str | None:
        text = message.get("text")
        if text is None:
            return "Protocol commands must be text frames."
        frame = text.encode()
        if len(frame) > self._limit:
            return json_limits.too_large(self._limit, len(frame))
        return await json_limits.find_problem(frame, self._limits)
