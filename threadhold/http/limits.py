"""What stands around the stock application: limits on requests, and an answer to every error.

Each error is answered with JSON `{"detail": ...}`. What the client caused is a
4xx; the rest is a 500 without particulars, whose `reference` finds the
traceback in the log.
"""

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any

import httpx
import jsonschema_rs
import structlog
from langgraph.errors import EmptyInputError, InvalidUpdateError
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded, TooSlow
from langgraph_runtime_sql.hooks import Reject
from threadhold.http import json_limits, validation
from threadhold.http.origins import ForeignOrigins

logger = structlog.stdlib.get_logger(__name__)

# Characters of a refusal; longer ones lose their middle.
SAID = 2000
# How many times too large a body may be before whoever sends it is cut off.
TOLERATED = 10
PAUSE_SECONDS = 5.0

Handler = Callable[[Request, Exception], Awaitable[Response]]


def install(
    app: Starlette,
    *,
    max_body_bytes: int,
    limits: json_limits.Limits,
    private_network: bool,
) -> None:
    """Put the guards into `app`, which must not have served anything yet.

    Args:
        app: The stock application.
        max_body_bytes: Larger request bodies get a 413.
        limits: JSON bodies and WebSocket frames that exceed them are refused.
        private_network: Let public websites that CORS allows reach a private address.
    """
    validation.install()
    _limit_json(app.router.routes, limits)
    app.add_middleware(Legible)
    # Last in the list is innermost: inside CORS, so that browsers may read these answers.
    app.user_middleware += [
        Middleware(ForeignOrigins, **_origins(app)),
        Middleware(JsonErrors),
        Middleware(ErrorBoundary),
        Middleware(BodyLimit, limit=max_body_bytes),
        Middleware(FrameLimit, limit=max_body_bytes, limits=limits),
    ]
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    app.add_exception_handler(HTTPException, unwrapping(app.exception_handlers[HTTPException]))
    cors: Any = CORSMiddleware
    for middleware in app.user_middleware:
        # The stock switch adds the header, but leaves this one refusing the preflight.
        if middleware.cls is cors:
            middleware.kwargs["allow_private_network"] = private_network


def _limit_json(routes: Iterable[BaseRoute], limits: json_limits.Limits) -> None:
    """Put `JsonLimit` around each route of the API, inside of its authentication.

    A project's own routes may take bodies that are not JSON.
    """
    from langgraph_api.route import ApiRoute

    for route in routes:
        if isinstance(route, ApiRoute):
            json_rpc = validation.is_json_rpc(route.path)
            route.app = JsonLimit(route.app, limits=limits, json_rpc=json_rpc)
        else:
            _limit_json(getattr(route, "routes", None) or (), limits)


def _origins(app: Starlette) -> dict[str, Any]:
    """The origins that CORS allows, as `ForeignOrigins` takes them."""
    cors: Any = CORSMiddleware
    allowed = [each.kwargs for each in app.user_middleware if each.cls is cors]
    names = ("allow_origins", "allow_origin_regex")
    return {name: kwargs[name] for kwargs in allowed for name in names if name in kwargs}


class Legible:
    """Answers 4xx to a query or header that the stock middleware or handlers cannot take."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"detail": refusal[1]}, refusal[0])(scope, receive, send)

    @staticmethod
    def _refusal(scope: Scope) -> tuple[int, str] | None:
        """The status and reason, if the request is refused."""
        query = scope.get("query_string", b"")
        headers = [(name, value) for name, value in scope["headers"] if name in _TEXT_HEADERS]
        try:
            for _, value in (*headers, (b"", query)):
                value.decode()
        except UnicodeDecodeError:
            return 400, "The query and the header x-request-id must be UTF-8"
        for name, value in headers:
            if name == b"last-event-id" and value and not _EVENT_ID.fullmatch(value):
                return 422, "The header last-event-id must be an id that this server has sent"
        if b"limit" not in query and b"offset" not in query:
            return None
        for name, number in QueryParams(query).items():
            if name in ("limit", "offset") and not _is_page(number):
                most = validation.MAX_PAGE
                return 422, f"`{name}` must be a whole number from 0 to {most}, not {number!r}"
        return None


_TEXT_HEADERS = (b"x-request-id", b"last-event-id")
_EVENT_ID = re.compile(rb"-|-1|[0-9]{1,19}(-([0-9]{1,19}|\*))?")


def _is_page(number: str) -> bool:
    return number.isascii() and number.isdigit() and int(number[:11]) <= validation.MAX_PAGE


class JsonErrors:
    """Gives an error that is answered as plain text the shape of all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        text = b""

        async def shaped(message: Message) -> None:
            nonlocal start, text
            if message["type"] == "http.response.start" and _is_text_error(message):
                start = message
            elif start is None:
                await send(message)
            else:
                text += message.get("body", b"")
                if not message.get("more_body"):
                    detail = text.decode(errors="replace") or HTTPStatus(start["status"]).phrase
                    kept = [pair for pair in start["headers"] if pair[0] not in _OF_THE_BODY]
                    response = JSONResponse({"detail": detail}, start["status"])
                    response.raw_headers += kept
                    await response(scope, receive, send)

        await self._app(scope, receive, shaped)


