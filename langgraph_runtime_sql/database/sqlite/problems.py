"""Problems: translate an error of SQLite into one of ours, by its code."""

import os
import resource
import sqlite3
from pathlib import Path

from langgraph_runtime_sql.database.sqlite.damage import is_damage
from langgraph_runtime_sql.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseOutage,
    DatabaseState,
    RuntimeSqlError,
)

# Less room than this is none. An outage ends when there is more.
LEAST_ROOM_BYTES, ROOM_BYTES = 2**20, 8 * 2**20
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
# SQLite does not say why the system refused to write or to create a file.
_FAILING = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def problem(error: BaseException, path: Path) -> RuntimeSqlError | None:
    """Return our error for one of SQLite, or None if it concerns only its own statement.

    Args:
        error: The error.
        path: The database file.
    """
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    code, said = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error)
    if code in _BUSY:
        return DatabaseBusy(said)
    if code == sqlite3.SQLITE_FULL:
        return DatabaseOutage(DatabaseState.DISK_FULL, lack_of_room(path, ROOM_BYTES) or said)
    if code in _READ_ONLY:
        return DatabaseOutage(DatabaseState.READ_ONLY, f"{path}: {said}")
    if code in _FAILING:
        if (lack := lack_of_room(path, LEAST_ROOM_BYTES)) is not None:
            return DatabaseOutage(DatabaseState.DISK_FULL, lack)
        return DatabaseOutage(DatabaseState.FAILING, f"{path}: {said}")
    if is_damage(error):
        return DatabaseDamaged(path, said)
    return None


def lack_of_room(path: Path, least: int) -> str | None:
    """Return why the database has no space for more bytes, or None if it has.

    Args:
        path: The database file.
        least: The number of bytes.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY:
        files = (path, path.with_name(f"{path.name}-wal"))
        largest = max(each.stat().st_size if each.exists() else 0 for each in files)
        if largest + least > limit:
            return f"{path}: the process may write files up to {limit:,} bytes (`ulimit -f`)"
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        # The folder is gone. SQLite's own message says so.
        return None
    if (left := disk.f_bavail * disk.f_frsize) < least:
        return f"{path.parent} has {left:,} bytes left"
    return None
