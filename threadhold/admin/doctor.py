"""Doctor: examine and repair a database (`threadhold doctor`)."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.sqlite.engine import (
    BUSY_TIMEOUT_SECONDS,
    DIALECT,
    SqliteEngine,
)
from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.migrations import HEAD, open_database, revision, scripts
from langgraph_runtime_sql.progress import Report, ignore
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.tools import without_platform
from threadhold.admin import findings
from threadhold.admin.findings import CannotExamine, Finding, OpenDatabase, RepairRefused, owner_of


def examine(url: str, report: Report = ignore) -> list[Finding]:
    """Return all findings about the database of `url`, without changing it. A server may run.

    Args:
        url: The database.
        report: Gets the progress.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
        BadDatabaseUrl: the URL names no database.
    """
    with opened(url) as database:
        found: list[Finding] = database.read(partial(_examine, url, database, report))
        return found


def repair(url: str, report: Report = ignore) -> list[Finding]:
    """Repair the database of `url`, and return all findings from before the repair.

    Args:
        url: The database.
        report: Gets the progress.

    Raises:
        RepairRefused: a server owns the database.
        CannotExamine: there is no database, or its schema has another version.
        BadDatabaseUrl: the URL names no database.
    """
    with opened(url) as database:
        if database.owner is not None:
            raise RepairRefused(f"Nothing was repaired: {database.owner}") from database.owner
        found: list[Finding] = database.read(partial(_examine, url, database, report))
        database.write(partial(findings.repair, findings=found, report=report))
        return found


def run(url: str, fn: Callable[[Connection], None], *, writes: bool = False) -> None:
    """Call `fn` in a transaction on the database of `url`. A server may run.

    Args:
        url: The database.
        fn: Statements that are safe beside a server.
        writes: Whether the transaction writes.

    Raises:
        CannotExamine: there is no database, or its schema has another version.
    """

    def read(conn: Connection) -> list[Finding]:
        check_version(url, database, conn)
        if not writes:
            fn(conn)
        return []

    with opened(url) as database:
        database.read(read)
        if writes:
            database.write(fn)


def _examine(url: str, database: OpenDatabase, report: Report, conn: Connection) -> list[Finding]:
    check_version(url, database, conn)
    return findings.examine(conn, served=database.owner is not None, report=report)


def check_version(url: str, database: OpenDatabase, conn: Connection) -> None:
    """Check that the database has this program's schema.

    Raises:
        CannotExamine: its schema has another version.
    """
    if (found := database.revision(conn.raw)) == HEAD:
        return
    is_older = found is None or found in scripts()
    remedy = (
        "run `threadhold migrate` first" if is_older else "install the version that migrated it"
    )
    raise CannotExamine(
        f"{shown(url)} has the schema version {found or '(none)'}, and this program needs {HEAD}: "
        f"{remedy}."
    )


def opened(url: str) -> AbstractContextManager[OpenDatabase]:
    """Open the database, and own it if no server does.

    Raises:
        CannotExamine: there is no database, or it cannot be reached.
        BadDatabaseUrl: the URL names no database.
    """
    if is_postgres(url):
        from threadhold.admin import doctor_postgres

        return doctor_postgres.opened(url)
    return _opened_file(url)


@contextmanager
def _opened_file(url: str) -> Iterator[OpenDatabase]:
    path = database_path(url)
    if not path.is_file():
        raise CannotExamine(f"There is no database at {path}")

    def read(fn: Callable[[Connection], list[Finding]]) -> list[Finding]:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS)) as raw:
                # All reads see the same snapshot.
                raw.execute("BEGIN")
                return fn(Connection(raw, DIALECT))
        except sqlite3.DatabaseError as error:
            raise CannotExamine(f"{path} cannot be read: {error}. Restore a backup.") from error

    def write(fn: Callable[[Connection], None]) -> None:
        engine = SqliteEngine(path, register_functions=filters.register_functions)
        database = open_database(url, exclusive=False)
        try:
            raw = engine.open()
            raw.execute("BEGIN IMMEDIATE")
            with closing(database), without_platform(database):
                fn(Connection(raw, DIALECT))
            raw.execute("COMMIT")
        finally:
            engine.stop()

    ownership = Ownership(path)
    try:
        # A server that starts meanwhile would make the findings wrong.
        yield OpenDatabase(owner_of(ownership.take), revision, read, write)
    finally:
        ownership.release()
