"""Backup of Postgres: dump and restore a database with Postgres's own programs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from psycopg import Connection, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from langgraph_runtime_sql.database.url import postgres_dsn, shown
from threadhold.admin import key_files
from threadhold.admin.errors import BackupFailed

Report = Callable[[str], None]

# Row-level security hides every row from an ordinary role without this setting.
_EVERYTHING = "-c threadhold.everything=on"
# What the programs say with `--verbose` about the tables that they work on.
_PROGRESS = ("dumping contents of table", "processing data for table")
_KEYS = "tenant_keys"
_TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace LIMIT 1
"""


def dump(url: str, partial: Path, report: Report) -> None:
    """Write a consistent dump of a database without its wrapped keys. Servers may run.

    Args:
        url: The URL of the database.
        partial: The new file.
        report: Gets a line for each table.

    Raises:
        BackupFailed: `pg_dump` is missing, or has failed.
    """
    options = ("--format=custom", "--enable-row-security", "--no-owner", "--no-privileges")
    left_out = f"--exclude-table-data={_KEYS}"
    _run("pg_dump", url, [*options, left_out, f"--file={partial}"], report)
    # Reads the table of contents, so an incomplete file is noticed.
    _run("pg_restore", url, ["--list", str(partial)], lambda _: None)


def dump_keys(url: str, destination: Path) -> int:
    """Write the wrapped keys to a file of their own if there are any, and return how many."""
    with _connected(url) as conn:
        exists = conn.execute("SELECT to_regclass(%s) IS NOT NULL", (_KEYS,)).fetchone()
        used = (
            exists is not None and exists[0] and conn.execute(f"SELECT 1 FROM {_KEYS}").fetchone()
        )
    return key_files.export_keys(url, destination) if used else 0


def restore(url: str, source: Path, report: Report) -> None:
    """Load a dump into an empty database. After an error the database is empty again.

    Args:
        url: The URL of the database, which exists.
        source: The dump.
        report: Gets a line for each table.

    Raises:
        BackupFailed: the database has tables, `pg_restore` is missing, or it has failed.
    """
    with _connected(url) as conn:
        if (found := conn.execute(_TABLES).fetchone()) is not None:
            raise BackupFailed(
                f"{shown(url)} is not empty: it has the table {found[0]}. Create a new database, "
                "and restore into it"
            )
    name = conninfo_to_dict(postgres_dsn(url)).get("dbname") or ""
    options = ["--single-transaction", "--no-owner", "--no-privileges", f"--dbname={name}"]
    _run("pg_restore", url, [*options, str(source)], report)


def _connected(url: str) -> "Connection[tuple[object, ...]]":
    try:
        return Connection.connect(postgres_dsn(url), options=_EVERYTHING)
    except OperationalError as error:
        raise BackupFailed(f"{shown(url)} cannot be reached: {error}") from error


def _run(program: str, url: str, arguments: Sequence[str], report: Report) -> None:
    path = shutil.which(program)
    if path is None:
        raise BackupFailed(
            f"There is no {program}. Install the client programs of Postgres, in the version of "
            "the server or later"
        )
    with subprocess.Popen(
        [path, "--verbose", "--no-password", *arguments],
        env={**os.environ, **_environment(url)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        problems = []
        for line in process.stderr or ():
            said = line.partition(": ")[2].strip()
            if said.startswith(_PROGRESS):
                report(said)
            elif "error:" in line or "fatal:" in line.lower() or "detail:" in line.lower():
                problems.append(line.strip())
    if process.returncode:
        raise BackupFailed("\n".join(problems[:5]) or f"{program} failed: {process.returncode}")


def _environment(url: str) -> dict[str, str]:
    """Return the variables that tell Postgres's programs where the database is.

    Other users can read command lines, so nothing of the URL is in them but the database's name.
    """
    found = {}
    for each in Conninfo.parse(postgres_dsn(url).encode()):
        if each.val is not None and each.envvar is not None:
            found[each.envvar.decode()] = each.val.decode()
    found["PGOPTIONS"] = f"{found.get('PGOPTIONS', '')} {_EVERYTHING}".strip()
    return found
