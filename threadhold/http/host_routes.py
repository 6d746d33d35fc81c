"""Host routes: routes of the host beside the platform's own, inside of what surrounds those.

They have its CORS, limits of bodies, error answers, ids of requests, gate and audit log. They
authenticate by `users.of`. A route that changes one of the platform's passes the request on.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send

from langgraph_runtime_sql.request_context import request_note
from threadhold.http import idempotency, json_limits, request_body
from threadhold.http.json_limits import JsonLimits
from threadhold.http.request_body import Replaced

Json = Mapping[str, Any]
_NOTHING: Json = {}
LOOPBACK = "/noauth"
"""The root path of the requests that the server sends to itself; no client can choose it."""


@dataclass(frozen=True)
class LargeBody:
    """What a route reads beyond `max_body_bytes`, as soon as it knows who sends it.

    Attributes:
        limit: The largest body, in bytes.
        refusal: What a client is told that sends more.
    """

    limit: int
    refusal: str


@dataclass
class Included:
    """The routes that the host has included.

    Attributes:
        routes: The routes.
        large: Those that take large bodies.
        description: `paths` and `components` of the routes, as OpenAPI has them.
        limits: The limits of JSON bodies.
        rest: The platform's own routes.
    """

    routes: Sequence[BaseRoute] = ()
    large: Sequence[tuple[BaseRoute, LargeBody]] = ()
    description: Json = field(default_factory=dict)
    limits: JsonLimits = field(default_factory=JsonLimits)
    rest: Router | None = None

    def large_body(self, scope: Scope) -> LargeBody | None:
        """Return what the route of a request may read, or None if it is as any other."""
        found = (each for route, each in self.large if route.matches(scope)[0] is Match.FULL)
        return next(found, None)


here = Included()
"""Those of this process; there is one platform."""


def use(
    routes: Iterable[BaseRoute], large: Iterable[tuple[BaseRoute, LargeBody]], described: Json
) -> None:
    """Replace the included routes."""
    here.routes, here.large, here.description = tuple(routes), tuple(large), described


def place(app: Starlette, limits: JsonLimits) -> None:
    """Put the included routes before the routes of the stock application. Repeatable."""
    if here.rest is None:
        here.rest = Router(app.router.routes)
    here.limits = limits
    app.router.routes[:] = [HostRoutes(here.routes), *here.rest.routes]


class HostRoutes(BaseRoute):
    """The included routes, for all requests but those that the server sends to itself.

    Args:
        routes: The routes.
    """

    path = ""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.routes = routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether one of the routes matches a request."""
        # A graph or MCP calls the API's own routes, without authentication.
        if not str(scope.get("root_path", "")).startswith(LOOPBACK):
            for route in self.routes:
                match, child = route.matches(scope)
                if match is Match.FULL:
                    return match, {**child, "route": route}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the matched route answer."""
        await scope["route"].handle(scope, receive, send)


async def read_json(request: Request) -> bytes:
    """Read a body of JSON within the platform's limits.

    Call it after `users.of`, so that the body of a stranger is not read.

    Raises:
        HTTPException: (422) it has too many values or levels; (413) it is too large.
    """
    body = await request.body()
    idempotency.note_client_request(request.scope, body)
    problem = await json_limits.find_problem(body, here.limits)
    if problem is not None:
        request.scope["error_detail"] = problem
        raise HTTPException(422, problem)
    return body


class PassedOn:
    """The platform's own answer to a request, for a route that changes one of the platform's.

    Args:
        request: The request.
        path: Another path below the mount.
        body: Another body.
        note: A note for the hooks, as of `threadhold.hooks.request_note`.

    Attributes:
        refused_by: The name of the hook's refusal, if a hook has refused the request.
    """

    def __init__(
        self,
        request: Request,
        *,
        path: str | None = None,
        body: bytes | None = None,
        note: Json = _NOTHING,
    ) -> None:
        self._request, self._path, self._body, self._note = request, path, body, note
        self.refused_by: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if here.rest is None:
            raise HTTPException(503, "The platform is not running")
        content = await self._request.body() if self._body is None else self._body
        if self._path is not None:
            full = scope.get("root_path", "") + self._path
            # A copy: the log and the audit log name the route that the client has called.
            scope = {**scope, "path": full, "raw_path": full.encode(), "path_params": {}}
        if self._body is not None:
            length = (b"content-length", str(len(content)).encode())
            kept = [each for each in scope["headers"] if each[0].lower() != length[0]]
            scope = {**scope, "headers": [*kept, length]}
        receive = request_body.put(scope, Replaced(content, receive))
        with request_note(**self._note) if self._note else nullcontext():
            await here.rest(scope, receive, send)
        self.refused_by = scope.get("policy_refusal")
