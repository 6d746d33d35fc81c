"""Exception handlers: turn each exception into a JSON answer.

An error that the client caused is a 4xx. Any other error is a 500 without details; its
`reference` finds the traceback in the log.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import jsonschema_rs
import structlog
from langgraph.errors import EmptyInputError, InvalidUpdateError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from langgraph_runtime_sql.errors import (
    DamagedCheckpoint,
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseOutage,
    DatabaseOverloaded,
    LimitReached,
    SearchTimeout,
)
from langgraph_runtime_sql.hooks import Reject
from langgraph_runtime_sql.stopping import StreamHandedOver
from threadhold.http import route_names, validation

logger = structlog.stdlib.get_logger(__name__)

# Longer messages lose their middle.
MAX_DETAIL_CHARACTERS = 2000

SDK_HOST = "api"
"""Host of the SDK client through which the API calls itself."""

Handler = Callable[[Request, Any], Awaitable[Response]]


async def unexpected(request: Request, error: Exception) -> Response:
    """Log an exception and answer 500 with the reference of its log line."""
    reference = uuid.uuid4().hex
    if isinstance(error, StreamHandedOver):
        # A stream that the server cut off on purpose; nothing is sent after it.
        return Response(status_code=503)
    logger.error(
        "Unexpected error",
        reference=reference,
        method=request.scope.get("method"),
        path=route_names.shown(request.scope),
        exc_info=error,
    )
    # It names a thread that the caller may read, and a checkpoint of it.
    detail = str(error) if isinstance(error, DamagedCheckpoint) else "Internal server error"
    return JSONResponse({"detail": detail, "reference": reference}, 500)


async def rejected(request: Request, error: Reject) -> Response:
    """Answer with a hook's own status and body."""
    # For the audit log: a refusal by policy, not by a conflict.
    request.scope["policy_refusal"] = str(error.body.get("error") or "rejected")
    return JSONResponse(error.body, error.status_code)


def unwrap_rejection(stock: Handler) -> Handler:
    """Wrap the stock handler so that a hook's rejection inside another error wins.

    The stock route that refuses supersteps answers 201 with an apology.
    """

    async def handler(request: Request, error: Exception) -> Response:
        cause = error.__cause__
        return await (
            rejected(request, cause) if isinstance(cause, Reject) else stock(request, error)
        )

    return handler


async def bad_value(request: Request, error: Exception) -> Response:
    """Answer 400 with the text of the error, and write that text to the access log."""
    request.scope["error_detail"] = str(error)
    return JSONResponse({"detail": str(error) or "Invalid value"}, 400)


async def bad_body(request: Request, error: Exception) -> Response:
    """Answer 422 with the schema error, shortened because it may quote megabytes of the body."""
    detail = shortened(str(error))
    request.scope["error_detail"] = detail
    return JSONResponse({"detail": detail}, 422)


def shortened(detail: str) -> str:
    """Return a text without its middle, if it is long."""
    if len(detail) <= MAX_DETAIL_CHARACTERS:
        return detail
    half = MAX_DETAIL_CHARACTERS // 2
    return f"{detail[:half]} [...] {detail[-half:]}"


def bad_input(detail: str) -> Handler:
    """Make a handler that answers 400, for exceptions that Python raises on extreme input."""

    async def handler(request: Request, error: Exception) -> Response:
        # With its traceback, because a bug of ours may raise the same class.
        logger.warning(detail, path=route_names.shown(request.scope), exc_info=error)
        return JSONResponse({"detail": detail}, 400)

    return handler


too_deep = bad_input("The request is nested too deeply")


async def json_rpc_error(request: Request, error: validation.JsonRpcError) -> Response:
    """Answer a refused JSON-RPC message with its error object.

    Like the stock API, answer 200 unless the message has no readable id.
    """
    return JSONResponse(error.body, 200 if error.body["id"] is not None else 400)


async def api_answer(request: Request, error: httpx.HTTPStatusError) -> Response:
    """Pass on the 4xx that the API gave to a handler that calls it, such as MCP's."""
    response = error.response
    if error.request.url.host == SDK_HOST and response.status_code < 500:
        headers = {name: each for name, each in response.headers.items() if name == "retry-after"}
        return Response(
            response.content, response.status_code, headers, media_type="application/json"
        )
    return await unexpected(request, error)


async def overloaded(request: Request, error: Exception) -> Response:
    """Answer 503: the database stays busy, or its answer to a commit was lost."""
    logger.error(
        "The database cannot be used now", path=route_names.shown(request.scope), reason=str(error)
    )
    detail = f"The database cannot be used now: {error}. Try again later."
    return JSONResponse({"detail": detail}, 503, headers={"retry-after": "5"})


async def unusable(request: Request, error: Exception) -> Response:
    """Answer 503 with the state of the database, which has its own lines in the log."""
    if not isinstance(error, DatabaseOutage | DatabaseDamaged):
        raise error
    request.scope["error_detail"] = error.state.value
    detail = f"{error.public} Nothing was stored. Try again later."
    return JSONResponse(
        {"detail": detail, "database": error.state.value}, 503, {"retry-after": "5"}
    )


async def search_timeout(request: Request, error: Exception) -> Response:
    """Answer 503 without `Retry-After`: the same search would time out again."""
    logger.warning("A search was cut off", path=route_names.shown(request.scope))
    return JSONResponse({"detail": str(error)}, 503)


async def limit_reached(request: Request, error: Exception) -> Response:
    """Answer 429 with the name of the limit and `Retry-After`."""
    if not isinstance(error, LimitReached):
        raise error
    request.scope["error_detail"] = error.detail
    return JSONResponse({"detail": error.detail, "limit": error.limit}, 429, error.headers)


async def type_error(request: Request, error: Exception) -> Response:
    """Tell orjson's error for a document that is too deep from other `TypeError`s."""
    handler = too_deep if str(error) == "Recursion limit reached" else unexpected
    return await handler(request, error)


HANDLERS: dict[type[Exception], Handler] = {
    **dict.fromkeys((DatabaseBusy, DatabaseOverloaded), overloaded),
    **dict.fromkeys((DatabaseOutage, DatabaseDamaged), unusable),
    SearchTimeout: search_timeout,
    LimitReached: limit_reached,
    Exception: unexpected,
    Reject: rejected,
    jsonschema_rs.ValidationError: bad_body,
    validation.JsonRpcError: json_rpc_error,
    httpx.HTTPStatusError: api_answer,
    ValueError: bad_value,
    InvalidUpdateError: bad_value,
    EmptyInputError: bad_value,
    UnicodeError: bad_input("The request holds text that is not valid Unicode"),
    OverflowError: bad_input("The request holds a number that is out of range"),
    RecursionError: too_deep,
    TypeError: type_error,
}
"""Exception to handler; the closest ancestor of the raised class wins."""


def install(app: Starlette) -> None:
    """Add the handlers to the stock application."""
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    stock: Any = app.exception_handlers[HTTPException]
    app.add_exception_handler(HTTPException, unwrap_rejection(stock))
