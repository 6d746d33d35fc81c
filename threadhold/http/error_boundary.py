"""Error boundary: steps that answer every error with JSON `{"detail": ...}`."""

import asyncio
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Message

from threadhold.http.error_handlers import unexpected
from threadhold.http.layers import Exchange

_BODY_HEADERS = (b"content-type", b"content-length")


async def answer_cancelled(exchange: Exchange) -> None:
    """Answer 503 to requests that a shutdown cancels; uvicorn would close the connection."""

    async def answer(error: BaseException | None) -> bool:
        cancelled = isinstance(error, asyncio.CancelledError)
        if not cancelled or exchange.scope["type"] != "http" or exchange.status:
            return False
        refusal = {"detail": "The server stopped before it could answer: send it again"}
        response = JSONResponse(refusal, 503, {"Retry-After": "1"})
        await response(exchange.scope, exchange.receive, exchange.answer)
        return True

    exchange.at_end(answer)


async def error_boundary(exchange: Exchange) -> None:
    """Log an unhandled exception and answer 500."""

    async def answer(error: BaseException | None) -> bool:
        if isinstance(error, ClientDisconnect):
            return True
        # After the answer has begun, only a broken connection shows that it is incomplete.
        if not isinstance(error, Exception) or exchange.status:
            return False
        response = await unexpected(Request(exchange.scope), error)
        await response(exchange.scope, exchange.receive, exchange.answer)
        return True

    if exchange.scope["type"] == "http":
        exchange.at_end(answer)


async def json_errors(exchange: Exchange) -> None:
    """Turn plain-text error answers into JSON."""
    scope = exchange.scope
    if scope["type"] != "http" or scope["method"] == "HEAD":
        return
    receive, send = exchange.receive, exchange.send
    start: Message | None = None
    text = b""

    async def send_as_json(message: Message) -> None:
        nonlocal start, text
        if message["type"] == "http.response.start" and _is_text_error(message):
            start = message
        elif start is None:
            await send(message)
        else:
            text += message.get("body", b"")
            if not message.get("more_body"):
                detail = text.decode(errors="replace") or HTTPStatus(start["status"]).phrase
                response = JSONResponse({"detail": detail}, start["status"])
                response.raw_headers += [
                    header for header in start["headers"] if header[0] not in _BODY_HEADERS
                ]
                await response(scope, receive, send)

    exchange.send = send_as_json


def _is_text_error(message: Message) -> bool:
    media_type = Headers(scope=message).get("content-type") or "text/plain"
    return bool(message["status"] >= 400 and media_type.startswith("text/plain"))
