"""Webhooks: list and replay webhooks that did not arrive (`threadhold webhooks`)."""

from typing import Literal

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import config_option, database_option, settings_options
from threadhold.program import Program
from threadhold.settings import Settings


@click.group()
def webhooks() -> None:
    """List webhooks that wait or did not arrive, and send them again."""


@webhooks.command("list")
@settings_options(config_option, database_option)
@click.option("--pending", is_flag=True, help="Those that are still tried, not the dead letters.")
@click.option("--tenant", help="Only those of this tenant.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 10_000))
def list_(settings: Settings, pending: bool, tenant: str | None, limit: int) -> None:
    """List dead letters, the newest first; servers may run."""
    from threadhold.admin import webhooks as library

    status: Literal["pending", "dead"] = "pending" if pending else "dead"
    found = library.listed(settings.database_url, status, tenant, limit)
    for row in found:
        click.echo(
            f"{row['webhook_id']}  run {row['run_id']}  tenant {row['tenant'] or '-'}  "
            f"{row['attempts']} attempts  {row['created_at']:%Y-%m-%d %H:%M}  {row['error'] or ''}"
        )
    click.echo(f"{len(found):,} {status} webhooks")


@webhooks.command()
@settings_options(config_option, database_option)
@click.argument("ids", metavar="[ID]...", nargs=-1, type=click.UUID)
@click.option("--all", "every", is_flag=True, help="All dead letters.")
@click.option("--tenant", help="Only those of this tenant.")
def replay(settings: Settings, ids: tuple[object, ...], every: bool, tenant: str | None) -> None:
    """Send dead letters again, for another day; servers may run, and deliver them.

    A replayed webhook keeps its id.
    """
    from threadhold.admin import webhooks as library

    if bool(ids) == every:
        raise click.UsageError("Name the ids of dead letters, or use --all.")
    count = library.replay(settings.database_url, None if every else ids, tenant)  # type: ignore[arg-type]
    click.echo(f"{count:,} webhooks are pending again")


@webhooks.command()
@config_option
@click.option("--tenant", help="The tenant that receives them; without tenants, leave it out.")
@pass_program
def secret(program: Program, langgraph_json: object, tenant: str | None) -> None:
    """Print the secret with which a receiver verifies webhooks; give it only to that tenant.

    It is derived from the newest of WEBHOOK_SECRETS. Without that setting, print a new secret
    for it.
    """
    from langgraph_runtime_sql.key_texts import webhook_key
    from langgraph_runtime_sql.webhooks import signing

    settings = load_settings(program.settings, langgraph_json=langgraph_json)
    if settings.webhook_secrets:
        key = signing.of_tenant(webhook_key(settings.webhook_secrets[0]), tenant)
        click.echo(signing.write_secret(key))
        return
    if tenant is not None:
        raise click.UsageError("WEBHOOK_SECRETS is not set, so no tenant has a secret.")
    import secrets

    click.echo(f"WEBHOOK_SECRETS={signing.write_secret(secrets.token_bytes(32))}")
