"""The product's app as `threadhold serve` runs it, at a prefix too, with a list of its routes.

Run as `identity_host.py PORT ROUTES`: settings come from the environment, and the routes are
written to the file ROUTES, a JSON list of [method, path], once everything has started.
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
from server.routes import POLICY, offered
from server.settings import Settings
from threadhold.platform import LangGraphPlatform

PREFIX = "/langgraph"


def walk(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path that the routes answer, those inside of mounts and middleware too."""
    for route in routes:
        path = prefix + route.path
        inner = getattr(route, "_base_app", None)
        if isinstance(inner, LangGraphPlatform):
            yield from walk(inner.app.routes, path)
            for ours in (*POLICY, *offered(inner.config.graphs)):
                method, _, below = ours.partition(" ")
                yield method, path + below
        elif getattr(route, "routes", None):
            yield from walk(route.routes, path)
        elif isinstance(route, Mount):
            raise TypeError(f"{path} mounts an app whose routes nobody knows")
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
