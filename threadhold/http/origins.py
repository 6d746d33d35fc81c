"""Origins: refuse writes that a website sends through its visitors' browsers."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from threadhold.http.layers import Exchange

logger = logging.getLogger(__name__)

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Headers that a page of another origin can only send after a CORS preflight.
PROOF = frozenset({b"authorization", b"x-api-key"})


# What the CORS middleware of the host allows. The host's decision counts beside the platform's.
_of_host: list[Callable[[str], bool]] = []
# Origins that were refused, and logged. Websites can name any, so their number is bounded.
_logged_origins: set[str] = set()
MAX_LOGGED_ORIGINS = 100


def respect(middleware: Iterable[Any]) -> None:
    """Allow the origins that the CORS middleware of a host allows.

    Args:
        middleware: The host's middleware.
    """
    _of_host[:] = [
        CORSMiddleware(_nothing, **each.kwargs).is_allowed_origin
        for each in middleware
        if isinstance(each.cls, type) and issubclass(each.cls, CORSMiddleware)
    ]


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for the app of a middleware that only says what is allowed."""


class ForeignOrigins:
    """Refuse writes from web origins that CORS does not allow.

    A browser sends simple requests and opens WebSockets to any address without a preflight;
    CORS only keeps the page from reading the answer. If a request needs no credentials, or
    the browser adds them (cookies), any website could start runs. Requests with a token pass:
    a page can only send one if CORS allows it.

    Args:
        cors: Options of Starlette's CORS middleware, which say what origins are allowed.
    """

    def __init__(self, cors: Mapping[str, Any]) -> None:
        self._is_named = CORSMiddleware(_nothing, **cors).is_allowed_origin

    async def __call__(self, exchange: Exchange) -> ASGIApp | None:
        origin = self._foreign(exchange.scope)
        if origin is None:
            return None
        if exchange.scope["type"] == "websocket":
            return WebSocketClose(1008, "Origin not allowed")
        detail = (
            f"Pages of {origin} may not write here. If they are yours, name the origin in "
            "http.cors.allow_origins of langgraph.json"
        )
        return JSONResponse({"detail": detail}, 403)

    def _is_allowed(self, origin: str) -> bool:
        return self._is_named(origin) or any(allows(origin) for allows in _of_host)

    def _foreign(self, scope: Scope) -> str | None:
        """Return the origin of a write that must be refused, else None."""
        if scope["type"] == "http" and scope["method"] in SAFE:
            return None
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin")
        if origin is None or headers.keys() & PROOF or self._is_allowed(origin):
            return None
        return None if _is_own(origin, headers) else origin


class RefusedOrigins:
    """Log each web origin that CORS refuses, once, with the setting that allows it.

    Browsers tell the page's developer only that the request failed. It stands outside of CORS,
    which answers preflights itself.

    Args:
        cors: Options of Starlette's CORS middleware, which say what origins are allowed.
    """

    def __init__(self, cors: Mapping[str, Any]) -> None:
        self._is_named = CORSMiddleware(_nothing, **cors).is_allowed_origin

    async def __call__(self, exchange: Exchange) -> None:
        for name, value in exchange.scope["headers"]:
            if name == b"origin":
                self._check(value.decode("latin-1"), exchange.scope)

    def _check(self, origin: str, scope: Scope) -> None:
        if (
            origin in _logged_origins
            or len(_logged_origins) >= MAX_LOGGED_ORIGINS
            or self._is_named(origin)
        ):
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if any(allows(origin) for allows in _of_host) or _is_own(origin, headers):
            return
        _logged_origins.add(origin)
        logger.warning(
            "Refused the web origin %s. To allow its pages, name it in CORS_ALLOW_ORIGINS, or in "
            "http.cors.allow_origins of langgraph.json",
            "".join(each if each.isprintable() else "?" for each in origin[:200]),
        )


def _is_own(origin: str, headers: Mapping[bytes, str]) -> bool:
    """Return whether a page of this server itself sends the request."""
    # x-forwarded-host is the public name behind a proxy. A page can set neither header.
    hosts = {headers.get(b"host"), headers.get(b"x-forwarded-host")}
    return _authority(origin) in hosts


def _authority(origin: str) -> Any:
    """Return host and port of an origin, or the text itself (`null`) if it has none."""
    try:
        return urlsplit(origin).netloc or origin
    except ValueError:
        return origin
