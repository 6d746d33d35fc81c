"""Backup of Postgres: run its own programs so that row-level security lets them see all rows."""

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from langgraph_runtime_sql.database.url import postgres_dsn, shown
from threadhold.admin.errors import BackupFailed

_TABLES = """
    SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p') AND nspname = current_schema()
"""


def dump(url: str, destination: Path) -> None:
    """Write the database of `url` to a file, without the rows of its keys.

    Raises:
        BackupFailed: `pg_dump` is missing or fails.
    """
    destination.touch(0o600)
    _run(
        url,
        "pg_dump",
        *("--enable-row-security", "--format=custom", "--no-owner", "--no-privileges"),
        # An erased tenant's data must stay unreadable; see `key_files`.
        "--exclude-table-data=*.tenant_keys",
        f"--file={destination}",
    )


def load(url: str, source: Path) -> None:
    """Restore a file of `dump` into the empty database of `url`, all or nothing.

    Raises:
        BackupFailed: the database is not empty, or `pg_restore` is missing or fails.
    """
    try:
        with psycopg.connect(postgres_dsn(url)) as connection:
            found = connection.execute(_TABLES).fetchone()
    except psycopg.Error as error:
        raise BackupFailed(f"Cannot restore to {shown(url)}: {error}") from error
    if found is not None and found[0]:
        raise BackupFailed(f"{shown(url)} is not empty: create a new database for the restore")
    _run(
        url,
        "pg_restore",
        *("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"),
        str(source),
    )


def _run(url: str, program: str, *arguments: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise BackupFailed(
            f"{program} is not installed: install Postgres's client programs "
            "(package postgresql-client), at least as new as the server"
        )
    # The password is in the environment, because other users can read command lines.
    given = conninfo_to_dict(postgres_dsn(url))
    password = given.pop("password", None)
    environment = {
        **os.environ,
        "PGOPTIONS": f"{os.environ.get('PGOPTIONS', '')} -c threadhold.everything=on".strip(),
        **({} if password is None else {"PGPASSWORD": str(password)}),
    }
    done = subprocess.run(
        [
            path,
            f"--dbname={make_conninfo('', **{key: str(value) for key, value in given.items()})}",
            *arguments,
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackupFailed(f"{program} failed: {done.stderr.strip()[-2000:]}")
