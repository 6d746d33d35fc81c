"""Threadhold's own program: serve any project, with only the runtime's tables.

The functions import late, so that `--help` does not load the server.
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
    """Migrate the runtime's tables in the database of `url`."""
    from langgraph_runtime_sql import migrations

    migrations.migrate(url)


def schemas() -> Sequence[Any]:
    """Return the schema of the runtime's tables."""
    from threadhold.move.schema import runtime_schema

    return [runtime_schema()]


THREADHOLD = Program(
    name="threadhold",
    settings=Settings,
    create_app=create_app,
    migrate=migrate,
    schemas=schemas,
    # `-P`: a folder `threadhold` in the working directory must not shadow the package.
    launch=("-P", "-m", "threadhold"),
)
