"""A small HTTP server that stores the webhooks it receives."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.processes import free_port


class Receiver:
    """Listens on loopback; each mark has its own address and its own deliveries."""

    def __init__(self) -> None:
        self._port = free_port()
        self._deliveries: dict[str, asyncio.Queue[Any]] = defaultdict(asyncio.Queue)
        app = Starlette(routes=[Route("/{mark}", self._accept, methods=["POST"])])
        config = uvicorn.Config(app, "127.0.0.1", self._port, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)

    def url(self, mark: str) -> str:
        """Return the address that delivers to ``mark``."""
        return f"http://127.0.0.1:{self._port}/{mark}"

    async def delivery(self, mark: str) -> Any:
        """Return the next JSON body delivered to ``mark``."""
        return await self._deliveries[mark].get()

    async def serve(self) -> None:
        """Listen until :meth:`stop`."""
        await self._server.serve()

    def stop(self) -> None:
        """Ask :meth:`serve` to return."""
        self._server.should_exit = True

    async def _accept(self, request: Request) -> Response:
        await self._deliveries[request.path_params["mark"]].put(await request.json())
        return Response(status_code=204)
