"""OpenAPI: serve `/openapi.json` and `/docs` with the mount prefix as the server URL.

The stock routes describe a server at the root, so under a prefix each "try it" button would
call the host's routes.
"""

import asyncio

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threadhold.http import docs_page

PATHS = "threadhold.openapi_paths"
"""Key of the ASGI scope under which a middleware of the host adds the paths of its own routes."""


def install(app: Starlette, *, page: bool) -> None:
    """Replace the stock routes, if the configuration has them.

    Args:
        app: The stock application.
        page: Whether to serve `/docs`.
    """
    endpoints = {"/openapi.json": openapi, "/docs": docs if page else None}
    routes = app.router.routes
    for index, route in reversed(list(enumerate(routes))):
        if isinstance(route, Route) and route.path in endpoints and _is_stock(route):
            endpoint = endpoints[route.path]
            ours = [] if endpoint is None else [Route(route.path, endpoint, methods=["GET"])]
            routes[index : index + 1] = ours


def _is_stock(route: Route) -> bool:
    return str(getattr(route.endpoint, "__module__", "")) == "langgraph_api.api"


async def openapi(request: Request) -> Response:
    """Answer with the OpenAPI description."""
    return Response(await _spec(request), media_type="application/json")


async def docs(request: Request) -> Response:
    """Answer with the HTML page of the OpenAPI description."""
    return docs_page.response(await _spec(request))


async def _spec(request: Request) -> bytes:
    from langgraph_api.api.openapi import get_openapi_spec

    stock = await asyncio.to_thread(get_openapi_spec)
    added = request.scope.get(PATHS)
    prefix = request.scope.get("root_path")
    if not prefix and not added:
        return bytes(stock)
    spec = orjson.loads(stock)
    if prefix:
        # Already set if LANGGRAPH_API_URL names the public address.
        spec.setdefault("servers", [{"url": prefix}])
    for path, operations in (added or {}).items():
        spec["paths"][path] = {**spec["paths"].get(path, {}), **operations}
    return orjson.dumps(spec)
