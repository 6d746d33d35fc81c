"""Key files: the wrapped data keys of a database, apart from its backups.

A backup with its keys would keep an erased tenant's data readable. So `backup` leaves them out and
writes them into a file of their own, of which only the newest is kept.
"""

import json
import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import tenant_keys
from langgraph_runtime_sql.database.shared_lock import shared_lock
from langgraph_runtime_sql.database.sqlite.engine import DIALECT
from langgraph_runtime_sql.database.statements import InsertNew, Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.migrations import open_database

_FIELDS = ("key_id", "tenant", "version", "wrapped", "master")
_DATES = ("created_at", "erased_at")
# Also the erased ones, so that they are erased in a restored backup.
_ALL = select(tenant_keys).order_by(tenant_keys.c.tenant, tenant_keys.c.version)


class BadKeyFile(RuntimeSqlError):
    """A file of keys cannot be read or written."""


def export_keys(url: str, destination: Path) -> int:
    """Write the wrapped keys of a database to a file, and return how many.

    The file appears under its name only when it is complete. Only its owner may read it.

    Raises:
        BadKeyFile: the file cannot be written.
    """
    database = open_database(url, exclusive=False)
    try:
        database.start_threads()
        found = database.read_sync(lambda conn: conn.fetchall(_ALL))
    finally:
        database.close()
    write(destination, found)
    return sum(row["wrapped"] is not None for row in found)


def import_keys(url: str, source: Path) -> int:
    """Add the keys of a file to a restored database, and return how many it lacked.

    A key that was erased, here or in the database of the file, is erased afterwards.

    Raises:
        BadKeyFile: the file cannot be read.
    """
    rows = _read(source)
    with shared_lock(url):
        database = open_database(url, exclusive=False)
        database.migrate()
        try:
            database.start_threads()
            return database.write_sync(lambda conn: sum(_add(conn, row) for row in rows))
        finally:
            database.close()


def leave_out(raw: sqlite3.Connection) -> list[Row]:
    """Remove the wrapped keys from a copy of a database, and return them.

    Args:
        raw: The copy, outside of a transaction.
    """
    known = raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'tenant_keys'").fetchone()
    found = Connection(raw, DIALECT).fetchall(_ALL) if known else []
    if found:
        raw.execute("UPDATE tenant_keys SET wrapped = NULL, master = NULL")
        raw.commit()
        # Free pages still hold the keys.
        raw.execute("VACUUM")
    return found


def write(destination: Path, rows: list[Row]) -> None:
    """Write keys to a file, which replaces an older one.

    Raises:
        BadKeyFile: the file cannot be written.
    """
    content = [{name: _plain(row[name]) for name in (*_FIELDS, *_DATES)} for row in rows]
    partial = destination.with_name(f".{destination.name}.{os.getpid()}.partial")
    try:
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with closing(os.fdopen(file, "w", encoding="utf-8")) as out:
            json.dump({"keys": content}, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(destination)
    except OSError as error:
        raise BadKeyFile(f"Cannot write the keys to {destination}: {error}") from error


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else str(value)


def _read(source: Path) -> list[Row]:
    try:
        found = json.loads(source.read_text(encoding="utf-8"))["keys"]
        return [
            {
                **{name: row[name] for name in _FIELDS},
                "key_id": UUID(row["key_id"]),
                **{name: row[name] and datetime.fromisoformat(row[name]) for name in _DATES},
            }
            for row in found
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadKeyFile(f"{source} is no file of keys: {error}") from error


def _add(conn: Connection, row: Row) -> int:
    is_live = row["wrapped"] is not None
    if conn.execute(InsertNew(tenant_keys).values(**row)):
        return int(is_live)
    columns = tenant_keys.c
    same: tuple[Any, ...] = (columns.key_id == row["key_id"], columns.erased_at.is_(None))
    if is_live:
        same = (*same, columns.wrapped.is_(None))
    changes = {name: row[name] for name in ("wrapped", "master", "erased_at")}
    changed = conn.execute(tenant_keys.update().where(*same).values(**changes))
    return changed if is_live else 0
