"""Shared lock: commands that write beside a server hold it, and a move refuses them.

A move reads its source in one snapshot and compares the target with it. Rows that another command
writes meanwhile would be lost from the one, or surplus in the other.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from langgraph_runtime_sql.database.sqlite.ownership import PRIVATE_FILE, open_beside
from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from langgraph_runtime_sql.errors import DatabaseInUse

# Any constant number: advisory locks are local to a database.
_KEY = 7_214_880_117


@contextmanager
def shared_lock(url: str) -> Iterator[None]:
    """Allow the block to write beside a server and other holders of this lock.

    Args:
        url: As in `Database`.

    Raises:
        DatabaseInUse: a move reads from or writes to the database.
        DatabaseIncomplete: a move into the database was not finished.
        DatabaseOverloaded: the server cannot be reached.
        BadDatabaseUrl: the URL names no database.
        CannotOpen: no file can be written beside the database.
    """
    with _lock(url, shared=True) as held:
        if not held:
            raise DatabaseInUse(
                f"{shown(url)} is in use by a move to Postgres. Repeat this command after the move, "
                "on the database that is served then."
            )
        if is_postgres(url):
            from langgraph_runtime_sql.database.postgres.ownership import check_complete

            check_complete(url)
        yield


@contextmanager
def exclusive_lock(url: str) -> Iterator[None]:
    """Keep out all holders of `shared_lock` for the duration of the block.

    Raises:
        DatabaseInUse: a command holds the shared lock.
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
    """Yield whether the lock was taken. It ends with the block, or with the process."""
    with _in_postgres(url, shared) if is_postgres(url) else _beside(url, shared) as held:
        yield held


@contextmanager
def _beside(url: str, shared: bool) -> Iterator[bool]:
    # Read-only access suffices for a lock.
    file = open_beside(database_path(url), ".shared-lock", os.O_RDONLY, PRIVATE_FILE)
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

    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine, try_lock

    with closing(PostgresEngine(url).reach()) as raw:
        held = try_lock(raw, _KEY, shared=shared)
        try:
            yield held
        finally:
            # The server notices a closed connection some time later.
            with suppress(psycopg.Error):
                raw.execute("SELECT pg_advisory_unlock_all()")
