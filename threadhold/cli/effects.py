"""Effects: say whether a cut-off effect happened (`threadhold effects`)."""

from uuid import UUID

import click

from threadhold.cli.options import config_option, database_option, settings_options
from threadhold.settings import Settings


@click.group()
def effects() -> None:
    """Resolve effects that were cut off; `doctor` lists them."""


@effects.command()
@settings_options(config_option, database_option)
@click.argument("effect", metavar="ID", type=click.UUID)
@click.option(
    "--happened",
    required=True,
    type=click.Choice(["yes", "no"]),
    help="Whether the other system did it.",
)
def resolve(settings: Settings, effect: UUID, happened: str) -> None:
    """Say whether the effect ID happened; servers may run.

    A done effect has no result. One that is not done is executed by the next run.
    """
    from langgraph_runtime_sql import effects as library
    from threadhold.admin import doctor

    done = happened == "yes"
    found: list[bool] = []
    doctor.run(
        settings.database_url,
        lambda conn: found.append(library.resolve(conn, effect, done=done)),
        writes=True,
    )
    if not found[-1]:
        raise click.ClickException(
            f"There is no effect {effect} that is unknown, or a process is making it"
        )
    click.echo(f"{effect}: {'done' if done else 'will be done by the next run'}")
