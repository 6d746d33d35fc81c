"""Command line: `python -m server`, Threadhold's commands and those of the example app."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from starlette.applications import Starlette

from my_agent.tables import tables
from server.settings import Settings
from threadhold import cli
from threadhold.cli import Program, command_line, database_option
from threadhold.tables import Tables

load_settings = partial(cli.load_settings, Settings)


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app of `server.app`."""
    from server import app

    return app.create_app(settings, studio=studio)


def own_tables() -> Sequence[Tables]:
    """Return the tables of the graphs."""
    return [tables]


def tenant_folders(tenant: str) -> Sequence[Path]:
    """Return the folder of a tenant's research projects."""
    from my_agent.research.files import folder
    from my_agent.research.projects import Key
    from my_agent.research.settings import ResearchSettings

    found = folder(ResearchSettings.from_environment(), Key(tenant, ""))
    return [] if found is None else [found]


@click.command()
@database_option
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--tenant", help="Tenant that owns the data.  [default: shared by all tenants]")
@click.option("--yes", is_flag=True, help="Let an emptied folder delete its documents.")
def ingest(path: Path, tenant: str | None, yes: bool, database_url: str | None) -> None:
    """Load PATH into the database: a folder of documents, or one file.

    Documents are Markdown, text, HTML, PDF, Word, Excel, PowerPoint and CSV. Running it again
    updates changed documents. A single CSV file is a company register.
    """
    from server.ingest import ingest as load
    from threadhold.admin import tables_beside_server

    with tables_beside_server(load_settings(database_url=database_url).database_url):
        load(path, tenant, emptied=yes)


PROGRAM = Program(
    name="python -m server",
    settings=Settings,
    create_app=create_app,
    # By file, so that a folder `server` in the working directory cannot shadow it.
    launch=("-P", str(Path(__file__).with_name("__main__.py"))),
    tables=own_tables,
    tenant_folders=tenant_folders,
)

main = command_line(PROGRAM, [ingest])
