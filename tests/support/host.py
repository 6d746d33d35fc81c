"""Host apps that mount the platform.

Run as `host.py FRAMEWORK PREFIX CONFIG DATABASE_URL PORT [ROOT_PATH]`.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadhold.platform import LangGraphPlatform


class HostHeader:
    """Middleware that adds the header `x-host` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-host", b"yes")]
            await send(message)

        await self.app(scope, receive, marked)


class Teapot(Exception):
    """An error that only the host's exception handler answers."""


async def teapot(request: Request, error: Exception) -> Response:
    return JSONResponse({"host": "teapot"}, 418)


async def brew(request: Request) -> Response:
    raise Teapot


async def state(request: Request) -> Response:
    return JSONResponse({"state": request.state.greeting})


async def loopback(request: Request) -> Response:
    answer = await get_client().runs.wait(None, "echo", input={"value": "from the host"})
    return JSONResponse(answer)


def create(framework: str, prefix: str, config: str, database_url: str) -> Any:
    """Create a host with its own middleware, exception handler, routes and lifespan.

    Args:
        framework: `fastapi`, or another name for Starlette.
        prefix: The path of the mount; may be empty.
        config: The project's `langgraph.json`.
    """
    platform = LangGraphPlatform(config, database_url=database_url)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[dict[str, str]]:
        async with platform.lifespan(app):
            yield {"greeting": "hello"}

    routes = [Route("/brew", brew), Route("/state", state), Route("/loopback", loopback)]
    if framework == "fastapi":
        app = FastAPI(lifespan=lifespan, routes=routes, middleware=[Middleware(HostHeader)])
        app.add_exception_handler(Teapot, teapot)
        app.mount(prefix, platform)
        return app
    return Starlette(
        routes=[*routes, Mount(prefix or "/", app=platform)],
        middleware=[Middleware(HostHeader)],
        exception_handlers={Teapot: teapot},
        lifespan=lifespan,
    )


if __name__ == "__main__":
    framework, prefix, config, url, port, *root_path = sys.argv[1:]
    uvicorn.run(
        create(framework, prefix, config, url),
        port=int(port),
        root_path="".join(root_path),
        # Longer than clients keep a connection. Otherwise the server may close it during a request.
        timeout_keep_alive=75,
    )
