"""Move: copy all data from a SQLite file to Postgres (`threadhold migrate --from --to`)."""

from contextlib import closing
from typing import Any

import click

from langgraph_runtime_sql.database.url import shown
from threadhold import move as library
from threadhold.cli.keys import use_keys
from threadhold.move import Moved, MoveFinished, Progress
from threadhold.platform import LangGraphPlatform
from threadhold.program import Program
from threadhold.settings import Settings


def move(program: Program, settings: Settings, source: str) -> None:
    """Move all data of `source` to the settings' database, with a progress bar.

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
    with closing(_Bars()) as bars:
        try:
            moved = library.move(source, settings.database_url, program.schemas(), bars.show)
        except MoveFinished as finished:
            click.echo(str(finished))
            return
    _print(moved, source, settings.database_url)


class _Bars:
    """Show one progress bar per phase."""

    def __init__(self) -> None:
        self._phase: str | None = None
        self._bar: Any = None
        self._done = 0

    def show(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self.close()
            self._phase = progress.phase
            # Drawing the bar for each row would take longer than moving the row.
            step = max(1, progress.total // 200)
            self._bar = click.progressbar(
                length=progress.total, label=f"{progress.phase:9}", update_min_steps=step
            )
            self._bar.__enter__()
        self._bar.update(progress.done - self._done)
        self._done = progress.done

    def close(self) -> None:
        """End the current bar."""
        self._done = 0
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


def _print(moved: Moved, source: str, target: str) -> None:
    for table, rows in moved.rows.items():
        click.echo(f"{table}: {rows:,}")
    if moved.unknown:
        click.echo(f"Not moved, because they are not Threadhold's: {', '.join(moved.unknown)}")
    click.echo(
        f"Moved and compared: {sum(moved.rows.values()):,} rows. {source} is unchanged. Serve "
        f"with DATABASE_URL={shown(target)}"
    )
