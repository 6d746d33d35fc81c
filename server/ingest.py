"""Ingest: what `python -m server ingest` brings into the database, by the kind of path it is given."""

from collections.abc import Callable
from pathlib import Path

import click

# Lines about what was skipped, before the rest is only counted.
SHOWN = 50


def documents(path: Path, tenant: str | None) -> None:
    """A folder of documents, or one document, for the graph `chat`.

    Args:
        tenant: whose they are to be; None: shared by all tenants.
    """
    from my_agent.chat.documents.ingestion import ingest

    with click.progressbar(length=0, label="Reading", show_pos=False) as bar:

        def show(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        report = ingest(path, tenant or "", show)
    for name, why in report.skipped[:SHOWN]:
        click.echo(f"skipped {name}: {why}", err=True)
    if (more := len(report.skipped) - SHOWN) > 0:
        click.echo(f"and {more} more were skipped", err=True)
    click.echo(str(report))


def register(path: Path, tenant: str | None) -> None:
    """A CSV file of companies in the format of Singapore's register, for the graph `icp_finder`.

    Args:
        tenant: whose they are to be; None: shared by all tenants.

    Raises:
        click.ClickException: it is no such file.
    """
    from my_agent.icp_finder.register import BadRow, RegisterError
    from my_agent.icp_finder.register import ingest as bring_in

    skipped: list[BadRow] = []

    def note(row: BadRow) -> None:
        if len(skipped) < SHOWN:
            skipped.append(row)

    try:
        with click.progressbar(length=path.stat().st_size, label="Reading") as bar:
            done = bring_in(path, tenant or "", report=note, progress=bar.update)
    except RegisterError as error:
        raise click.ClickException(str(error)) from error
    for row in skipped:
        click.echo(f"skipped line {row.line}: {row.why}", err=True)
    if (more := done.bad - len(skipped)) > 0:
        click.echo(f"and {more} more lines were skipped", err=True)
    click.echo(f"{path}: {done.kept:,} companies, {done.bad:,} lines skipped")


Reader = Callable[[Path, str | None], None]

READERS: dict[str, Reader] = {".csv": register}
"""What reads a file by its suffix, if it is no document."""


def ingest(path: Path, tenant: str | None) -> None:
    """Bring a folder or a file into the database in use, and print what came of it."""
    reader = READERS.get(path.suffix.lower(), documents) if path.is_file() else documents
    reader(path, tenant)
