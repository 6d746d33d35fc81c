"""Keys: the commands that rotate keys and encrypt older rows (`keys rotate`, `keys encrypt`)."""

from pathlib import Path

import click

from langgraph_runtime_sql import process
from threadhold.cli.group import load_settings, pass_program
from threadhold.cli.options import config_option, database_option
from threadhold.config_file import read_config
from threadhold.program import Program
from threadhold.settings import Settings


@click.group()
def keys() -> None:
    """Rotate the keys of an encrypted database, and encrypt older rows."""


@keys.command()
@config_option
@database_option
@click.option("--data", is_flag=True, help="Also make new data keys and encrypt all rows again.")
@pass_program
def rotate(
    program: Program, langgraph_json: Path | None, database_url: str | None, data: bool
) -> None:
    """Wrap all data keys with LANGGRAPH_AES_KEY; OLD_AES_KEYS names the keys before it.

    Servers may run if they have both settings. Afterwards OLD_AES_KEYS can go.
    """
    from threadhold.admin import keys as library

    settings = _settings(program, langgraph_json, database_url)
    count = library.rotate(settings.database_url)
    click.echo(f"Data keys wrapped with the current master key: {count:,}")
    if data:
        changed = library.encrypt(settings.database_url, _report, new_keys=True)
        click.echo(f"Encrypted with new data keys: {changed:,} rows and values")


@keys.command()
@config_option
@database_option
@pass_program
def encrypt(program: Program, langgraph_json: Path | None, database_url: str | None) -> None:
    """Encrypt the rows that were stored before a key was configured.

    Servers may run if they have the key. After an interruption the same command continues. Once all
    rows are encrypted, plain ones are refused.
    """
    from threadhold.admin import keys as library

    settings = _settings(program, langgraph_json, database_url)
    changed = library.encrypt(settings.database_url, _report)
    click.echo(f"Encrypted: {changed:,} rows and values")


@keys.command("export")
@database_option
@click.argument("destination", type=click.Path(dir_okay=False, path_type=Path))
@pass_program
def export_keys(program: Program, database_url: str | None, destination: Path) -> None:
    """Write the wrapped data keys to DESTINATION, for a backup without them."""
    from threadhold.admin import key_files

    settings = load_settings(program.settings, database_url=database_url)
    count = key_files.export_keys(settings.database_url, destination)
    click.echo(f"{destination}: {count:,} keys. Keep only the newest, apart from the backups")


@keys.command("import")
@database_option
@click.argument("source", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@pass_program
def import_keys(program: Program, database_url: str | None, source: Path) -> None:
    """Add the data keys of SOURCE to a restored database, before it is served."""
    from threadhold.admin import key_files

    settings = load_settings(program.settings, database_url=database_url)
    count = key_files.import_keys(settings.database_url, source)
    click.echo(f"Keys added: {count:,}")


def use_keys(settings: Settings, tenant_key: str | None = None) -> None:
    """Let a command that does not load the platform use the settings' master keys."""
    key = settings.langgraph_aes_key
    values = {"tenant_key": tenant_key, "aes_key": None if key is None else key.encode()}
    process.configure(process.configuration().options.model_copy(update=values))


def _settings(program: Program, langgraph_json: Path | None, database_url: str | None) -> Settings:
    given = {"langgraph_json": langgraph_json, "database_url": database_url}
    settings = load_settings(program.settings, **given)
    use_keys(settings, read_config(settings.langgraph_json).tenant_key)
    return settings


def _report(table: str, count: int) -> None:
    if count:
        click.echo(f"  {table}: {count:,}", err=True)
