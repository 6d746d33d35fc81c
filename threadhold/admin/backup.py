"""Backup: copy a live database consistently, and put a copy in its place."""

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.progress import Progress, Report, ignore
from threadhold.admin import key_files
from threadhold.admin.errors import BackupFailed

# About 4 MB at a time, so that a large file shows its progress.
STEP_PAGES = 1024
# Instructions of SQLite between two signs of life while it checks a file.
CHECK_STEPS = 1_000_000


def back_up(url: str, destination: Path, *, force: bool = False, report: Report = ignore) -> int:
    """Copy the database of `url` to `destination`, and return the copy's size in bytes.

    On Postgres the copy is a dump in the custom format. The keys of an encrypted database go into a
    file of their own (`keys_beside`).

    The copy is a snapshot, even while servers write. The file appears under its name only when it
    is complete and has been examined.

    Args:
        url: The URL of the database.
        destination: The new file.
        force: Whether it replaces an existing file.
        report: Gets the progress.

    Raises:
        BackupFailed: there is no database, `destination` exists and `force` is not set, it cannot
            be written, or the database is damaged.
        BadDatabaseUrl: the URL names no database.
    """
    _check_destination(url, destination, force=force)
    try:
        with TemporaryDirectory(".partial", f".{destination.name}.", destination.parent) as folder:
            partial = Path(folder, destination.name)
            # Other users must not read it unless its owner allows it.
            partial.touch(0o600)
            if is_postgres(url):
                from threadhold.admin import backup_postgres

                backup_postgres.dump(url, partial, report)
                backup_postgres.dump_keys(url, keys_beside(destination))
            elif left_out := _copy(database_path(url), partial, report):
                key_files.write(keys_beside(destination), left_out)
            _publish(partial, destination, force)
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"Cannot back up {shown(url)} to {destination}: {error}") from error
    return destination.stat().st_size


def restore(url: str, source: Path, *, force: bool = False, report: Report = ignore) -> Path | None:
    """Put a backup in the place of the database of `url`, which no server uses.

    Args:
        url: The URL of the database. On Postgres it exists and is empty.
        source: What `back_up` has written.
        force: Whether it replaces an existing SQLite file, which is kept beside it.
        report: Gets the progress.

    Returns:
        The path of the SQLite file that was replaced.

    Raises:
        BackupFailed: the backup is damaged, or there is a database and `force` is not set.
        DatabaseInUse: a server uses the database.
        BadDatabaseUrl: the URL names no database.
    """
    if not source.is_file():
        raise BackupFailed(f"There is no backup at {source}")
    if is_postgres(url):
        from threadhold.admin import backup_postgres

        backup_postgres.restore(url, source, report)
        return None
    try:
        return _restore_file(database_path(url), source, force=force, report=report)
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"Cannot restore {source}: {error}") from error


def _restore_file(target: Path, source: Path, *, force: bool, report: Report) -> Path | None:
    ownership = Ownership(target)
    ownership.take()
    try:
        if target.exists() and not force:
            raise BackupFailed(f"{target} exists. --force replaces it, and keeps it beside")
        with TemporaryDirectory(".partial", f".{target.name}.", target.parent) as folder:
            partial = Path(folder, target.name)
            partial.touch(0o600)
            with (
                closing(
                    sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
                ) as backup,
                closing(sqlite3.connect(partial)) as copy,
            ):
                _copy_pages(backup, copy, report)
                _check_integrity(source, copy, report)
            replaced = _set_aside(target)
            _publish(partial, target, force=False)
    finally:
        ownership.release()
    return replaced


def _set_aside(target: Path) -> Path | None:
    """Move a SQLite file with the files beside it, and return its new path."""
    if not target.exists():
        return None
    aside = target.with_name(f"{target.name}.replaced-{datetime.now():%Y%m%d-%H%M%S-%f}")
    for ending in ("-wal", "-shm", ""):
        beside = target.with_name(target.name + ending)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + ending))
    return aside


def _check_destination(url: str, destination: Path, *, force: bool) -> None:
    if not is_postgres(url):
        source = database_path(url)
        if not source.is_file():
            raise BackupFailed(f"There is no database at {source}")
        if destination.exists() and destination.samefile(source):
            raise BackupFailed(f"{destination} is the database itself")
    if destination.exists() and not force:
        raise BackupFailed(f"{destination} exists; --force replaces it")


def keys_beside(destination: Path) -> Path:
    """Return the path of the keys that belong to a backup."""
    return destination.with_name(f"{destination.name}.keys")


def _copy(source: Path, partial: Path, report: Report) -> list[Row]:
    """Copy the database without its wrapped keys, and return these."""
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as live,
        closing(sqlite3.connect(partial)) as copy,
    ):
        _copy_pages(live, copy, report)
        # In WAL mode the copy would need a -wal file.
        copy.execute("PRAGMA journal_mode = DELETE")
        left_out = key_files.leave_out(copy)
        _check_integrity(source, copy, report)
    return left_out


def _copy_pages(live: sqlite3.Connection, copy: sqlite3.Connection, report: Report) -> None:
    [(size,)] = live.execute("PRAGMA page_size")

    def step(_: int, remaining: int, total: int) -> None:
        report(Progress("Copying", (total - remaining) * size, total * size, "bytes"))

    # One read transaction around all steps, which does not block writers. Without it SQLite would
    # begin the copy again after each write between two steps.
    live.execute("BEGIN")
    live.execute("SELECT 1 FROM sqlite_master").fetchone()
    try:
        live.backup(copy, pages=STEP_PAGES, progress=step)
    finally:
        live.rollback()


def _check_integrity(source: Path, copy: sqlite3.Connection, report: Report) -> None:
    def live() -> None:
        report(Progress("Checking the copy", 0, 0))

    copy.set_progress_handler(live, CHECK_STEPS)
    problems = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    if problems != ["ok"]:
        raise BackupFailed(f"{source} is damaged: {'; '.join(problems[:5])}")


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
