"""Origins: which websites may have their visitors' browsers write here."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# What a page of another origin can only send once CORS has allowed it.
PROOF = frozenset({b"authorization", b"x-api-key"})


class ForeignOrigins:
    """Refuses writes that a website has a browser send without CORS allowing it.

    A browser sends some requests to any address without asking there first, and opens
    WebSockets everywhere; CORS only keeps the page from reading the answer. So where
    a request needs no credentials, or the browser adds them by itself, any website could
    start runs. Whoever sends a token is past that: no page can, unless CORS lets it.

    Args:
        app: The application.
        allow_origins: Those that CORS allows; `*` for all.
        allow_origin_regex: The same, as a regular expression.
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
        """The origin that must not do this, if it is one."""
        writes = scope["type"] == "websocket" or (
            scope["type"] == "http" and scope["method"] not in SAFE
        )
        if not writes:
            return None
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin")
        if origin is None or headers.keys() & PROOF or self._is_allowed(origin):
            return None
        # Behind a proxy, its own name for the host. A page can set neither header.
        hosts = {headers.get(b"host"), headers.get(b"x-forwarded-host")}
        return None if _authority(origin) in hosts else origin

    def _is_allowed(self, origin: str) -> bool:
        named = "*" in self._allowed or origin in self._allowed
        return named or (self._pattern is not None and bool(self._pattern.fullmatch(origin)))


def _authority(origin: str) -> Any:
    """Host and port of an origin; of `null`, nothing that a host could be."""
    try:
        return urlsplit(origin).netloc or origin
    except ValueError:
        return origin
