"""Backup of Postgres: dump and restore a database with Postgres's own programs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from psycopg import Connection, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from langgraph_runtime_sql.database.url import postgres_dsn, shown
from langgraph_runtime_sql.progress import Progress, Report
from threadhold.admin import key_files
from threadhold.admin.errors import BackupFailed

# Row-level security hides every row from an ordinary role without this setting.
_EVERYTHING = "-c threadhold.everything=on"
# What the programs say with `--verbose` when they begin with a table.
_BEGINS = ("dumping contents of table", "processing data for table")
# Its rows in the table of contents of a dump.
_ROWS = " TABLE DATA "
_KEYS = "tenant_keys"
_TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace LIMIT 1
"""
_COUNT = """
    SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relname != %s
        AND n.nspname !~ '^pg_' AND n.nspname != 'information_schema'
"""


def dump(url: str, partial: Path, report: Report) -> None:
    """Write a consistent dump of a database without its wrapped keys. Servers may run.

    Args:
        url: The URL of the database.
        partial: The new file.
        report: Gets the progress, table by table.

    Raises:
        BackupFailed: `pg_dump` is missing, or has failed.
    """
    options = ("--format=custom", "--enable-row-security", "--no-owner", "--no-privileges")
    left_out = f"--exclude-table-data={_KEYS}"
    with _connected(url) as conn:
        found = conn.execute(_COUNT, (_KEYS,)).fetchone()
    tables = _Tables("Dumping", int(str(found[0])) if found else 0, report)
    _run("pg_dump", url, [*options, left_out, f"--file={partial}"], tables.said)
    tables.end()
    # An incomplete file is noticed.
    _contents(url, partial)


def _contents(url: str, source: Path) -> list[str]:
    """Return the table of contents of a dump.

    Raises:
        BackupFailed: `source` is no dump, or an incomplete one.
    """
    return _run("pg_restore", url, ["--list", str(source)], lambda _: None).splitlines()


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
        report: Gets the progress, table by table.

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
    count = sum(_ROWS in line for line in _contents(url, source))
    tables = _Tables("Restoring", count, report)
    _run("pg_restore", url, [*options, str(source)], tables.said)
    tables.end()


class _Tables:
    """Count the tables with which a program begins."""

    def __init__(self, phase: str, total: int, report: Report) -> None:
        self._phase, self._total, self._report = phase, total, report
        self._begun = 0

    def said(self, line: str) -> None:
        if line.startswith(_BEGINS):
            # The one before is done.
            self._report_done(self._begun)
            self._begun += 1

    def end(self) -> None:
        self._report_done(self._total)

    def _report_done(self, done: int) -> None:
        self._report(Progress(self._phase, done, self._total, "tables"))


def _connected(url: str) -> "Connection[tuple[object, ...]]":
    try:
        return Connection.connect(postgres_dsn(url), options=_EVERYTHING)
    except OperationalError as error:
        raise BackupFailed(f"{shown(url)} cannot be reached: {error}") from error


def _run(program: str, url: str, arguments: Sequence[str], said: Callable[[str], None]) -> str:
    """Run a program of Postgres, and return its output.

    Args:
        program: Its name.
        url: The URL of the database.
        arguments: Its arguments.
        said: Gets each line of its errors and notes, without the program's name.

    Raises:
        BackupFailed: it is missing, or has failed.
    """
    path = shutil.which(program)
    if path is None:
        raise BackupFailed(
            f"There is no {program}. Install the client programs of Postgres, in the version of "
            "the server or later"
        )
    problems = []
    # A file, because a full pipe would block the program while its errors are read.
    with (
        TemporaryFile() as output,
        subprocess.Popen(
            [path, "--verbose", "--no-password", *arguments],
            env={**os.environ, **_environment(url)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stderr or ():
            said(line.partition(": ")[2].strip())
            if "error:" in line or "fatal:" in line.lower() or "detail:" in line.lower():
                problems.append(line.strip())
        process.wait()
        output.seek(0)
        content = output.read().decode(errors="replace")
    if process.returncode:
        raise BackupFailed("\n".join(problems[:5]) or f"{program} failed: {process.returncode}")
    return content


def _environment(url: str) -> dict[str, str]:
    """Return the variables that tell Postgres's programs where the database is.

    Other users can read command lines, so nothing of the URL is in them but the database's name.
    """
    found = {}
    for each in Conninfo.parse(postgres_dsn(url).encode()):
        if each.val is not None and each.envvar is not None:
            found[each.envvar.decode()] = each.val.decode()
    # Their notes are read, so they must not be translated.
    found["LC_ALL"] = "C"
    found["PGOPTIONS"] = f"{found.get('PGOPTIONS', '')} {_EVERYTHING}".strip()
    return found
