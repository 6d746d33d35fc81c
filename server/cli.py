"""The command `python -m server`: Threadhold's commands for our app, with those of the app."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from starlette.applications import Starlette

from my_agent.transactions import ProductDatabaseError
from server.settings import Settings
from threadhold import cli
from threadhold.cli import Program, command_line, database_option
from threadhold.move import Schema

load_settings = partial(cli.load_settings, Settings)


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app of `server.app`."""
    from server import app

    return app.create_app(settings, studio=studio)


def migrate(url: str) -> None:
    """Bring the tables of the runtime and of the graphs in the database of a URL up to date."""
    from my_agent.database import ProductDatabase

    cli.THREADHOLD.migrate(url)
    ProductDatabase(url).close()


def schemas() -> Sequence[Schema]:
    """Every table that this app migrates: the runtime's, and those of the graphs."""
    from server.tables import product_schema
    from threadhold.move import runtime_schema

    return [runtime_schema(), product_schema()]


@click.command()
@click.option("--tenant", required=True, help="Tenant that the token is for.")
@click.option("--user", required=True, help="User that the token is for.")
@click.option("--role", "roles", multiple=True, help="Such as tenant_admin; may be repeated.")
@click.option("--ttl", default="8h", show_default=True, help="How long it is good: 90, 15m, 7d.")
def token(tenant: str, user: str, roles: tuple[str, ...], ttl: str) -> None:
    """Print a token for development, signed with JWT_SECRET."""
    from server.token import seconds, sign

    try:
        lifetime = seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ttl") from error
    click.echo(sign(load_settings(), tenant, user, roles, lifetime))


@click.command()
@database_option
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--tenant", help="Whose it is to be.  [default: shared by all tenants]")
def ingest(path: Path, tenant: str | None, database_url: str | None) -> None:
    """Bring PATH into the database: a folder of documents, or one file.

    Documents are Markdown, text, HTML and PDF. Doing it again updates what has changed.
    """
    from my_agent import database
    from server.ingest import ingest as bring_in
    from threadhold.admin import shared_lock

    url = load_settings(database_url=database_url).database_url
    with shared_lock(url):
        database.use(url)
        bring_in(path, tenant)


PROGRAM = Program(
    name="python -m server",
    settings=Settings,
    create_app=create_app,
    migrate=migrate,
    schemas=schemas,
    # By its file: no folder `server` where it is started takes its place.
    launch=("-P", str(Path(__file__).with_name("__main__.py"))),
    errors=(ProductDatabaseError,),
)

main = command_line(PROGRAM, [token, ingest])
