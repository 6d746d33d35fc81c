"""Product routes: middleware that answers the routes of the products.

The routes send their own requests to the platform on behalf of the caller.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from server.project import is_our_graph
from server.routes import (
    ask,
    candidates,
    closed,
    description,
    diagnosis,
    documents,
    export,
    learner,
    research,
    revocations,
    runs,
    threads,
    tutor,
)
from server.routes.forwarding import Request
from threadhold import hooks
from threadhold.gate import client_request
from threadhold.host import (
    NO_IDEMPOTENCY_KEY,
    OPENAPI_PATHS,
    ErrorBoundary,
    Limits,
    find_problem,
    note_client_request,
    route_names,
    too_large,
)

Handler = Callable[[Request], Awaitable[None]]
PolicyHandler = Callable[[Request, frozenset[str]], Awaitable[None]]

DEFAULT_LIMITS = Limits()

POLICY: dict[str, PolicyHandler] = {
    "POST /threads/resolve": threads.resolve,
    "POST /threads/{thread_id}/resume": threads.resume,
    "POST /threads/search": threads.search,
    "POST /threads/count": threads.search,
    "POST /runs": runs.start,
    "POST /runs/wait": runs.start,
    "POST /runs/stream": runs.start,
    "POST /threads/{thread_id}/runs/crons": closed.cron,
    "POST /a2a/{assistant_id}": closed.message,
    "POST /a2a/{assistant_id}/": closed.message,
}
"""The routes of the thread policy: method and path below the mount, and the handler."""

PRODUCTS: dict[str, dict[str, Handler]] = {
    ask.GRAPH: {**ask.ROUTES, **documents.ROUTES},
    diagnosis.GRAPH: diagnosis.ROUTES,
    export.GRAPH: {**export.ROUTES, **candidates.ROUTES},
    research.GRAPH: research.ROUTES,
    tutor.GRAPH: {**tutor.ROUTES, **learner.ROUTES},
}
"""The routes of each graph of ours, by graph id. A project has them if it serves that graph."""


ONCE_ONLY = (diagnosis.ROUTES["POST /diagnosis/{thread_id}/events"], learner.practise)
"""Handlers that act again if a request is repeated, and so refuse the header `Idempotency-Key`."""

IDENTITY: Mapping[str, Handler] = revocations.ROUTES
"""The routes of a project with our authentication, whose tokens can be revoked."""


def offered(graphs: Mapping[str, Any]) -> dict[str, Handler]:
    """Return the product routes of a project.

    Args:
        graphs: The section `graphs` of the project's configuration.
    """
    return {
        route: handler
        for graph, routes in PRODUCTS.items()
        if is_our_graph(graph, graphs.get(graph))
        for route, handler in routes.items()
    }


class ProductRoutes:
    """Middleware around the platform: answer the product routes and pass on all other requests.

    The handlers send requests to the platform with the headers of the caller. Therefore the
    platform authenticates and authorizes them. The routes of `POLICY` are passed on if the
    project's hooks are not the thread policy.

    Args:
        app: The platform.
        max_body_bytes: Maximum size of a body, in bytes. Larger bodies are refused with 413.
        limits: Limits of JSON bodies. Bodies that exceed them are refused with 422.
        products: Product routes, as `offered` returns them.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_body_bytes: int,
        products: Mapping[str, Handler],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._app = app
        self._limits = limits
        self._max_body_bytes = max_body_bytes
        self._policy = _Table(POLICY)
        self._products = _Table(products)
        self._paths = description.paths(products)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler, template, names = self._find(scope)
        if handler is None and scope["type"] == "http":
            # In place: the access log finds here the user that the platform adds.
            scope[OPENAPI_PATHS] = self._paths
        if handler is None:
            await self._app(scope, receive, send)
            return
        route_names.note(scope, template, names)
        # The platform handles its own errors. Errors of the handlers here happen outside of it.
        answer = ErrorBoundary(partial(self._answer, handler, names))
        with client_request(scope, template, names) as request:
            await answer(scope, receive, request.recorded(send))

    async def _answer(
        self, handler: Handler, names: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        limit, is_json = self._max_body_bytes, True
        if handler is documents.upload:
            limit, is_json = documents.largest(), False
            # A large body is read only if the caller may send it.
            probe = await Request(self._app, scope, receive, send, [], True, False).call(
                "POST", "/threads/count", {}
            )
            if probe.status != 200:
                for message in probe.messages:
                    await send(message)
                return
        request = await Request.read(self._app, scope, receive, send, limit=limit)
        request.names = names
        note_client_request(scope, request.body)
        if request.is_too_large:
            await request.refuse(413, {"detail": too_large(limit) if is_json else _large(limit)})
        elif request.is_complete:
            problem = await find_problem(request.body, self._limits) if is_json else None
            if problem is None and handler in ONCE_ONLY and request.header(b"idempotency-key"):
                problem = NO_IDEMPOTENCY_KEY
            if problem is None:
                await handler(request)
            else:
                await request.refuse(422, {"detail": problem})

    def _find(self, scope: Scope) -> tuple[Handler | None, str, dict[str, str]]:
        """Find the handler of a request, its path, and the values of the path's parameters."""
        if scope["type"] != "http":
            return None, "", {}
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        handler, template, names = self._products.find(scope["method"], path)
        if handler is not None:
            return handler, template, names
        policy, template, names = self._policy.find(scope["method"], path)
        settings = getattr(hooks.configured(), "thread_settings", None)
        if policy is None or settings is None or not settings.thread_policy_agents:
            return None, "", {}
        agents = frozenset(settings.thread_policy_agents)
        return partial(policy, agents=agents), template, names


def _large(limit: int) -> str:
    return f"The document is larger than {limit:,} bytes (CHAT_DOCUMENT_MAX_BYTES)"


class _Table:
    """Handlers by method and path."""

    def __init__(self, routes: Mapping[str, Any]) -> None:
        self._routes: dict[str, list[tuple[re.Pattern[str], str, Any]]] = {}
        for route, handler in routes.items():
            method, _, path = route.partition(" ")
            self._routes.setdefault(method, []).append((compile_path(path)[0], path, handler))

    def find(self, method: str, path: str) -> tuple[Any, str, dict[str, str]]:
        """Find the handler, or None, the path of its route, and the values of its parameters."""
        for pattern, template, handler in self._routes.get(method, ()):
            if (found := pattern.fullmatch(path)) is not None:
                return handler, template, found.groupdict()
        return None, "", {}
