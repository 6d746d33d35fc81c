"""Authentication: adapt the stock refusals, and protect the metrics route."""

import functools
from collections.abc import Iterator

from starlette.applications import Starlette
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from threadhold.http.metrics_access import MetricsAccess, MetricsGuard
from threadhold.serving import metrics_text

METRICS = "/metrics"


def install(app: Starlette, *, metrics: MetricsAccess) -> None:
    """Let refusals carry headers, and protect the metrics.

    Args:
        app: The stock application.
        metrics: Who may read `/metrics`.
    """
    for layer in _authentication_layers(app):
        layer.on_error = refused
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
    # All layers share one backend.
    layer = next(_authentication_layers(app))
    return type(layer)(RequirePermission(inner, permission), layer.backend, refused)


def refused(conn: HTTPConnection, error: AuthenticationError) -> Response:
    """Answer a failed authentication: 401 or 403, with the headers of the project's handler."""
    status = 401 if getattr(error, "status_code", None) == 401 else 403
    headers = getattr(error, "headers", None)
    return JSONResponse({"detail": str(error)}, status, dict(headers) if headers else None)


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
            detail = f"This needs the permission {self._permission!r}"
            await JSONResponse({"detail": detail}, 403)(scope, receive, send)


def _authentication_layers(app: Starlette) -> Iterator[AuthenticationMiddleware]:
    """Yield the authentication middleware of each route and mount of the stock application."""
    for route in app.router.routes:
        layer = route.app if isinstance(route, Mount | Route) else None
        while layer is not None:
            if isinstance(layer, AuthenticationMiddleware):
                yield layer
            layer = getattr(layer, "app", None)
