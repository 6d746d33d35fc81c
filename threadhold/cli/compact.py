"""Compact: store old checkpoints in less space (`threadhold compact`)."""

import click

from langgraph_runtime_sql.database.url import is_postgres
from threadhold.admin.compact import compact as store_again
from threadhold.cli.keys import use_keys
from threadhold.cli.options import database_option, settings_options
from threadhold.cli.progress import ProgressLine, amount
from threadhold.settings import Settings


@click.command()
@settings_options(database_option)
@click.option(
    "--shrink", is_flag=True, help="Also give the freed space of a SQLite file to the disk."
)
def compact(settings: Settings, shrink: bool) -> None:
    """Store the checkpoints of older versions in less space.

    Servers of this version may run; on Postgres no older one may. After an interruption the same
    command continues. A SQLite file keeps its size, and new data uses the freed space, unless --shrink
    writes it again. Other writes wait for that.
    """
    use_keys(settings)
    with ProgressLine() as line:
        done = store_again(settings.database_url, line.show, shrink=shrink)
    if done.threads:
        before, after = (amount(each, "bytes") for each in done.values[1:])
        click.echo(
            f"{done.values.values:,} values in {done.threads:,} threads took {before}, "
            f"and take {after}"
        )
    if done.parts:
        click.echo(f"{done.parts:,} parts that no checkpoint referred to were deleted")
    if not done.threads and not done.parts:
        click.echo("There is nothing to compact")
    elif not shrink and not is_postgres(settings.database_url):
        click.echo(
            "The file keeps its size; new data uses the freed space. --shrink frees the disk"
        )
