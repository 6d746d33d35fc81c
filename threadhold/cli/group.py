"""Command group: error handling and settings that all commands share."""

import sqlite3
from collections.abc import Callable
from typing import Any

import click

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.sqlite.damage import described, is_damage
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import DatabaseDamaged
from langgraph_runtime_sql.options import Options
from threadhold.extras import require_clients
from threadhold.options import shared
from threadhold.program import Program
from threadhold.settings import AnySettings, BadSettings, read_settings

# Where the context has the URL of the command's database.
_URL = "threadhold.database_url"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

pass_program: Decorator = click.make_pass_decorator(Program)


class ProgramGroup(click.Group):
    """Commands of a program, the context's `obj`; report expected failures without traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            words = _damage(error, ctx.meta.get(_URL))
            if words is None and not isinstance(error, ctx.obj.expected):
                raise
            raise click.ClickException(words or str(error)) from error


def _damage(error: BaseException, url: str | None) -> str | None:
    """Return what of the command's database is damaged, if that is the reason for an error."""
    if url is None or is_postgres(url):
        return None
    chain: BaseException | None = error
    while chain is not None:
        # SQLAlchemy has the driver's error in `orig`.
        cause = getattr(chain, "orig", chain)
        # A file that is no database has a message of its own: it may be somebody's other file.
        if getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            return None
        if isinstance(chain, DatabaseDamaged) or is_damage(cause):
            return described(database_path(url))
        chain = chain.__cause__ or chain.__context__
    return None


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
    if (context := click.get_current_context(silent=True)) is not None:
        context.meta[_URL] = settings.database_url
    # Check before anything imports the client.
    require_clients(settings.database_url, settings.redis_url)
    # Commands write audit entries, too.
    known = process.configuration()
    options = known.options.model_copy(update=shared(settings, Options))
    process.configure(options, known.hooks)
    return settings
