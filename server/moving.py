"""The move of everything from a SQLite file to Postgres: `threadhold migrate --from --to`."""

from contextlib import closing
from typing import Any

import click

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import schema
from langgraph_runtime_sql.database.url import shown
from my_agent import migrations as product_migrations
from my_agent.database import ProductDatabase
from my_agent.database import metadata as product_metadata
from server.settings import Settings
from threadhold import move as library
from threadhold.move import Moved, MoveFinished, Progress, Schema
from threadhold.platform import LangGraphPlatform


def move(settings: Settings, source: str) -> None:
    """Move everything in `source` to the settings' database, with a progress bar.

    Args:
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
            moved = library.move(source, settings.database_url, schemas(), bars.show)
        except MoveFinished as finished:
            click.echo(str(finished))
            return
    _say(moved, source, settings.database_url)


def schemas() -> tuple[Schema, Schema]:
    """Every table that this project migrates: the runtime's, and those of the graphs."""
    # Their tables are known once they have been imported.
    from my_agent.chat import tables as _chat  # noqa: F401
    from my_agent.icp_finder import tables as _icp_finder  # noqa: F401

    runtime = Schema(
        versions="alembic_version",
        heads=frozenset({migrations.HEAD}),
        known=migrations.scripts,
        tables=schema.metadata.sorted_tables,
        create=migrations.migrate,
        required=True,
    )
    products = Schema(
        versions=product_migrations.VERSIONS,
        heads=product_migrations.HEADS,
        known=product_migrations.scripts,
        tables=product_metadata.sorted_tables,
        create=lambda url: ProductDatabase(url).close(),
    )
    return runtime, products


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
