"""OpenAPI: serve `/openapi.json` and `/docs` with the mount prefix as the server URL.

The stock routes describe a server at the root, so under a prefix each "try it" button would
call the host's routes.
"""

import asyncio

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route


def install(app: Starlette) -> None:
    """Replace the stock routes, if the configuration has them."""
    endpoints = {"/openapi.json": openapi, "/docs": docs}
    for index, route in enumerate(app.router.routes):
        if isinstance(route, Route) and route.path in endpoints and _is_stock(route):
            app.router.routes[index] = Route(route.path, endpoints[route.path], methods=["GET"])


def _is_stock(route: Route) -> bool:
    return str(getattr(route.endpoint, "__module__", "")) == "langgraph_api.api"


async def openapi(request: Request) -> Response:
    """Answer with the OpenAPI description."""
    return Response(await _spec(request), media_type="application/json")


async def docs(request: Request) -> Response:
    """Answer with the HTML page of the OpenAPI description."""
    from langgraph_api.validation import render_docs_html

    return HTMLResponse(render_docs_html(await _spec(request)))


async def _spec(request: Request) -> bytes:
    from langgraph_api.api.openapi import get_openapi_spec

    stock = await asyncio.to_thread(get_openapi_spec)
    if not request.scope.get("root_path"):
        return bytes(stock)
    spec = orjson.loads(stock)
    # Already set if LANGGRAPH_API_URL names the public address.
    spec.setdefault("servers", [{"url": request.scope["root_path"]}])
    return orjson.dumps(spec)
