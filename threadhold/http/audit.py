"""Audit: name the origin of each request's changes, record refusals, and offer the log to operators."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message
from starlette.types import Scope as AsgiScope

from langgraph_runtime_sql import process, request_context, runtime
from langgraph_runtime_sql.audit import listing, recorder
from langgraph_runtime_sql.audit.entry import DECISIONS, POLICY, REFUSED, Actor, Note
from langgraph_runtime_sql.audit.listing import Wanted
from langgraph_runtime_sql.audit.refusals import Refusals
from langgraph_runtime_sql.tenancy import scope, tenants
from threadhold.http import authentication, route_names
from threadhold.http.layers import Exchange

PATH = "/audit"
MAX_PAGE = 1000
# A 404 may mean that the object is another user's. Postgres cannot tell: it hides such rows.
REFUSALS = (401, 403, 404, 429)
# The parameters of paths that are ids, the closest object first.
_OBJECTS = {
    "run_id": "run",
    "cron_id": "cron",
    "thread_id": "thread",
    "assistant_id": "assistant",
}


async def _write(actor: Actor, note: Note) -> None:
    await recorder.write(runtime.current().database, actor, note)


refusals = Refusals(_write)
"""The refusals of this process; there is one platform."""


def install(app: Starlette, *, permission: str | None) -> None:
    """Offer the log.

    Args:
        app: The stock application.
        permission: Permission that the route `/audit` requires. None: there is no route.
    """
    if permission is not None:
        route = Route(PATH, entries, methods=["GET"])
        route.app = authentication.protect(app, route.app, permission)
        app.router.routes.insert(0, route)


async def audit_trail(exchange: Exchange) -> None:
    """Name the origin of changes, and record a refused request before it is answered."""
    if process.configuration().options.audit_log:
        origin = _StockRequest(exchange.scope, request_context.origin.get())
        token = request_context.origin.set(origin)
        exchange.after(request_context.origin.reset, token)
        exchange.at_start(origin.record)


class Origin(ABC):
    """A request of a client, as the audit log names it. Calling it returns its `Actor`, without user.

    Args:
        scope: The ASGI scope.
    """

    def __init__(self, scope: AsgiScope) -> None:
        self._scope = scope
        # The route's template counts from the mount's prefix.
        self._root = str(scope.get("root_path", ""))
        self._is_answered = False
        # The statuses of refusals that requests inside of this one have entered already.
        self._entered_inside: set[int] = set()

    @abstractmethod
    def __call__(self) -> Actor: ...

    def caller(self) -> Actor:
        """Return the origin with its user, if the request was authenticated."""
        return recorder.of_scope(self(), self._scope)

    @abstractmethod
    def refusal(self, status: int) -> Note | None:
        """Return the note of an answer, or None if it refuses nothing."""

    async def record(self, message: Message) -> None:
        """Enter the refusal that an answer is, before it is sent."""
        status = _status(message)
        if status is not None and not self._is_answered:
            self._is_answered = True
            note = None if status in self._entered_inside else self.refusal(status)
            if note is not None and process.configuration().options.audit_log:
                await refusals.record(self.caller(), note)
        # A WebSocket that was accepted is not refused by its end.
        self._is_answered = self._is_answered or message["type"] == "websocket.accept"

    def enter_inside(self, status: int) -> None:
        """Note that a request inside of this one has entered its refusal under this one's name."""
        self._entered_inside.add(status)

    def _client(self) -> str | None:
        client = self._scope.get("client")
        return client[0] if client else None

    def _method(self) -> str:
        return str(self._scope.get("method", "WEBSOCKET"))

    def _named(self) -> str:
        """Return the path below the mount, with names in place of the values of parameters."""
        values = self._scope.get("path_params", {})
        names = {str(value): name for name, value in values.items()}
        path = str(self._scope["path"]).removeprefix(self._root)
        return "/".join(f"{{{names[p]}}}" if p in names else p for p in path.split("/"))


class HostRequest(Origin):
    """A request that a route of the host answers outside of the platform."""

    def __call__(self) -> Actor:
        # Without a route, the path is the client's own text.
        route = self._named() if "endpoint" in self._scope else None
        return Actor(address=self._client(), method=self._method(), route=route)

    def refusal(self, status: int) -> Note | None:
        if status not in REFUSALS:
            return None
        return Note(*_object(self._scope.get("path_params", {})), "refuse", REFUSED, status=status)


