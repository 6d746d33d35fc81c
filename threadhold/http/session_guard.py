"""Session guard: a step that ends a request, a stream or a WebSocket when its session ends."""

import asyncio
import logging

import orjson
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

from threadhold import sessions
from threadhold.http.layers import Exchange

logger = logging.getLogger(__name__)

POLICY_VIOLATION = 1008


async def guard(exchange: Exchange) -> None:
    """End a request that `sessions.begin` has limited. A step around the platform's routes."""
    scope = exchange.scope
    limit = asyncio.timeout(None)
    session = sessions.Session(limit)
    is_stream = False

    async def note(message: Message) -> None:
        nonlocal is_stream
        content_type = dict(message.get("headers", ())).get(b"content-type", b"")
        is_stream = content_type.startswith(b"text/event-stream")

    async def end(error: BaseException | None) -> bool:
        session.close()
        try:
            await limit.__aexit__(None if error is None else type(error), error, None)
        except TimeoutError as expired:
            error = expired
        if not limit.expired() or not (error is None or isinstance(error, TimeoutError)):
            return False
        reason = session.ended or sessions.EXPIRED
        logger.info("Session ended: %s", reason)
        await _finish_answer(exchange, reason, is_stream=is_stream)
        return True

    await limit.__aenter__()
    exchange.at_start(note)
    exchange.at_end(end)
    session.take_over(scope)
    if scope["type"] == "websocket":
        exchange.receive = _checked(session, exchange.receive)


def _checked(session: sessions.Session, receive: Receive) -> Receive:
    """Check the session before each command of a WebSocket."""

    async def receive_checked() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and await session.is_over():
            # Until the timer of the session cancels this task.
            await asyncio.get_running_loop().create_future()
        return message

    return receive_checked


async def _finish_answer(exchange: Exchange, reason: str, *, is_stream: bool) -> None:
    """End an incomplete answer so that the client does not take it for complete."""
    if exchange.is_complete:
        return
    if exchange.scope["type"] == "websocket":
        close = {"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason}
        await exchange.answer(close)
    elif not exchange.status:
        headers = {"WWW-Authenticate": "Bearer"}
        response = JSONResponse({"detail": reason}, 401, headers)
        await response(exchange.scope, exchange.receive, exchange.answer)
    elif is_stream:
        error = orjson.dumps({"error": "SessionEnded", "message": reason})
        body = b"event: error\r\ndata: " + error + b"\r\n\r\n"
        await exchange.answer({"type": "http.response.body", "body": body})
    # Any other answer stays incomplete, and the server closes the connection.