_OF_THE_BODY = (b"content-type", b"content-length")


def _is_text_error(message: Message) -> bool:
    kind = next((value for name, value in message["headers"] if name == b"content-type"), b"")
    return bool(message["status"] >= 400 and (not kind or kind.startswith(b"text/plain")))


class BodyLimit:
    """Answers 413 to a request whose body is larger than `limit` bytes, declared or streamed."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (declared := self._declared(scope)) > self._limit:
            await self._refuse(declared, scope, receive, send)
        else:
            await self._count(scope, receive, send)

    @staticmethod
    def _declared(scope: Scope) -> int:
        declared = next(
            (value for name, value in scope["headers"] if name == b"content-length"), b""
        )
        return int(declared) if declared.isdigit() else 0

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen, exceeded, started = 0, False, False

        async def counted() -> Message:
            nonlocal seen, exceeded
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                exceeded = True
                raise HTTPException(413, json_limits.too_large(self._limit))
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            # Whatever a handler makes of a body cut short, the answer is 413.
            if started or not exceeded:
                started = True
                await send(message)

        await self._app(scope, counted, watched)
        if exceeded and not started:
            await self._refuse(None, scope, receive, send)

    async def _refuse(
        self, declared: int | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not any(name == b"expect" for name, _ in scope["headers"]):
            await self._drain(receive)
        # Not all of the body may have been read, so the connection cannot be used again.
        detail = json_limits.too_large(self._limit, declared)
        response = JSONResponse({"detail": detail}, 413, headers={"connection": "close"})
        await response(scope, receive, send)

    async def _drain(self, receive: Receive) -> None:
        """Let a client write what it is writing: most read no answer before.

        One that pauses is answered. To one that goes on and on the connection is closed, by which
        the answer is lost.
        """
        left = TOLERATED * self._limit
        while left > 0:
            try:
                async with asyncio.timeout(PAUSE_SECONDS):
                    message = await receive()
            except TimeoutError:
                return
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
            left -= len(message.get("body", b""))


class JsonLimit:
    """Refuses a JSON body with too many values or levels, before anything parses it.

    The status is 422, or for JSON-RPC, which has errors of its own, 400.
    """

    def __init__(self, app: ASGIApp, *, limits: json_limits.Limits, json_rpc: bool) -> None:
        self._app = app
        self._limits = limits
        self._json_rpc = json_rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        body, end = await self._read(receive)
        problem = await json_limits.find_problem(body, self._limits)
        if problem is None:
            await self._app(scope, _replay(body, end, receive), send)
        elif self._json_rpc:
            error = validation.JsonRpcError(validation.INVALID_REQUEST, problem)
            await JSONResponse(error.body, 400)(scope, receive, send)
        else:
            scope["error_detail"] = problem
            await JSONResponse({"detail": problem}, 422)(scope, receive, send)

    @staticmethod
    async def _read(receive: Receive) -> tuple[bytes, Message]:
        """The body, and the last message: the end of the body, or that the client has left."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or not message.get("more_body", False):
                return bytes(body), message


_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")


def _replay(body: bytes, end: Message, receive: Receive) -> Receive:
    """A `receive` that begins with a body that has been read."""
    left = [end] if end["type"] != "http.request" else []
    left.append({"type": "http.request", "body": body, "more_body": bool(left)})

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed


class FrameLimit:
    """Answers the frames of a WebSocket that its handler must not parse, and hands on the others.

    A handler would parse frames of any size and shape, and ends on binary ones without a word.
    """

    def __init__(self, app: ASGIApp, *, limit: int, limits: json_limits.Limits) -> None:
        self._app = app
        self._limit = limit
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def readable() -> Message:
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

        await self._app(scope, readable, send)

    async def _problem(self, message: Message) -> str | None:
        """Why a frame cannot be handed on, if it cannot."""
        text = message.get("text")
        if text is None:
            return "Protocol commands must be text frames."
        frame = text.encode()
        if len(frame) > self._limit:
            return json_limits.too_large(self._limit, len(frame))
        return await json_limits.find_problem(frame, self._limits)


