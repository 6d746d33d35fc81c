"""Doctor: examine and repair a database (`threadhold doctor`)."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.sqlite.engine import (
    BUSY_TIMEOUT_SECONDS,
    DIALECT,
    SqliteEngine,
)
from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import DatabaseInUse
from langgraph_runtime_sql.migrations import HEAD, open_database
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.tools import without_platform
from threadhold.admin import findings as doctor
from threadhold.admin.findings import CannotExamine, Finding, RepairRefused, wrong_schema


def examine(url: str) -> list[Finding]:
    """Return all findings about the database of `url`, without changing it. A server may run.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
        BadDatabaseUrl: the URL names no database.
    """
    if is_postgres(url):
        from threadhold.admin import doctor_postgres

        return doctor_postgres.examine(url)
    path = _existing_file(url)
    ownership = Ownership(path)
    try:
        # A server that starts meanwhile would make the findings wrong.
        ownership.take()
        served = False
    except DatabaseInUse:
        served = True
    try:
        return _examine(path, served=served)
    finally:
        ownership.release()


def repair(url: str) -> list[Finding]:
    """Repair the database of `url`, and return all findings from before the repair.

    Raises:
        RepairRefused: a server owns the database.
        CannotExamine: there is no database, or its schema has another version.
        BadDatabaseUrl: the URL names no database.
    """
    if is_postgres(url):
        from threadhold.admin import doctor_postgres

        return doctor_postgres.repair(url)
    path = _existing_file(url)
    ownership = Ownership(path)
    try:
        ownership.take()
    except DatabaseInUse as error:
        raise RepairRefused(f"Nothing was repaired: {error}") from error
    try:
        found = _examine(path, served=False)
        _repair(path, found)
        return found
    finally:
        ownership.release()


def _existing_file(url: str) -> Path:
    path = database_path(url)
    if not path.is_file():
        raise CannotExamine(f"There is no database at {path}")
    return path


@contextmanager
def _opened(path: Path) -> Iterator[Connection]:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS)) as raw:
        # All reads see the same snapshot.
        raw.execute("BEGIN")
        yield Connection(raw, DIALECT)


def _examine(path: Path, *, served: bool) -> list[Finding]:
    try:
        with _opened(path) as conn:
            _check_version(path, conn)
            return doctor.examine(conn, served=served)
    except sqlite3.DatabaseError as error:
        raise CannotExamine(f"{path} cannot be read: {error}. Restore a backup.") from error


def _check_version(path: Path, conn: Connection) -> None:
    tables = {name for (name,) in conn.raw.execute("SELECT name FROM sqlite_master")}
    found = None
    if "alembic_version" in tables:
        [found] = conn.raw.execute("SELECT version_num FROM alembic_version").fetchone()
    if found != HEAD:
        raise wrong_schema(str(path), found)


def _repair(path: Path, findings: list[Finding]) -> None:
    engine = SqliteEngine(path, register_functions=filters.register_functions)
    database = open_database(f"sqlite:///{path}", exclusive=False)
    try:
        raw = engine.open()
        raw.execute("BEGIN IMMEDIATE")
        with closing(database), without_platform(database):
            doctor.repair(Connection(raw, DIALECT), findings)
        raw.execute("COMMIT")
    finally:
        engine.stop()
