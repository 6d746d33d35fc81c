"""Request context: user, id and gate of each request, and its span if traces are on."""

import re
import uuid
from contextlib import nullcontext
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql.gate.writes import in_client_request
from langgraph_runtime_sql.telemetry import tracing
from threadhold.http import route_names

HEADER = b"x-request-id"
# Others could forge lines of logs, or make them large.
_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")


class RequestContext:
    """Close the gate around a client's request. Return its `X-Request-ID`, accepted or made.

    `langgraph_api` keeps it with the runs of the request, whose log lines carry it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from langgraph_api.utils import AuthContext

        # `langgraph_api` leaves the user of a request behind, as whom a later request of the same
        # task would act, such as one of a host that calls the platform in its own process.
        caller = AuthContext.get()
        try:
            with nullcontext() if scope["type"] == "lifespan" else in_client_request():
                await self._call(scope, receive, send)
        finally:
            AuthContext.set(caller)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [each for each in scope["headers"] if each[0] != HEADER]
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        request_id = given if _ID.fullmatch(given) else str(uuid.uuid4()).encode()
        # In place: layers outside of this read the user and the route from the same scope.
        scope["headers"] = [*headers, (HEADER, request_id)]
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = [each for each in message.get("headers", ()) if each[0] != HEADER]
                message = {**message, "headers": [*named, (HEADER, request_id)]}
            await send(message)

        if not tracing.is_on():
            await self._app(scope, receive, send_with_id)
            return
        span = _span(scope, request_id)
        try:
            from opentelemetry.trace import use_span

            with use_span(span, record_exception=False, set_status_on_exception=False):
                await self._app(scope, receive, send_with_id)
        finally:
            # The path itself may hold what a user typed.
            span.set_attribute("url.path", route_names.shown(scope))
            route = scope.get("route")
            path = getattr(route, "path", None)
            if path is not None:
                span.update_name(f"{scope['method']} {path}")
                span.set_attribute("http.route", path)
            span.set_attribute("http.response.status_code", status)
            span.end()


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