class ErrorBoundary:
    """Turns an exception that nothing handled into a logged 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return  # nobody is left to answer
        except Exception as error:
            # Once an answer has begun, only breaking the connection can say that it is not whole.
            if started:
                raise
            response = await unexpected(Request(scope), error)
            await response(scope, receive, send)


async def unexpected(request: Request, error: Exception) -> Response:
    """A 500 that says nothing but where to look."""
    reference = uuid.uuid4().hex
    logger.error(
        "Unexpected error",
        reference=reference,
        method=request.scope.get("method"),
        path=request.scope["path"],
        exc_info=error,
    )
    return JSONResponse({"detail": "Internal server error", "reference": reference}, 500)


async def rejected(request: Request, error: Exception) -> Response:
    """A hook's refusal, word for word."""
    if not isinstance(error, Reject):
        raise error
    return JSONResponse(error.body, error.status_code)


def unwrapping(stock: Any) -> Handler:
    """The stock handler, but for a hook's refusal that a route has put into words of its own.

    Where supersteps are refused, the route answers 201 and an apology.
    """

    async def handler(request: Request, error: Exception) -> Response:
        refusal = error.__cause__
        if isinstance(refusal, Reject):
            return await rejected(request, refusal)
        response: Response = await stock(request, error)
        return response

    return handler


async def bad_value(request: Request, error: Exception) -> Response:
    """A value that does not make sense; its text says which. The access log shows it too."""
    request.scope["error_detail"] = str(error)
    return JSONResponse({"detail": str(error) or "Invalid value"}, 400)


async def bad_body(request: Request, error: Exception) -> Response:
    """What a schema says of a body, without the whole of it: that may be megabytes."""
    said = str(error)
    if len(said) > SAID:
        said = f"{said[: SAID // 2]} [...] {said[-SAID // 2 :]}"
    request.scope["error_detail"] = said
    return JSONResponse({"detail": said}, 422)


def bad_input(status: int, detail: str) -> Handler:
    """A handler for what Python raises deep inside when input is beyond its limits."""

    async def handler(request: Request, error: Exception) -> Response:
        # Logged in full, because the same class may one day be a mistake of ours.
        logger.warning(detail, path=request.scope["path"], exc_info=error)
        return JSONResponse({"detail": detail}, status)

    return handler


too_deep = bad_input(400, "The request is nested too deeply")


async def json_rpc_error(request: Request, error: Exception) -> Response:
    """What JSON-RPC says of a message that is refused."""
    if not isinstance(error, validation.JsonRpcError):
        raise error
    # As the API's own: the status is HTTP's, and HTTP went well unless nothing could be read.
    return JSONResponse(error.body, 200 if error.body["id"] is not None else 400)


async def own_answer(request: Request, error: Exception) -> Response:
    """A handler that asks the API itself, as MCP's does, was refused: so is its caller."""
    if not isinstance(error, httpx.HTTPStatusError) or error.request.url.host != OURSELVES:
        return await unexpected(request, error)
    if (status := error.response.status_code) >= 500:
        return await unexpected(request, error)
    return Response(error.response.content, status, media_type="application/json")


OURSELVES = "api"
"""Host of the SDK's client that has no URL."""


async def overloaded(request: Request, error: Exception) -> Response:
    """The disk is full or fails, or the database stays busy: what it says, and to come back."""
    logger.error("The database cannot be used now", path=request.scope["path"], reason=str(error))
    detail = f"The database cannot be used now: {error}. Try again later."
    return JSONResponse({"detail": detail}, 503, headers={"retry-after": "5"})


async def too_slow(request: Request, error: Exception) -> Response:
    """The database is well, and the search is not."""
    logger.warning("A search was cut off", path=request.scope["path"])
    return JSONResponse({"detail": str(error)}, 503)


async def type_error(request: Request, error: Exception) -> Response:
    """orjson has no class of its own for an object too deep to be written."""
    handler = too_deep if str(error) == "Recursion limit reached" else unexpected
    return await handler(request, error)


HANDLERS: dict[type[Exception], Handler] = {
    **dict.fromkeys((DatabaseBusy, DatabaseOverloaded), overloaded),
    TooSlow: too_slow,
    Exception: unexpected,
    Reject: rejected,
    jsonschema_rs.ValidationError: bad_body,
    validation.JsonRpcError: json_rpc_error,
    httpx.HTTPStatusError: own_answer,
    ValueError: bad_value,
    InvalidUpdateError: bad_value,
    EmptyInputError: bad_value,
    UnicodeError: bad_input(400, "The request holds text that is not valid Unicode"),
    OverflowError: bad_input(400, "The request holds a number that is out of range"),
    RecursionError: too_deep,
    TypeError: type_error,
}
"""Exception to answer; the closest ancestor of what was raised wins."""
