"""Origins: refuse writes that a website sends through its visitors' browsers."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

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
        allow_origins: Origins that CORS allows; `*` for all.
        allow_origin_regex: Regular expression of further origins that CORS allows.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        allow_origins: Iterable[str] = (),
        allow_origin_regex: str | None = None,
    ) -> None:
        self._app = app
        self._allowed = frozenset(allow_origins)
        self._pattern = re.compile(allow_origin_regex) if allow_origin_regex else None

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

    def _is_allowed(self, origin: str) -> bool:
        named = "*" in self._allowed or origin in self._allowed
        return named or (self._pattern is not None and bool(self._pattern.fullmatch(origin)))


def _authority(origin: str) -> Any:
    """Return host and port of an origin, or the text itself (`null`) if it has none."""
    try:
        return urlsplit(origin).netloc or origin
    except ValueError:
        return origin
