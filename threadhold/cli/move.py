"""Move: copy all data from a SQLite file to Postgres (`threadhold migrate --from --to`)."""

import click

from langgraph_runtime_sql.database.url import shown
from threadhold import move as library
from threadhold.cli.keys import use_keys
from threadhold.cli.progress import ProgressLine
from threadhold.move import Moved, MoveFinished
from threadhold.platform import LangGraphPlatform
from threadhold.program import Program
from threadhold.settings import Settings


def move(program: Program, settings: Settings, source: str) -> None:
    """Move all data of `source` to the settings' database, and show the progress.

    Args:
        program: The program whose tables are moved.
        settings: Their database is the target; their project has the encryption of checkpoints.
        source: `sqlite:///path/to/file.db`

    Raises:
        RuntimeSqlError: some data cannot be moved; the source is unchanged.
    """
    # Sets the project's environment, with which its server decrypts checkpoints.
    LangGraphPlatform(settings.langgraph_json, database_url=settings.database_url)
    use_keys(settings)
    try:
        with ProgressLine() as line:
            moved = library.move(source, settings.database_url, program.schemas(), line.show)
    except MoveFinished as finished:
        click.echo(str(finished))
        return
    _print(moved, source, settings.database_url)


def _print(moved: Moved, source: str, target: str) -> None:
    for table, rows in moved.rows.items():
        click.echo(f"{table}: {rows:,}")
    if moved.unknown:
        click.echo(f"Not moved, because they are not Threadhold's: {', '.join(moved.unknown)}")
    click.echo(
        f"Moved and compared: {sum(moved.rows.values()):,} rows. {source} is unchanged. Serve "
        f"with DATABASE_URL={shown(target)}"
    )
