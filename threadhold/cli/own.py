"""Threadhold's own program: any project, and no table but the runtime's.

Its functions import late, so that `--help` need not load the server.
"""

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette

from threadhold.program import Program
from threadhold.settings import Settings


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app of `threadhold.host`."""
    from threadhold import host

    return host.create_app(settings, studio=studio)


def migrate(url: str) -> None:
    """Bring the runtime's tables in the database of a URL up to date."""
    from langgraph_runtime_sql import migrations

    migrations.migrate(url)


def schemas() -> Sequence[Any]:
    """The runtime's tables, for a move."""
    from threadhold.move.schema import runtime_schema

    return [runtime_schema()]


THREADHOLD = Program(
    name="threadhold",
    settings=Settings,
    create_app=create_app,
    migrate=migrate,
    schemas=schemas,
    # `-P`: a folder `threadhold` where it is started does not take the package's place.
    launch=("-P", "-m", "threadhold"),
)
