"""Identity: print development tokens, and revoke tokens and users (`threadhold token`, `revoke`)."""

import asyncio

import click

from threadhold.auth.settings import IdentitySettings
from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import database_option
from threadhold.extras import require
from threadhold.program import Program
from threadhold.settings import Settings


def _identity(settings: Settings) -> IdentitySettings:
    """Return a program's settings of identity; those of the environment if it has none itself."""
    return settings if isinstance(settings, IdentitySettings) else IdentitySettings()


@click.command()
@click.option("--tenant", required=True, help="Tenant of the user.")
@click.option("--user", required=True, help="User id.")
@click.option(
    "--role", "roles", multiple=True, help="Role of the user, such as tenant_admin; repeatable."
)
@click.option(
    "--ttl", default="8h", show_default=True, help="Lifetime of the token, such as 90, 15m or 7d."
)
@pass_program
def token(program: Program, tenant: str, user: str, roles: tuple[str, ...], ttl: str) -> None:
    """Print a development token for `threadhold.auth`, signed with JWT_SECRET."""
    require("jwt", "`token`")
    from threadhold.auth.tokens import seconds, sign

    try:
        lifetime = seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ttl") from error
    click.echo(sign(_identity(load_settings(program.settings)), tenant, user, roles, lifetime))


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
@pass_program
def revoke(
    program: Program,
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
    require("jwt", "`revoke`")
    from threadhold import sessions
    from threadhold.admin import beside_server
    from threadhold.auth import revocation
    from threadhold.auth.tokens import seconds

    try:
        target = sessions.Target(tenant=tenant, subject=user, token_id=token_id)
    except ValueError:
        raise click.UsageError("Give either --tenant and --user, or --token-id") from None
    try:
        lasting = None if ttl is None else seconds(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from error
    settings = load_settings(program.settings, database_url=database_url)

    async def run() -> str:
        async with beside_server(settings.database_url):
            if lift:
                return "lifted" if await sessions.lift(target) else "there is no such revocation"
            disabled = await revocation.revoke(
                target,
                token_seconds=_identity(settings).jwt_max_lifetime_seconds,
                seconds=lasting,
                reason=reason,
            )
            return f"revoked, {disabled} crons disabled"

    click.echo(asyncio.run(run()))
