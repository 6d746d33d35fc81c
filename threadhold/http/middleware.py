"""Middleware: everything that stands around a request, in its order, from the outside in.

Each list below is one layer, and so one ASGI app. Between the layers stand Starlette's and
`langgraph_api`'s own: errors and the router of a host, CORS, metrics of requests, exception handlers and
authentication.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, WebSocketRoute

from threadhold.http import (
    idempotency,
    json_limits,
    origins,
    rate_limits,
    session_guard,
    validation,
)
from threadhold.http.access_log import access_log
from threadhold.http.audit import audit_trail
from threadhold.http.body_limits import BodyLimit, FrameLimit, JsonLimit
from threadhold.http.compression import compress
from threadhold.http.error_boundary import answer_cancelled, error_boundary, json_errors
from threadhold.http.layers import Layer, Step
from threadhold.http.origins import ForeignOrigins, RefusedOrigins
from threadhold.http.public_url import relative_redirects
from threadhold.http.query_check import check_query
from threadhold.http.request_context import RequestContext, user_scope
from threadhold.http.request_turns import RequestTurns

LEFT_OUT = (
    # `RequestContext` gives the ids of requests.
    "langgraph_api.middleware.request_id.RequestIdMiddleware",
    # Cancels all runs, ahead of authentication and audit log. `POST /runs/cancel` does it behind them.
    "langgraph_api.operator_routes.OperatorRoutesMiddleware",
)
"""Stock middleware that is not installed, by name, because not every version has all."""


def around_host() -> list[Step]:
    """Return the steps around the app of `threadhold.host`."""
    return [
        # Whatever is cancelled inside is answered.
        answer_cancelled,
        # A burst of requests costs others nothing but their arrival.
        RequestTurns(),
        # The time in the log is that of the work, without the wait for a turn.
        access_log,
        # The redirects of the host's own router, too.
        relative_redirects,
    ]


def around_cors(cors: Mapping[str, Any]) -> list[Step]:
    """Return the steps around the stock application.

    Args:
        cors: Options of its CORS middleware, which answers preflights itself.
    """
    return [
        # Before all work on the request. Around our own host it has its turn already.
        RequestTurns(),
        # Outside of all that reads answers or writes their headers.
        compress,
        # Outside of all that refuses, because refusals are recorded.
        audit_trail,
        # The answers of everything inside have the id of the request, and nothing inside writes ungated.
        RequestContext(),
        # Everything inside ends with the token of the request.
        session_guard.guard,
        # Before stock code reads query and headers.
        check_query,
        # Around our own host it is done there.
        relative_redirects,
        # CORS would answer their preflights without a line in the log.
        RefusedOrigins(cors),
        # Last, because nothing outside reads rows for the user.
        user_scope,
    ]


def inside_cors(
    cors: Mapping[str, Any], *, max_body_bytes: int, seconds: float, limits: json_limits.JsonLimits
) -> list[Step]:
    """Return the steps between CORS and the exception handlers: browsers may read these answers.

    Args:
        cors: Options of the CORS middleware.
        max_body_bytes: Larger request bodies and frames are refused.
        seconds: The time for a request body.
        limits: Limits of frames.
    """
    return [
        # Before anything is done for a page that may not write.
        ForeignOrigins(cors),
        # Outside of the answers that it replaces: one that is held back has not begun.
        error_boundary,
        json_errors,
        # Inside of the error boundary, because a client may leave while its body is read.
        BodyLimit(limit=max_body_bytes, seconds=seconds),
        FrameLimit(limit=max_body_bytes, limits=limits),
    ]


def around_route(
    route: Any, limits: json_limits.JsonLimits, reads: Mapping[str, Any]
) -> list[Step]:
    """Return the steps of a route of the API, inside of its authentication.

    Args:
        route: The route.
        limits: Limits of JSON bodies.
        reads: By path, the applications of the routes that answer `GET`.
    """
    if isinstance(route, WebSocketRoute):
        return rate_limits.steps(route.path)
    writes = set(route.methods or ()) - origins.SAFE
    return [
        # Before a body is read for a user beyond the limits.
        *rate_limits.steps(route.path),
        # A repetition is recognized by its body, whatever is in it.
        *idempotency.steps(route.path, route.methods or (), reads),
        # Last, before the body is parsed.
        *([JsonLimit(limits, json_rpc=validation.is_json_rpc(route.path))] if writes else []),
    ]


def install(
    app: Starlette,
    *,
    max_body_bytes: int,
    body_timeout_seconds: float,
    limits: json_limits.JsonLimits,
    private_network: bool,
) -> None:
    """Put the layers into the stock application, before it serves its first request.

    Args:
        app: The stock application.
        max_body_bytes: Larger request bodies get a 413.
        body_timeout_seconds: Later request bodies get a 408.
        limits: Limits of JSON bodies and WebSocket frames.
        private_network: Let public websites that CORS allows reach a private address.
    """
    stock: list[Any] = [each for each in app.user_middleware if _name(each.cls) not in LEFT_OUT]
    cors: Mapping[str, Any] = {}
    for each in stock:
        if each.cls is CORSMiddleware:
            # The stock switch adds the header, but Starlette still refuses the preflight.
            each.kwargs["allow_private_network"] = private_network
            cors = each.kwargs
    inner = inside_cors(
        cors, max_body_bytes=max_body_bytes, seconds=body_timeout_seconds, limits=limits
    )
    app.user_middleware = [
        Middleware(Layer, around_cors(cors)),
        *stock,
        Middleware(Layer, inner),
    ]
    routes = list(_api_routes(app.router.routes))
    reads = {
        each.path: each.app for each in routes if "GET" in (getattr(each, "methods", None) or ())
    }
    for route in routes:
        if steps := around_route(route, limits, reads):
            route.app = Layer(route.app, steps)


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"


def _api_routes(routes: Iterable[BaseRoute]) -> Iterator[Any]:
    """Yield the routes of the API. A project's own may take bodies that are not JSON."""
    from langgraph_api.route import ApiRoute

    for route in routes:
        if isinstance(route, ApiRoute | WebSocketRoute):
            yield route
        else:
            yield from _api_routes(getattr(route, "routes", None) or ())
