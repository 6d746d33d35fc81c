"""OpenAPI: serve `/openapi.json` and `/docs` with the mount prefix as the server URL.

The stock routes describe a server at the root, so under a prefix each "try it" button would
call the host's routes.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threadhold.http import added_routes, docs_page, host_routes

_SCHEMAS, _OURS = "#/components/schemas", "LangGraph."


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


def joined(host: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return a host's OpenAPI description with the paths of the API below a prefix.

    The names of the API's schemas begin with `LangGraph.`, because both may have the same names.

    Args:
        host: The host's description.
        prefix: Where the API is mounted.
    """
    from langgraph_api.api.openapi import get_openapi_spec

    text = bytes(get_openapi_spec()).decode().replace(f"{_SCHEMAS}/", f"{_SCHEMAS}/{_OURS}")
    ours = orjson.loads(text)
    _add(ours["paths"], added_routes.DESCRIPTION["paths"])
    components = {**host.get("components", {})}
    for kind, found in ours.get("components", {}).items():
        named = {f"{_OURS}{name}": each for name, each in found.items()}
        components[kind] = {**components.get(kind, {}), **(named if kind == "schemas" else found)}
    paths = {f"{prefix}{path}": each for path, each in ours["paths"].items()}
    return {**host, "paths": {**paths, **host.get("paths", {})}, "components": components}


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
    added = host_routes.here.description
    prefix = request.scope.get("root_path")
    spec = orjson.loads(stock)
    if prefix:
        # Already set if LANGGRAPH_API_URL names the public address.
        spec.setdefault("servers", [{"url": prefix}])
    _add(spec["paths"], added_routes.DESCRIPTION["paths"])
    _add(spec["paths"], added.get("paths", {}))
    _add(spec.setdefault("components", {}), added.get("components", {}))
    return orjson.dumps(spec)


def _add(spec: dict[str, Any], added: Mapping[str, Mapping[str, Any]]) -> None:
    for name, each in added.items():
        spec[name] = {**spec.get(name, {}), **each}