async def refuse(scope: AsgiScope, status: int) -> None:
    """Enter that the platform has refused a request of a host's own route."""
    origin = HostRequest(scope)
    note = origin.refusal(status)
    if note is not None and process.configuration().options.audit_log:
        await refusals.record(origin.caller(), note)


class _StockRequest(Origin):
    """A request to the stock application. The router completes its scope later.

    Args:
        scope: The ASGI scope.
        outer: The origin of the request in which the server calls itself, if there is one.
    """

    def __init__(self, scope: AsgiScope, outer: Callable[[], Actor] | None) -> None:
        super().__init__(scope)
        self._outer = outer
        self._endpoint = scope.get("endpoint")
        self._entered = dict(scope)

    def __call__(self) -> Actor:
        if self._outer is not None:
            # The route that the client has called.
            return self._outer()
        return Actor(address=self._client(), method=self._method(), route=self._route())

    def refusal(self, status: int) -> Note | None:
        policy = self._scope.get("policy_refusal")
        if policy is None and status not in REFUSALS:
            return None
        if status == 404 and policy is None and not self._is_routed:
            return None
        if isinstance(self._outer, Origin):
            self._outer.enter_inside(status)
        action, decision = (policy, POLICY) if policy is not None else ("refuse", REFUSED)
        return Note(*_object(self._scope.get("path_params", {})), action, decision, status=status)

    @property
    def _is_routed(self) -> bool:
        endpoint = self._scope.get("endpoint")
        return endpoint is not self._endpoint and inspect.isroutine(endpoint)

    def _route(self) -> str | None:
        if not self._is_routed:
            # Refused before routing. The path itself is the client's own text.
            return route_names.template(self._scope["app"].router.routes, self._entered)
        return self._named()


def _object(values: Mapping[str, Any]) -> tuple[str | None, UUID | None]:
    """Return the kind and the id of the object that a route names."""
    for name, kind in _OBJECTS.items():
        if name in values:
            try:
                return kind, UUID(str(values[name]))
            except ValueError:
                return kind, None
    return None, None


def _status(message: Message) -> int | None:
    if message["type"] in ("http.response.start", "websocket.http.response.start"):
        return int(message["status"])
    # Before it accepts a WebSocket, a server refuses it so; the client sees a 403.
    return 403 if message["type"] == "websocket.close" else None


async def entries(request: Request) -> JSONResponse:
    """Answer with the audit entries of the operator's tenant, the newest first."""
    try:
        wanted = _wanted(request.query_params)
    except ValueError as error:
        return JSONResponse({"detail": str(error)}, 422)
    key = process.configuration().options.tenant_key
    visible: scope.Scope = scope.EVERYTHING
    if key is not None:
        tenant = tenants.of_user(request.user, key)
        if tenant is None:
            return JSONResponse({"detail": "This user has no tenant"}, 403)
        wanted, visible = replace(wanted, tenant=tenant), scope.TenantScope(tenant)
    with scope.within(visible):
        found = await runtime.current().database.search(
            lambda conn: listing.find(conn, wanted), listing.ADVICE
        )
    return JSONResponse(found)


def _wanted(query: Mapping[str, str]) -> Wanted:
    """Return the conditions of a query.

    Raises:
        ValueError: a parameter is unknown or has an invalid value.
    """
    texts = ("user", "decision", "action", "kind", "object_id")
    dates, numbers = ("since", "until"), ("before", "limit")
    unknown = [name for name in query if name not in (*texts, *dates, *numbers)]
    if unknown:
        raise ValueError(f"Unknown parameter {unknown[0]!r}")
    if query.get("decision", POLICY) not in DECISIONS:
        raise ValueError(f"`decision` must be one of {', '.join(DECISIONS)}")
    values: dict[str, Any] = {name: query[name] for name in texts if name in query}
    values |= {name: parse_date(name, query[name]) for name in dates if name in query}
    values |= {name: _number(name, query[name]) for name in numbers if name in query}
    if not 1 <= values.get("limit", 1) <= MAX_PAGE:
        raise ValueError(f"`limit` must be from 1 to {MAX_PAGE}")
    return Wanted(**values)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"`{name}` must be a whole number, not {text!r}")
    return int(text)


def parse_date(name: str, text: str) -> datetime:
    """Parse a date in ISO format; without an offset it is in UTC.

    Raises:
        ValueError: it is no date.
    """
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f"`{name}` must be a date such as 2030-01-31T12:00, not {text!r}"
        ) from error
    return date if date.tzinfo else date.replace(tzinfo=UTC)
