"""Shared lock: held by commands that write beside a server, and refused during a move.

A move reads its source as it was at one moment, and compares its target with that: what
somebody else writes meanwhile would be left behind in the one, and be too much in the other.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from langgraph_runtime_sql.database.sqlite.ownership import open_beside
from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.errors import DatabaseInUse, DatabaseOverloaded

# Any number, as long as it stays the same: locks are the database's own.
_KEY = 7_214_880_117


@contextmanager
def shared_lock(url: str) -> Iterator[None]:
    """Write beside a server, if one runs, and beside others that hold it, until the end of the block.

    Args:
        url: As in `Database`.

    Raises:
        DatabaseInUse: it is being moved, or something is moved into it.
        DatabaseIncomplete: a move into it was not finished.
        DatabaseOverloaded: the server cannot be reached.
        BadDatabaseUrl: the URL names no database.
        CannotOpen: nothing can be written beside the file.
    """
    with _lock(url, shared=True) as held:
        if not held:
            raise DatabaseInUse(
                f"{shown(url)} is in use by a move of everything from a file to Postgres: do this "
                "again once it has ended, on the database that is served from then on."
            )
        if is_postgres(url):
            from langgraph_runtime_sql.database.postgres.ownership import check_complete

            check_complete(url)
        yield


@contextmanager
def exclusive_lock(url: str) -> Iterator[None]:
    """Keep out all that `shared_lock` lets in until the end of the block.

    Raises:
        DatabaseInUse: there is one.
        DatabaseOverloaded: the server cannot be reached.
    """
    with _lock(url, shared=False) as held:
        if not held:
            raise DatabaseInUse(
                f"{shown(url)} is in use by a command that writes to it, such as `ingest`."
            )
        yield


@contextmanager
def _lock(url: str, *, shared: bool) -> Iterator[bool]:
    """Whether the lock could be taken, which ends with the block, or with the process."""
    with _in_postgres(url, shared) if is_postgres(url) else _beside(url, shared) as held:
        yield held


@contextmanager
def _beside(url: str, shared: bool) -> Iterator[bool]:
    # For reading only, so that whoever may write to the database, but has not made this, can.
    file = open_beside(database_path(url), ".guests", os.O_RDONLY, 0o644)
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        held = True
    except BlockingIOError:
        held = False
    try:
        yield held
    finally:
        os.close(file)


@contextmanager
def _in_postgres(url: str, shared: bool) -> Iterator[bool]:
    import psycopg

    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine

    try:
        raw = PostgresEngine(url).open()
    except psycopg.OperationalError as error:
        raise DatabaseOverloaded(f"Postgres cannot be reached: {error}") from error
    with closing(raw):
        function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
        row = raw.execute(f"SELECT {function}(%s)", (_KEY,)).fetchone()
        try:
            yield bool(row and row[0])
        finally:
            # That the connection was closed the server notices some time later.
            with suppress(psycopg.Error):
                raw.execute("SELECT pg_advisory_unlock_all()")
