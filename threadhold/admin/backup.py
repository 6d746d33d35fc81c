"""Backup: copy a live database consistently, and restore a copy."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.database.url import database_path, is_postgres
from threadhold.admin import key_files
from threadhold.admin.errors import BackupFailed


def back_up(url: str, destination: Path, *, force: bool = False) -> int:
    """Copy the database of `url` to `destination`, and return the copy's size in bytes.

    The keys of an encrypted database go into a file of their own (`keys_beside`).

    The copy is a snapshot, even while a server writes. The file appears under its name only
    when it is complete and has passed the integrity check.

    Raises:
        BackupFailed: there is no database, `destination` exists and `force` is
            not set, it cannot be written, or the database is damaged.
        BadDatabaseUrl: the URL names no database.
    """
    if is_postgres(url):
        _check_free(destination, force)
        from threadhold.admin import backup_postgres

        try:
            with _partial(destination) as partial:
                backup_postgres.dump(url, partial)
                key_files.export_keys(url, keys_beside(destination))
                _publish(partial, destination, force)
        except OSError as error:
            raise BackupFailed(f"Cannot back up to {destination}: {error}") from error
        return destination.stat().st_size
    source = database_path(url)
    if not source.is_file():
        raise BackupFailed(f"There is no database at {source}")
    if destination.exists() and destination.samefile(source):
        raise BackupFailed(f"{destination} is the database itself")
    _check_free(destination, force)
    try:
        with _partial(destination) as partial:
            left_out = _copy(source, partial)
            if left_out:
                key_files.write(keys_beside(destination), left_out)
            _publish(partial, destination, force)
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"Cannot back up {source} to {destination}: {error}") from error
    return destination.stat().st_size


def restore(url: str, source: Path, *, force: bool = False) -> None:
    """Replace the database of `url` by a backup. No server may run.

    A SQLite file that exists is kept beside the new one, with the suffix `.before-restore`. A
    Postgres database must be empty.

    Args:
        url: The database.
        source: A file that `back_up` has written.
        force: Whether to replace an existing SQLite file.

    Raises:
        BackupFailed: the backup is damaged, or the database exists or is not empty.
        DatabaseInUse: a server uses the database.
    """
    if not source.is_file():
        raise BackupFailed(f"There is no backup at {source}")
    if is_postgres(url):
        from threadhold.admin import backup_postgres

        backup_postgres.load(url, source)
        return
    target = database_path(url)
    if target.exists() and not force:
        raise BackupFailed(f"{target} exists; --force puts the backup in its place")
    ownership = Ownership(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        ownership.take()
        with _partial(target) as partial:
            _copy_checked(source, partial)
            for suffix in ("", "-wal", "-shm"):
                old = target.with_name(target.name + suffix)
                if old.exists():
                    old.replace(target.with_name(f"{target.name}.before-restore{suffix}"))
            _publish(partial, target, force=True)
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"Cannot restore {source} to {target}: {error}") from error
    finally:
        ownership.release()


def _copy_checked(source: Path, partial: Path) -> None:
    partial.touch(0o600)
    with (
        closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as backup,
        closing(sqlite3.connect(partial)) as copy,
    ):
        backup.backup(copy)
        problems = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    if problems != ["ok"]:
        raise BackupFailed(f"{source} is damaged: {'; '.join(problems[:5])}")


def _check_free(destination: Path, force: bool) -> None:
    if destination.exists() and not force:
        raise BackupFailed(f"{destination} exists; --force replaces it")


@contextmanager
def _partial(destination: Path) -> Iterator[Path]:
    """Yield a path for the file until it is complete."""
    with TemporaryDirectory(".partial", f".{destination.name}.", destination.parent) as folder:
        yield Path(folder, destination.name)


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
