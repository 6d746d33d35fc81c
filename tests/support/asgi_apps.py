"""The ASGI apps around the start of a streamed run in the example application.

`python -m tests.support.asgi_apps` prints them, from that which uvicorn calls to the endpoint.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.routing import Match, Router

from threadhold.platform import LangGraphPlatform

STREAM = f"/threads/{uuid4()}/runs/stream"
SECRET = "s" * 32


def around(app: Any, path: str = STREAM) -> Iterator[Any]:
    """Yield the apps around the endpoint of `POST path`, from the outermost to that of the route."""
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "headers": []}
    while app is not None:
        yield app
        if isinstance(app, Starlette):
            app = app.middleware_stack or app.build_middleware_stack()
        elif isinstance(app, Router):
            found = ((each, *each.matches(scope)) for each in app.routes)
            route, _, child = next(each for each in found if each[1] is Match.FULL)
            scope |= child
            app = getattr(route, "app", None)
        else:
            app = app.app if isinstance(app, LangGraphPlatform) else getattr(app, "app", None)


def name(app: Any) -> str:
    """Return the name of an app: of its class, or of its function; of a layer also those of its steps."""
    named = getattr(app, "__qualname__", type(app).__name__)
    steps = getattr(app, "steps", ())
    return f"{named}: {', '.join(map(name, steps))}" if steps else named


def served(folder: Path) -> Any:
    """Return what uvicorn calls when `python -m server serve` runs on a database in `folder`."""
    from server.app import create_app
    from server.settings import Settings
    from threadhold.serving import connections, server

    url = f"sqlite:///{folder}/data.db"
    settings = Settings(app_env="production", jwt_secret=SECRET, database_url=url)
    app = create_app(settings)
    guard = connections.Guard(1, (), 1.0, 1.0)
    config = server.config(app, settings, "127.0.0.1", 0, guard)
    config.load()
    return config.loaded_app


if __name__ == "__main__":
    os.environ |= {"JWT_ALLOW_ANY_AUDIENCE": "true", "JWT_ALLOW_ANY_ISSUER": "true"}
    with TemporaryDirectory() as scratch:
        for number, each in enumerate(around(served(Path(scratch))), 1):
            print(f"{number:2} {name(each)}")
