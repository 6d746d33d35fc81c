"""Authentication: check each request once, adapt the stock refusals, and protect the metrics route."""

import functools
from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    UnauthenticatedUser,
)
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from threadhold.http import metrics_text
from threadhold.http.metrics_access import MetricsAccess, MetricsGuard

METRICS = "/metrics"
_CHECKED = "threadhold.checked"
# Headers that differ when a request is passed on with another body, to another path.
_OF_BODY = (b"content-length", b"content-type", b"last-event-id", b"x-request-id")


def install(app: Starlette, *, metrics: MetricsAccess) -> None:
    """Check each request once, let refusals carry headers, and protect the metrics.

    Args:
        app: The stock application.
        metrics: The callers that may read `/metrics`.
    """
    global _app, _backend
    _app = app
    for layer in _authentication_layers(app):
        # All layers share one.
        _backend = OncePerRequest(layer.backend) if _backend is None else _backend
        layer.backend, layer.on_error = _backend, refused
    for route in app.router.routes:
        if isinstance(route, Route) and route.path == METRICS:
            answered = metrics_text.Metrics(route.app)
            route.app = MetricsGuard(answered, metrics, functools.partial(protect, app))


def protect(app: Starlette, inner: ASGIApp, permission: str) -> ASGIApp:
    """Return `inner` behind the authentication of the stock application `app`.

    Args:
        app: The stock application.
        inner: An application of a route.
        permission: Permission that its users need.
    """
    layer = next(_authentication_layers(app))
    return type(layer)(RequirePermission(inner, permission), layer.backend, refused)


def refused(conn: HTTPConnection, error: AuthenticationError) -> Response:
    """Answer a failed authentication: 401 or 403, with the headers of the project's handler."""
    status, headers = status_of(error)
    return JSONResponse({"detail": str(error)}, status, headers)


def status_of(error: AuthenticationError) -> tuple[int, dict[str, str] | None]:
    """Return the status and the headers of the answer to a failed authentication."""
    headers = getattr(error, "headers", None)
    status = 401 if getattr(error, "status_code", None) == 401 else 403
    return status, dict(headers) if headers else None


class OncePerRequest(AuthenticationBackend):
    """Ask the project's authentication once for each request, also where several layers ask."""

    def __init__(self, backend: AuthenticationBackend) -> None:
        self._backend = backend

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, Any] | None:
        known, caller = conn.scope.get(_CHECKED), _caller(conn.scope)
        # A host may pass a request on as another caller.
        if known is not None and known[0] == caller:
            found: tuple[AuthCredentials, Any] | None = known[1]
            return found
        found = await self._backend.authenticate(conn)
        conn.scope[_CHECKED] = caller, found
        return found


_app: Starlette | None = None
_backend: OncePerRequest | None = None
"""Those of this process; there is one platform."""


def is_inside(scope: Scope) -> bool:
    """Return whether the stock application handles a request. Otherwise its `user` is the host's."""
    return _app is not None and scope.get("app") is _app


async def authenticate(scope: Scope) -> tuple[AuthCredentials, Any]:
    """Return the credentials and the user of a request.

    Raises:
        AuthenticationError: the project's authentication refuses it.
    """
    found = None if _backend is None else await _backend.authenticate(HTTPConnection(scope))
    return (AuthCredentials(), UnauthenticatedUser()) if found is None else found


def _caller(scope: Scope) -> tuple[Any, ...]:
    """Return what tells the caller of a request."""
    query = scope.get("query_string", b"")
    return query, *(each for each in scope["headers"] if each[0].lower() not in _OF_BODY)


def needs(permission: str) -> str:
    """Return the refusal of a user without a permission."""
    return f"This needs the permission {permission!r}"


class RequirePermission:
    """Answer 403 to users without `permission`."""

    def __init__(self, app: ASGIApp, permission: str) -> None:
        self._app = app
        self._permission = permission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credentials = scope.get("auth")
        if credentials is not None and self._permission in credentials.scopes:
            await self._app(scope, receive, send)
        else:
            refusal = JSONResponse({"detail": needs(self._permission)}, 403)
            await refusal(scope, receive, send)


def _authentication_layers(app: Starlette) -> Iterator[AuthenticationMiddleware]:
    """Yield the authentication middleware of each route and mount of the stock application."""
    for route in app.router.routes:
        layer = route.app if isinstance(route, Mount | Route) else None
        while layer is not None:
            if isinstance(layer, AuthenticationMiddleware):
                yield layer
            layer = getattr(layer, "app", None)
