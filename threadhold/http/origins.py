"""Origins: refuse writes that a website sends through its visitors' browsers."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Headers that a page of another origin can only send after a CORS preflight.
PROOF = frozenset({b"authorization", b"x-api-key"})


class ForeignOrigins:
    """Refuse writes from web origins that CORS does not allow.

    A browser sends simple requests and opens WebSockets to any address without a preflight;
    CORS only keeps the page from reading the answer. If a request needs no credentials, or
    the browser adds them (cookies), any website could start runs. Requests with a token pass:
    a page can only send one if CORS allows it.

    Args:
        app: The application.
        cors: Options of Starlette's CORS middleware, which say what origins are allowed.
    """

    def __init__(self, app: ASGIApp, *, cors: Mapping[str, Any]) -> None:
        self._app = app
        self._is_allowed = CORSMiddleware(app, **cors).is_allowed_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self._foreign(scope)
        if origin is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "Origin not allowed"})
        else:
            detail = (
                f"Pages of {origin} may not write here. If they are yours, name the origin in "
                "http.cors.allow_origins of langgraph.json"
            )
            await JSONResponse({"detail": detail}, 403)(scope, receive, send)

    def _foreign(self, scope: Scope) -> str | None:
        """Return the origin of a write that must be refused, else None."""
        writes = scope["type"] == "websocket" or (
            scope["type"] == "http" and scope["method"] not in SAFE
        )
        if not writes:
            return None
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin")
        if origin is None or headers.keys() & PROOF or self._is_allowed(origin):
            return None
        # x-forwarded-host is the public name behind a proxy. A page can set neither header.
        hosts = {headers.get(b"host"), headers.get(b"x-forwarded-host")}
        return None if _authority(origin) in hosts else origin


def _authority(origin: str) -> Any:
    """Return host and port of an origin, or the text itself (`null`) if it has none."""
    try:
        return urlsplit(origin).netloc or origin
    except ValueError:
        return origin
