"""Backup: copy a live SQLite database consistently."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.admin import key_files


class BackupFailed(RuntimeSqlError):
    """The backup failed; there is no new copy."""


def back_up(url: str, destination: Path, *, force: bool = False) -> int:
    """Copy the database of `url` to `destination`, and return the copy's size in bytes.

    The keys of an encrypted database go into a file of their own (`keys_beside`).

    The copy is a snapshot, even while a server writes. The file appears under its name only
    when it is complete and has passed the integrity check.

    Raises:
        BackupFailed: there is no database, `destination` exists and `force` is
            not set, it cannot be written, or the database is damaged.
        BadDatabaseUrl: the URL names no SQLite file.
    """
    if is_postgres(url):
        raise BackupFailed(
            "`backup` copies only SQLite files. For Postgres use "
            'pg_dump --format=custom --file=backup.dump "$DATABASE_URL"'
        )
    source = database_path(url)
    if not source.is_file():
        raise BackupFailed(f"There is no database at {source}")
    if destination.exists() and destination.samefile(source):
        raise BackupFailed(f"{destination} is the database itself")
    if destination.exists() and not force:
        raise BackupFailed(f"{destination} exists; --force replaces it")
    try:
        with TemporaryDirectory(".partial", f".{destination.name}.", destination.parent) as folder:
            partial = Path(folder, destination.name)
            left_out = _copy(source, partial)
            if left_out:
                key_files.write(keys_beside(destination), left_out)
            _publish(partial, destination, force)
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"Cannot back up {source} to {destination}: {error}") from error
    return destination.stat().st_size


def keys_beside(destination: Path) -> Path:
    """Return the path of the keys that belong to a backup."""
    return destination.with_name(f"{destination.name}.keys")


def _copy(source: Path, partial: Path) -> list[Row]:
    """Copy the database without its wrapped keys, and return these."""
    # Other users must not read it unless its owner allows it.
    partial.touch(0o600)
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as live,
        closing(sqlite3.connect(partial)) as copy,
    ):
        # All pages in one read transaction, which does not block writers.
        live.backup(copy)
        # In WAL mode the copy would need a -wal file.
        copy.execute("PRAGMA journal_mode = DELETE")
        left_out = key_files.leave_out(copy)
        problems = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    if problems != ["ok"]:
        raise BackupFailed(f"{source} is damaged: {'; '.join(problems[:5])}")
    return left_out


def _publish(partial: Path, destination: Path, force: bool) -> None:
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    if force:
        partial.replace(destination)
    else:
        # Unlike a rename, this fails if another process has created the file meanwhile.
        destination.hardlink_to(partial)
    folder = os.open(destination.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
