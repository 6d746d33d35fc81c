"""The move of everything from a SQLite file to Postgres: `threadhold migrate --from --to`."""

from contextlib import closing
from typing import Any

import click

from langgraph_runtime_sql.database.url import shown
from threadhold import move as library
from threadhold.move import Moved, MoveFinished, Progress
from threadhold.platform import LangGraphPlatform
from threadhold.program import Program
from threadhold.settings import Settings


def move(program: Program, settings: Settings, source: str) -> None:
    """Move everything in `source` to the settings' database, with a progress bar.

    Args:
        program: Whose tables are moved.
        settings: Their database is where it goes; their project says how checkpoints
            are encrypted.
        source: `sqlite:///path/to/file.db`

    Raises:
        RuntimeSqlError: it cannot be moved, or not all of it; the source is as it was.
    """
    # Checkpoints are read as the project's server does, by what it has in its environment.
    LangGraphPlatform(settings.langgraph_json, database_url=settings.database_url)
    with closing(_Bars()) as bars:
        try:
            moved = library.move(source, settings.database_url, program.schemas(), bars.show)
        except MoveFinished as finished:
            click.echo(str(finished))
            return
    _say(moved, source, settings.database_url)


class _Bars:
    """A progress bar for each phase, one after the other."""

    def __init__(self) -> None:
        self._phase: str | None = None
        self._bar: Any = None
        self._at = 0

    def show(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self.close()
            self._phase = progress.phase
            # Rows in tens of thousands: drawing each of them would take longer than moving it.
            step = max(1, progress.total // 200)
            self._bar = click.progressbar(
                length=progress.total, label=f"{progress.phase:9}", update_min_steps=step
            )
            self._bar.__enter__()
        self._bar.update(progress.done - self._at)
        self._at = progress.done

    def close(self) -> None:
        """End the last one."""
        self._at = 0
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


def _say(moved: Moved, source: str, target: str) -> None:
    for table, rows in moved.rows.items():
        click.echo(f"{table}: {rows:,}")
    if moved.left:
        click.echo(f"Not moved, because they are not Threadhold's: {', '.join(moved.left)}")
    click.echo(
        f"Moved and compared: {sum(moved.rows.values()):,} rows. {source} is as it was; serve "
        f"from now on with DATABASE_URL={shown(target)}"
    )
