"""Command line: `python -m server`, Threadhold's commands and those of the example app."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from starlette.applications import Starlette

from my_agent.tables import tables
from server.settings import Settings
from threadhold import cli
from threadhold.cli import Program, command_line, database_option
from threadhold.tables import Tables

load_settings = partial(cli.load_settings, Settings)


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app of `server.app`."""
    from server import app

    return app.create_app(settings, studio=studio)


def own_tables() -> Sequence[Tables]:
    """Return the tables of the graphs."""
    return [tables]


def tenant_folders(tenant: str) -> Sequence[Path]:
    """Return the folder of a tenant's research projects."""
    from my_agent.research.files import folder
    from my_agent.research.projects import Key
    from my_agent.research.settings import ResearchSettings

    found = folder(ResearchSettings.from_environment(), Key(tenant, ""))
    return [] if found is None else [found]


@click.command()
@click.option("--tenant", required=True, help="Tenant of the user.")
@click.option("--user", required=True, help="User id.")
@click.option(
    "--role", "roles", multiple=True, help="Role of the user, such as tenant_admin; repeatable."
)
@click.option(
    "--ttl", default="8h", show_default=True, help="Lifetime of the token, such as 90, 15m or 7d."
)
def token(tenant: str, user: str, roles: tuple[str, ...], ttl: str) -> None:
    """Print a development token, signed with JWT_SECRET."""
    from server.token import seconds, sign

    try:
        lifetime = seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ttl") from error
    click.echo(sign(load_settings(), tenant, user, roles, lifetime))


@click.command()
@database_option
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--tenant", help="Tenant that owns the data.  [default: shared by all tenants]")
@click.option("--yes", is_flag=True, help="Let an emptied folder delete its documents.")
def ingest(path: Path, tenant: str | None, yes: bool, database_url: str | None) -> None:
    """Load PATH into the database: a folder of documents, or one file.

    Documents are Markdown, text, HTML, PDF, Word, Excel, PowerPoint and CSV. Running it again
    updates changed documents. A single CSV file is a company register.
    """
    from server.ingest import ingest as load
    from threadhold.admin import tables_beside_server

    with tables_beside_server(load_settings(database_url=database_url).database_url):
        load(path, tenant, emptied=yes)


@click.command()
@database_option
@click.option("--tenant", help="Tenant of the user.")
@click.option("--user", help="User whose tokens are refused, and whose crons stop.")
@click.option("--token-id", help="The claim `jti` of the one token that is refused.")
@click.option(
    "--for",
    "ttl",
    help="Time for which it is refused, such as 90, 15m or 7d.  "
    "[default: JWT_MAX_LIFETIME_SECONDS for a token, no end for a user]",
)
@click.option("--reason", help="Note for operators.")
@click.option("--lift", is_flag=True, help="Accept it again. Crons stay disabled.")
def revoke(
    database_url: str | None,
    tenant: str | None,
    user: str | None,
    token_id: str | None,
    ttl: str | None,
    reason: str | None,
    lift: bool,
) -> None:
    """Refuse a token or all tokens of a user, from now on.

    Servers may run meanwhile: they end the streams of the user within seconds.
    """
    import asyncio

    from hooks import revocation
    from server.token import seconds
    from threadhold import sessions
    from threadhold.admin import beside_server

    try:
        target = revocation.Target(tenant=tenant, subject=user, token_id=token_id)
    except ValueError:
        raise click.UsageError("Give either --tenant and --user, or --token-id") from None
    try:
        lasting = None if ttl is None else seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from error
    settings = load_settings(database_url=database_url)

    async def run() -> str:
        async with beside_server(settings.database_url):
            if lift:
                return "lifted" if await sessions.lift(target) else "there is no such revocation"
            disabled = await revocation.revoke(
                target,
                token_seconds=settings.jwt_max_lifetime_seconds,
                seconds=lasting,
                reason=reason,
            )
            return f"revoked, {disabled} crons disabled"

    click.echo(asyncio.run(run()))


PROGRAM = Program(
    name="python -m server",
    settings=Settings,
    create_app=create_app,
    # By file, so that a folder `server` in the working directory cannot shadow it.
    launch=("-P", str(Path(__file__).with_name("__main__.py"))),
    tables=own_tables,
    tenant_folders=tenant_folders,
)

main = command_line(PROGRAM, [token, ingest, revoke])
