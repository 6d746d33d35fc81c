"""Command group: error handling and settings that all commands share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from langgraph_runtime_sql import process
from threadhold.extras import require_clients
from threadhold.program import Program
from threadhold.settings import AnySettings, BadSettings, read_settings

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

pass_program: Decorator = click.make_pass_decorator(Program)


class ProgramGroup(click.Group):
    """Commands of a program, the context's `obj`; report expected failures without traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ctx.obj.expected as error:
            raise click.ClickException(str(error)) from error


def load_settings(kind: type[AnySettings], **given: Any) -> AnySettings:
    """Read settings from the environment; the options in `given` override it.

    Raises:
        click.ClickException: a setting has an invalid value.
        MissingExtra: the client package of Postgres or Redis is not installed.
    """
    try:
        settings = read_settings(kind, **given)
    except BadSettings as error:
        raise click.ClickException(str(error)) from error
    # Check before anything imports the client.
    require_clients(settings.database_url, settings.redis_url)
    # Commands write audit entries, too.
    known = process.configuration()
    options = replace(known.options, audit=settings.audit_log, audit_key=settings.audit_key)
    process.configure(options, known.hooks)
    return settings
