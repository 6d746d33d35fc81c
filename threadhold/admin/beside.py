"""Beside a server: run operations of the runtime in a command, on a database that may be served."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.shared_lock import shared_lock
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.migrations import HEAD, open_database
from langgraph_runtime_sql.tools import without_platform
from threadhold.tables import lend
from threadhold.tables.lent import Lent


class OtherVersion(RuntimeSqlError):
    """A SQLite file is missing, or has another schema version than this program."""


@asynccontextmanager
async def beside_server(url: str) -> AsyncIterator[None]:
    """Let the block use functions such as those of `threadhold.sessions` on a database.

    Servers may use the database at the same time. Hooks are not called.

    Args:
        url: As in `LangGraphPlatform`.

    Raises:
        DatabaseInUse: a move reads from or writes to the database.
        OtherVersion: a SQLite file has another schema version, so a server of that version may
            own it.
        RuntimeSqlError: it cannot be opened.
    """
    with shared_lock(url):
        if not is_postgres(url):
            _check_file(url)
        database = open_database(url, exclusive=False)
        try:
            await database.start()
            with without_platform(database), recorder.by_command():
                yield
        finally:
            await database.stop()


@contextmanager
def opened_beside_server(url: str, tenant_key: str | None = None) -> Iterator[Database]:
    """Open a database for blocking transactions; servers may use it at the same time.

    Args:
        url: As in `LangGraphPlatform`.
        tenant_key: The metadata entry that names the tenant of new rows; None: they have none.

    Raises:
        DatabaseInUse: a move reads from or writes to the database.
        RuntimeSqlError: it cannot be opened.
    """
    with shared_lock(url):
        database = open_database(url, exclusive=False)
        database.migrate()
        database.start_threads()
        try:
            with without_platform(database, tenant_key), recorder.by_command():
                yield database
        finally:
            database.close()


@contextmanager
def tables_beside_server(url: str) -> Iterator[None]:
    """Let the block use the tables of an application (`threadhold.tables`) on a database.

    Args, Raises: as `opened_beside_server`.
    """
    with opened_beside_server(url):
        lend(Lent())
        yield


def vacuum(url: str) -> None:
    """Write a SQLite file again without its free pages. Other writes wait.

    Raises:
        sqlite3.OperationalError: a server kept the file locked.
    """
    with closing(sqlite3.connect(database_path(url), timeout=60, isolation_level=None)) as raw:
        raw.execute("VACUUM")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_file(url: str) -> None:
    path = database_path(url)
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as raw:
            found = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise OtherVersion(f"{path} cannot be read as a database of Threadhold: {error}") from error
    if found != (HEAD,):
        raise OtherVersion(
            f"{path} has another schema version than {HEAD}, which this program needs: stop the "
            "server, and run `migrate` first."
        )
