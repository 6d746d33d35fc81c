"""Ingest: what `threadhold ingest` brings into the database, by the kind of path it is given."""

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


Reader = Callable[[Path, str | None], None]

READERS: dict[str, Reader] = {}
"""What reads a file by its suffix, if it is no document."""


def ingest(path: Path, tenant: str | None) -> None:
    """Bring a folder or a file into the database in use, and print what came of it."""
    reader = READERS.get(path.suffix.lower(), documents) if path.is_file() else documents
    reader(path, tenant)
