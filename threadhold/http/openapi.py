"""`/openapi.json` and `/docs` that know where the platform is mounted.

The stock ones describe a server at the root, so that at a prefix every "try it"
button would call the host's routes instead.
"""

import asyncio

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route


def install(app: Starlette) -> None:
    """Put ours in the place of the stock routes, where the configuration has them."""
    ours = {"/openapi.json": openapi, "/docs": docs}
    for place, route in enumerate(app.router.routes):
        if isinstance(route, Route) and route.path in ours and _is_stock(route):
            app.router.routes[place] = Route(route.path, ours[route.path], methods=["GET"])


def _is_stock(route: Route) -> bool:
    return str(getattr(route.endpoint, "__module__", "")) == "langgraph_api.api"


async def openapi(request: Request) -> Response:
    """The OpenAPI description, with the mount as its server."""
    return Response(await _spec(request), media_type="application/json")


async def docs(request: Request) -> Response:
    """The page that shows it."""
    from langgraph_api.validation import render_docs_html

    return HTMLResponse(render_docs_html(await _spec(request)))


async def _spec(request: Request) -> bytes:
    from langgraph_api.api.openapi import get_openapi_spec

    stock = await asyncio.to_thread(get_openapi_spec)
    if not request.scope.get("root_path"):
        return bytes(stock)
    spec = orjson.loads(stock)
    # Set already where LANGGRAPH_API_URL names the public address.
    spec.setdefault("servers", [{"url": request.scope["root_path"]}])
    return orjson.dumps(spec)
