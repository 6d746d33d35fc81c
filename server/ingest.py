"""Ingest: load documents or a company register into the database (`python -m server ingest`)."""

from collections.abc import Callable
from pathlib import Path

import click

from threadhold.cli import Progress, ProgressLine

# Skipped entries to print; the rest is only counted.
MAX_SKIPPED_LINES = 50


def documents(path: Path, tenant: str | None, emptied: bool) -> None:
    """Load a document or a folder of documents for the graph `chat`.

    Args:
        path: The file or folder.
        tenant: The owner; None shares the documents with all tenants.
        emptied: Whether a folder without documents deletes those that it had.

    Raises:
        click.ClickException: the folder has no document any more, and `emptied` is false.
    """
    from my_agent.chat.documents.ingestion import EmptiedFolderError, ingest

    def show(done: int, of: int) -> None:
        line.show(Progress("Reading", done, of, "bytes"))

    try:
        with ProgressLine() as line:
            report = ingest(path, tenant or "", show, emptied=emptied)
    except EmptiedFolderError as error:
        raise click.ClickException(f"{error} To delete them, add --yes.") from error
    for name, why in report.skipped[:MAX_SKIPPED_LINES]:
        click.echo(f"skipped {name}: {why}", err=True)
    if (more := len(report.skipped) - MAX_SKIPPED_LINES) > 0:
        click.echo(f"and {more} more were skipped", err=True)
    click.echo(str(report))


def register(path: Path, tenant: str | None, emptied: bool) -> None:
    """Load a CSV file in the format of Singapore's company register for the graph `icp_finder`.

    Args:
        path: The file.
        tenant: The owner; None shares the companies with all tenants.
        emptied: Not used: a register deletes nothing.

    Raises:
        click.ClickException: the file has another format.
    """
    from my_agent.companies.register import BadRow, RegisterError
    from my_agent.companies.register import ingest as load

    skipped: list[BadRow] = []

    def note(row: BadRow) -> None:
        if len(skipped) < MAX_SKIPPED_LINES:
            skipped.append(row)

    read, size = 0, path.stat().st_size

    def show(more: int) -> None:
        nonlocal read
        read += more
        line.show(Progress("Reading", read, size, "bytes"))

    try:
        with ProgressLine() as line:
            done = load(path, tenant or "", report=note, progress=show)
    except RegisterError as error:
        raise click.ClickException(str(error)) from error
    for row in skipped:
        click.echo(f"skipped line {row.line}: {row.why}", err=True)
    if (more := done.bad - len(skipped)) > 0:
        click.echo(f"and {more} more lines were skipped", err=True)
    click.echo(f"{path}: {done.kept:,} companies, {done.bad:,} lines skipped")


Reader = Callable[[Path, str | None, bool], None]

READERS: dict[str, Reader] = {".csv": register}
"""File suffix to reader, for files that are not documents."""


def ingest(path: Path, tenant: str | None, *, emptied: bool = False) -> None:
    """Load a folder or a file into the database in use, and print a report."""
    reader = READERS.get(path.suffix.lower(), documents) if path.is_file() else documents
    reader(path, tenant, emptied)
