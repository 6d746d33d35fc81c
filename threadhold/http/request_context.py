"""Request context: user, id and gate of each request, and its span if traces are on."""

import re
import time
import uuid
from typing import Any

from starlette.types import Message, Scope

from langgraph_runtime_sql import process
from langgraph_runtime_sql.gate.writes import in_client_request
from langgraph_runtime_sql.telemetry import tracing
from langgraph_runtime_sql.tenancy.scope import as_caller
from threadhold.http import route_names
from threadhold.http.layers import Exchange

HEADER = b"x-request-id"
# Others could forge lines of logs, or make them large.
_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")


class RequestContext:
    """Close the gate around a client's request. Return its `X-Request-ID`, accepted or made.

    `langgraph_api` keeps it with the runs of the request, whose log lines carry it.
    """

    def __init__(self) -> None:
        from langgraph_api.logging import set_logging_context
        from langgraph_api.utils import AuthContext

        self._user, self._log = AuthContext, set_logging_context

    async def __call__(self, exchange: Exchange) -> None:
        # `langgraph_api` leaves the user of a request behind, as whom a later request of the same
        # task would act, such as one of a host that calls the platform in its own process.
        exchange.after(self._user.set, self._user.get())
        exchange.enter(in_client_request())
        scope = exchange.scope
        if scope["type"] != "http":
            return
        headers = [each for each in scope["headers"] if each[0] != HEADER]
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        request_id = given if _ID.fullmatch(given) else str(uuid.uuid4()).encode()
        # In place: layers outside of this read the user and the route from the same scope.
        scope["headers"] = [*headers, (HEADER, request_id)]
        if "/runs" in scope["path"] or "/threads" in scope["path"]:
            # As the middleware of `langgraph_api` for ids does: its runs and log lines have them.
            scope["request_start_time_ms"] = int(time.time() * 1000)
            self._log({"request_id": request_id.decode()})

        async def name(message: Message) -> None:
            named = [each for each in message.get("headers", ()) if each[0] != HEADER]
            message["headers"] = [*named, (HEADER, request_id)]

        exchange.at_start(name)
        if tracing.is_on():
            _trace(exchange, request_id)


def _trace(exchange: Exchange, request_id: bytes) -> None:
    """Let the rest of the request be a span."""
    from opentelemetry.trace import use_span

    scope = exchange.scope
    span = _span(scope, request_id)

    def end() -> None:
        # The path itself may hold what a user typed.
        span.set_attribute("url.path", route_names.shown(scope))
        route = scope.get("route")
        path = getattr(route, "path", None)
        if path is not None:
            span.update_name(f"{scope['method']} {path}")
            span.set_attribute("http.route", path)
        span.set_attribute("http.response.status_code", exchange.status)
        span.end()

    exchange.after(end)
    exchange.enter(use_span(span, record_exception=False, set_status_on_exception=False))


async def user_scope(exchange: Exchange) -> None:
    """Give a request the scope of its user, also a request of a graph to its own server."""
    if process.configuration().options.tenant_key is not None:
        exchange.enter(as_caller())


def _span(scope: Scope, request_id: bytes) -> Any:
    names = ("traceparent", "tracestate")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return tracing.request_span(
        scope["method"],
        {name: headers[name] for name in names if name in headers},
        {
            "http.request.method": scope["method"],
            "threadhold.request.id": request_id.decode("latin-1"),
        },
    )
