"""Crons: show what the scheduler decided about due dates (`threadhold crons`)."""

from typing import Any
from uuid import UUID

import click

from threadhold.cli.options import config_option, database_option, settings_options
from threadhold.settings import Settings


@click.group()
def crons() -> None:
    """Show what the scheduler did about the due dates of crons."""


@crons.command()
@settings_options(config_option, database_option)
@click.argument("cron", metavar="ID", type=click.UUID)
def history(settings: Settings, cron: UUID) -> None:
    """Show the last 100 decisions about the cron ID, the newest first; servers may run."""
    from langgraph_runtime_sql.ops.crons import record
    from threadhold.admin import doctor

    found: list[Any] = []
    doctor.run(settings.database_url, lambda conn: found.extend(record.of_cron(conn, cron)))
    for row in found:
        click.echo(
            f"{row['slot']:%Y-%m-%d %H:%M:%S}  {row['decision']:<10}  "
            f"{row['late_seconds']:,.0f} s late  run {row['run_id'] or '-'}"
        )
    click.echo(f"{len(found):,} decisions")
