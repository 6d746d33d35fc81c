"""Lock wait: how a migration waits for tables that others are using.

Whoever waits for a table to himself keeps all waiting who come after him, those who would only read
it, too. So a migration waits shortly, lets the others by, and asks again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors, sql
from sqlalchemy.exc import DBAPIError

from langgraph_runtime_sql.database.postgres import engine as postgres
from langgraph_runtime_sql.errors import DatabaseBusy

logger = logging.getLogger(__name__)

# As long as building an index on a large table may take.
WAIT_SECONDS = 600.0
# How long others may be kept waiting, and then how long they are let by.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
# The first thing to say in the transaction of a step.
SHORT_LOCK_TIMEOUT = f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"

_IN_THE_WAY = (errors.LockNotAvailable, errors.DeadlockDetected)


# Of all who have a table open, whoever has been at it for the longest time.
_USER = """
    SELECT named.relname, activity.pid, activity.application_name
    FROM pg_locks JOIN pg_class AS named ON named.oid = pg_locks.relation
    JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid
    WHERE granted AND named.relkind = 'r' AND activity.pid <> pg_backend_pid()
        AND activity.datname = current_database() AND pg_locks.database = activity.datid
        AND named.relnamespace = current_schema()::regnamespace
    ORDER BY activity.xact_start, named.relname LIMIT 1
"""


def retry_while_locked(raw: postgres.Raw, step: Callable[[], None]) -> None:
    """Do a step, again and again while somebody else is using its tables.

    Args:
        raw: A connection that is in no transaction between two attempts.
        step: One transaction, which begins with `SHORT_LOCK_TIMEOUT`.

    Raises:
        DatabaseBusy: somebody has been using them for ten minutes.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    warned = False
    while True:
        try:
            step()
            return
        except (psycopg.Error, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(cause, _IN_THE_WAY):
                raise
            if time.monotonic() > deadline:
                raise _busy(raw) from error
        if not warned:
            logger.warning("A migration waits for a table that is in use%s", _user(raw))
            warned = True
        time.sleep(PAUSE_SECONDS)


def run_foreign_migration(raw: postgres.Raw, step: Callable[[], None]) -> None:
    """`retry_while_locked` for what is not ours to put into a transaction: another library's migration.

    Args:
        raw: The connection that it uses, outside any transaction.
        step: Goes on where it was when it is called again.

    Raises:
        DatabaseBusy: as `retry_while_locked`.
    """
    with _waiting(raw, LOCK_SECONDS):
        retry_while_locked(raw, step)


def concurrently(raw: postgres.Raw, statement: sql.Composed | str) -> None:
    """Build or drop an index beside those who use its table.

    That keeps nobody waiting, and so may itself wait for whoever is in a long transaction.

    Args:
        raw: A connection outside any transaction.
        statement: With `CONCURRENTLY`, or another one that keeps nobody waiting.

    Raises:
        DatabaseBusy: somebody has been in a transaction for ten minutes.
    """
    try:
        with _waiting(raw, WAIT_SECONDS):
            raw.execute(statement if isinstance(statement, sql.Composed) else statement.encode())
    except _IN_THE_WAY as error:
        raise _busy(raw) from error


@contextmanager
def _waiting(raw: postgres.Raw, seconds: float) -> Iterator[None]:
    """What is said here waits so long for each lock."""
    raw.execute(f"SET lock_timeout = '{seconds:g}s'".encode())
    try:
        yield
    finally:
        if not raw.closed:
            raw.execute(f"SET lock_timeout = '{postgres.LOCK_SECONDS}s'".encode())


def _user(raw: postgres.Raw) -> str:
    """Who uses what, as it is said to whoever waits for it; nothing where that is over."""
    found = raw.execute(_USER).fetchone()
    return "" if found is None else ": {} by session {} ({})".format(*found)


def _busy(raw: postgres.Raw) -> DatabaseBusy:
    return DatabaseBusy(
        f"The migration has not come to its end: a table was in use for {WAIT_SECONDS:g} "
        f"seconds{_user(raw)}. End what has it open, such as pg_dump or a session of psql, and "
        "try again"
    )
