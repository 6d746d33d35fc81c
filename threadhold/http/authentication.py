"""Authentication at the edges of the stock one: its refusals, and a route it leaves open."""

from collections.abc import Iterator

from starlette.applications import Starlette
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

METRICS = "/metrics"


def install(app: Starlette, *, metrics_permission: str | None) -> None:
    """Let refusals carry headers, and let only some users read the metrics.

    Args:
        app: The stock application.
        metrics_permission: What a user needs to read them; None: anybody may.
    """
    found = list(_authentications(app))
    for authentication in found:
        authentication.on_error = refused
    if metrics_permission is not None:
        for route in app.router.routes:
            if isinstance(route, Route) and route.path == METRICS:
                permitted = Permitted(route.app, metrics_permission)
                # Any of them: they ask the same backend.
                route.app = type(found[0])(permitted, found[0].backend, refused)


def refused(conn: HTTPConnection, error: AuthenticationError) -> Response:
    """The answer to who is not authenticated: 401 with the handler's headers, or 403."""
    status = 401 if getattr(error, "status_code", None) == 401 else 403
    headers = getattr(error, "headers", None)
    return JSONResponse({"detail": str(error)}, status, dict(headers) if headers else None)


class Permitted:
    """Answers 403 to users without `permission`."""

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


def _authentications(app: Starlette) -> Iterator[AuthenticationMiddleware]:
    """Where in the stock application requests are authenticated."""
    for route in app.router.routes:
        layer = route.app if isinstance(route, Mount | Route) else None
        while layer is not None:
            if isinstance(layer, AuthenticationMiddleware):
                yield layer
            layer = getattr(layer, "app", None)
