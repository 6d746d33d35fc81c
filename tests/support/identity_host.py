"""Serve the product's app at the root and at a prefix, and list its routes.

Run as `identity_host.py PORT ROUTES`. Settings come from the environment. After the start, the file
ROUTES has the routes as a JSON list of [method, path].
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.routing import Mount

from server.app import create_app
from server.settings import Settings
from threadhold.platform import LangGraphPlatform

PREFIX = "/langgraph"


def walk(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every method and path of the routes, including those in mounts and middleware."""
    for route in routes:
        path = prefix + route.path
        inner = getattr(route, "_base_app", None)
        if isinstance(inner, LangGraphPlatform):
            yield from walk(inner.app.routes, path)
        elif getattr(route, "routes", None):
            yield from walk(route.routes, path)
        elif isinstance(route, Mount):
            raise TypeError(f"the routes of the app mounted at {path} are unknown")
        else:
            for method in sorted(getattr(route, "methods", None) or ["WEBSOCKET"]):
                yield method, path


def main(port: str, listing: str) -> None:
    """Serve until the process is stopped."""
    app = create_app(Settings())
    at_root = app.router.routes[-1]
    if not isinstance(at_root, Mount):
        raise TypeError("the platform's mount is expected last")
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def listed(app_: Any) -> Any:
        async with lifespan(app_) as state:
            found = sorted(set(walk(app.router.routes)))
            app.router.routes.insert(0, Mount(PREFIX, app=at_root.app))
            Path(listing).write_text(json.dumps(found))
            yield state

    app.router.lifespan_context = listed
    uvicorn.run(app, port=int(port), log_level="warning", timeout_keep_alive=75)


if __name__ == "__main__":
    main(*sys.argv[1:])
