"""Tenant: export or erase the data of one tenant (`threadhold tenant`)."""

import shutil
from pathlib import Path

import click

from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.keys import use_keys
from threadhold.cli.options import database_option
from threadhold.program import Program


@click.group()
def tenant() -> None:
    """Export or erase all data of one tenant."""


@tenant.command()
@database_option
@click.argument("name", metavar="TENANT")
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="A new or empty folder.",
)
@pass_program
def export(program: Program, database_url: str | None, name: str, folder: Path) -> None:
    """Write the rows of TENANT as JSON lines, one file for each table; servers may run.

    An encrypted database needs LANGGRAPH_AES_KEY: the rows are decrypted.
    """
    from threadhold import tenant_data

    settings = load_settings(program.settings, database_url=database_url)
    use_keys(settings)
    done = tenant_data.export(settings.database_url, name, folder, program.tenant_rules())
    for table, count in done.rows.items():
        click.echo(f"{table}: {count:,}")
    for path in done.missing:
        click.echo(f"Missing file: {path}")
    click.echo(f"Exported {sum(done.rows.values()):,} rows and {done.files:,} files to {folder}")


@tenant.command()
@database_option
@click.argument("name", metavar="TENANT")
@click.option(
    "--confirm", metavar="TENANT", help="The same name again; without it nothing changes."
)
@pass_program
def erase(program: Program, database_url: str | None, name: str, confirm: str | None) -> None:
    """Show what an erase of TENANT would remove, and remove it with --confirm TENANT.

    Stop the server of a SQLite file first.
    """
    from threadhold import tenant_data

    settings = load_settings(program.settings, database_url=database_url)
    if confirm is not None and confirm != name:
        raise click.UsageError(
            f"--confirm names {confirm!r}, and not {name!r}. Nothing was erased."
        )
    do = tenant_data.plan if confirm is None else tenant_data.erase
    done = do(settings.database_url, name, program.tenant_rules())
    for table, count in done.rows.items():
        click.echo(f"{table}: {count:,}")
    for path in done.files:
        click.echo(f"File that stays: {path}")
    for folder in filter(Path.exists, program.tenant_folders(name)):
        if confirm is not None:
            shutil.rmtree(folder)
        click.echo(f"{'Folder' if confirm is None else 'Removed folder'}: {folder}")
    if confirm is not None:
        click.echo(f"Erased {done.count:,} rows")
    else:
        click.echo(f"Would erase {done.count:,} rows. To erase them: --confirm {name}")
