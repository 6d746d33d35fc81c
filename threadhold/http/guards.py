"""Guards: install the request limits and error handlers into the stock application."""

from collections.abc import Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from threadhold.http import json_limits, validation
from threadhold.http.body_limits import BodyLimit, FrameLimit, JsonLimit
from threadhold.http.error_boundary import ErrorBoundary, JsonErrors
from threadhold.http.error_handlers import HANDLERS, unwrap_rejection
from threadhold.http.origins import ForeignOrigins, RefusedOrigins
from threadhold.http.public_url import RelativeRedirects
from threadhold.http.query_check import QueryCheck


def install(
    app: Starlette,
    *,
    max_body_bytes: int,
    body_timeout_seconds: float,
    limits: json_limits.Limits,
    private_network: bool,
) -> None:
    """Install the guards into `app`, before it serves its first request.

    Args:
        app: The stock application.
        max_body_bytes: Larger request bodies get a 413.
        body_timeout_seconds: Later request bodies get a 408.
        limits: Limits of JSON bodies and WebSocket frames.
        private_network: Let public websites that CORS allows reach a private address.
    """
    _limit_json(app.router.routes, limits)
    cors: Any = CORSMiddleware
    options: dict[str, Any] = {}
    for middleware in app.user_middleware:
        if middleware.cls is cors:
            # The stock switch adds the header, but Starlette still refuses the preflight.
            middleware.kwargs["allow_private_network"] = private_network
            options = middleware.kwargs
    # Outside of CORS, which answers preflights itself.
    app.add_middleware(RefusedOrigins, cors=options)
    app.add_middleware(RelativeRedirects)
    app.add_middleware(QueryCheck)
    # Inside CORS (the last is innermost), so that browsers may read these answers.
    app.user_middleware += [
        Middleware(ForeignOrigins, cors=options),
        Middleware(JsonErrors),
        Middleware(ErrorBoundary),
        Middleware(BodyLimit, limit=max_body_bytes, seconds=body_timeout_seconds),
        Middleware(FrameLimit, limit=max_body_bytes, limits=limits),
    ]
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    stock: Any = app.exception_handlers[HTTPException]
    app.add_exception_handler(HTTPException, unwrap_rejection(stock))


def _limit_json(routes: Iterable[BaseRoute], limits: json_limits.Limits) -> None:
    """Put `JsonLimit` around each route of the API, inside of its authentication.

    A project's own routes may take bodies that are not JSON.
    """
    from langgraph_api.route import ApiRoute

    for route in routes:
        if isinstance(route, ApiRoute):
            json_rpc = validation.is_json_rpc(route.path)
            route.app = JsonLimit(route.app, limits=limits, json_rpc=json_rpc)
        else:
            _limit_json(getattr(route, "routes", None) or (), limits)
