"""Error boundary: middleware that answers every error with JSON `{"detail": ...}`."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold.http.answer_status import AnswerStatus
from threadhold.http.error_handlers import unexpected

_BODY_HEADERS = (b"content-type", b"content-length")


class ErrorBoundary:
    """Log an unhandled exception and answer 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = AnswerStatus(send)
        try:
            await self._app(scope, receive, answer)
        except ClientDisconnect:
            return
        except Exception as error:
            # After the answer has begun, only a broken connection shows that it is incomplete.
            if answer.status:
                raise
            response = await unexpected(Request(scope), error)
            await response(scope, receive, send)


class JsonErrors:
    """Turn plain-text error answers into JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
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

        await self._app(scope, receive, send_as_json)


def _is_text_error(message: Message) -> bool:
    media_type = Headers(scope=message).get("content-type") or "text/plain"
    return bool(message["status"] >= 400 and media_type.startswith("text/plain"))
