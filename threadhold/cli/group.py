"""The group of a program's commands: what all of them share."""

from collections.abc import Callable
from typing import Any

import click

from threadhold.extras import require
from threadhold.program import Program
from threadhold.settings import AnySettings, BadSettings, read_settings

pass_program: Callable[[Any], Any] = click.make_pass_decorator(Program)


class ProgramGroup(click.Group):
    """Commands of a program, whose expected failures are one sentence and not a traceback.

    Args:
        program: Commands get it through `pass_program`.
    """

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(name=program.name, **options)
        self._program = program

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = self._program
        try:
            return super().invoke(ctx)
        except self._program.expected as error:
            raise click.ClickException(str(error)) from error


def load_settings(kind: type[AnySettings], **given: Any) -> AnySettings:
    """Read settings from the environment; what the command line gives is stronger.

    Raises:
        click.ClickException: a setting has a value it cannot have.
        MissingExtra: a database or a Redis is named whose client is not installed.
    """
    try:
        settings = read_settings(kind, **given)
    except BadSettings as error:
        raise click.ClickException(str(error)) from error
    # Before anything imports the client.
    if settings.database_url.startswith("postgres"):
        require("postgres", "A postgresql:// database")
    if settings.redis_url is not None:
        require("redis", "REDIS_URL")
    return settings
