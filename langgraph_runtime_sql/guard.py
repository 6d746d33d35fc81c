"""What stands around the stock application: a limit on bodies, and an answer to every error.

Each error is answered with JSON `{"detail": ...}`. What the client caused is a
4xx; the rest is a 500 without particulars, whose `reference` finds the
traceback in the log.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from langgraph.errors import EmptyInputError, InvalidUpdateError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql.hooks import Reject

logger = structlog.stdlib.get_logger(__name__)

Handler = Callable[[Request, Exception], Awaitable[Response]]


def install(app: Starlette, *, max_body_bytes: int, private_network: bool) -> None:
    """Put the guards into `app`, which must not have served anything yet.

    Args:
        app: The stock application.
        max_body_bytes: Larger request bodies get a 413.
        private_network: Let public websites that CORS allows reach a private address.
    """
    app.add_middleware(Legible)
    # Last in the list is innermost: inside CORS, so that browsers may read these answers.
    app.user_middleware += [
        Middleware(ErrorBoundary),
        Middleware(BodyLimit, limit=max_body_bytes),
    ]
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    cors: Any = CORSMiddleware
    for middleware in app.user_middleware:
        # The stock switch adds the header, but leaves this one refusing the preflight.
        if middleware.cls is cors:
            middleware.kwargs["allow_private_network"] = private_network


class Legible:
    """Answers 400 to a query or request id that is not text, which the stock middleware assumes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_text(scope):
            await self._app(scope, receive, send)
            return
        detail = "The query and the header x-request-id must be UTF-8"
        await JSONResponse({"detail": detail}, 400)(scope, receive, send)

    @staticmethod
    def _is_text(scope: Scope) -> bool:
        values = [value for name, value in scope["headers"] if name == b"x-request-id"]
        try:
            for value in (*values, scope.get("query_string", b"")):
                value.decode()
        except UnicodeDecodeError:
            return False
        return True


class BodyLimit:
    """Answers 413 to a request whose body is larger than `limit` bytes, declared or streamed."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._declared(scope) > self._limit:
            await self._refuse(scope, receive, send)
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
                raise HTTPException(413, self._detail())
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            # Whatever a handler makes of a body cut short, the answer is 413.
            if started or not exceeded:
                started = True
                await send(message)

        await self._app(scope, counted, watched)
        if exceeded and not started:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The rest of the body is not read, so the connection cannot be used again.
        response = JSONResponse({"detail": self._detail()}, 413, headers={"connection": "close"})
        await response(scope, receive, send)

    def _detail(self) -> str:
        return f"Request body too large (limit: {self._limit} bytes)"


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


async def bad_value(request: Request, error: Exception) -> Response:
    """A value that does not make sense; its text says which. The access log shows it too."""
    request.scope["error_detail"] = str(error)
    return JSONResponse({"detail": str(error) or "Invalid value"}, 400)


def bad_input(status: int, detail: str) -> Handler:
    """A handler for what Python raises deep inside when input is beyond its limits."""

    async def handler(request: Request, error: Exception) -> Response:
        # Logged in full, because the same class may one day be a mistake of ours.
        logger.warning(detail, path=request.scope["path"], exc_info=error)
        return JSONResponse({"detail": detail}, status)

    return handler


too_deep = bad_input(400, "The request is nested too deeply")


async def type_error(request: Request, error: Exception) -> Response:
    """orjson has no class of its own for an object too deep to be written."""
    handler = too_deep if str(error) == "Recursion limit reached" else unexpected
    return await handler(request, error)


HANDLERS: dict[type[Exception], Handler] = {
    Exception: unexpected,
    Reject: rejected,
    ValueError: bad_value,
    InvalidUpdateError: bad_value,
    EmptyInputError: bad_value,
    UnicodeError: bad_input(400, "The request holds text that is not valid Unicode"),
    OverflowError: bad_input(400, "The request holds a number that is out of range"),
    RecursionError: too_deep,
    TypeError: type_error,
}
"""Exception to answer; the closest ancestor of what was raised wins."""
