"""Options that several commands have."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from threadhold.cli.group import Decorator, load_settings, pass_program
from threadhold.program import Program
from threadhold.settings import Settings

config_option = click.option(
    "--config",
    "langgraph_json",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the project's langgraph.json.  [default: langgraph.json]",
)
database_option = click.option(
    "--database-url",
    help="SQLite or Postgres, such as sqlite:///data/app.db.  [default: DATABASE_URL]",
)
redis_option = click.option(
    "--redis-url",
    help="Redis, only with Postgres, such as redis://127.0.0.1:6379/0.  [default: REDIS_URL]",
)
host_option = click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
port_option = click.option(
    "--port",
    default=8123,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)


def settings_options(*options: Decorator) -> Decorator:
    """Make a decorator: the command takes `options`, and gets the settings as first argument.

    Args:
        options: Options of this module with the name of a setting.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @pass_program
        @functools.wraps(command)
        def run(program: Program, **given: Any) -> Any:
            named = {name: given.pop(name) for name in given.keys() & Settings.model_fields}
            return command(load_settings(program.settings, **named), **given)

        for option in reversed(options):
            option(run)
        return run

    return decorate
