"""Options that several commands have."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from threadhold.cli.group import Decorator, load_settings, pass_program
from threadhold.program import Program
from threadhold.settings import Settings, flags, variable


def setting_option(name: str, kind: type[Settings] = Settings) -> Decorator:
    """Make the option of a setting that has a `flag`, from its field.

    Args:
        name: The field.
        kind: The class of the settings.
    """
    field = kind.model_fields[name]
    return click.option(
        flags(kind)[name],
        name,
        type=click.Path(dir_okay=False, path_type=Path) if field.annotation is Path else str,
        help=f"{(field.description or '').replace('`', '')}.  [default: {variable(kind, name)}]",
    )


config_option = setting_option("langgraph_json")
database_option = setting_option("database_url")
redis_option = setting_option("redis_url")
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
        options: Options of settings; none: those of all settings that have a `flag`.
    """
    taken = options or [setting_option(name) for name in flags(Settings)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @pass_program
        @functools.wraps(command)
        def run(program: Program, **given: Any) -> Any:
            named = {name: given.pop(name) for name in given.keys() & Settings.model_fields}
            return command(load_settings(program.settings, **named), **given)

        for option in reversed(taken):
            option(run)
        return run

    return decorate
