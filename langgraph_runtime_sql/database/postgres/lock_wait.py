"""Lock wait: how a migration waits for tables in use.

Sessions that wait for an exclusive lock block all later ones, readers too. So a migration waits
for a short time, pauses to let the others proceed, and tries again.
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

# Building an index on a large table takes up to this long.
WAIT_SECONDS = 600.0
# How long a step may block others, and the pause before the next attempt.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
# The first statement in the transaction of a step.
SHORT_LOCK_TIMEOUT = f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"

_LOCKED = (errors.LockNotAvailable, errors.DeadlockDetected)

# The session that has had one of our tables open for the longest time.
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
    """Run a step, and repeat it while other sessions use its tables.

    Args:
        raw: A connection that is in no transaction between two attempts.
        step: One transaction, which begins with `SHORT_LOCK_TIMEOUT`.

    Raises:
        DatabaseBusy: the tables have been in use for ten minutes.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    warned = False
    while True:
        try:
            step()
            return
        except (psycopg.Error, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(cause, _LOCKED):
                raise
            if time.monotonic() > deadline:
                raise _busy(raw) from error
        if not warned:
            logger.warning("A migration waits for a table that is in use%s", _user(raw))
            warned = True
        time.sleep(PAUSE_SECONDS)


def transaction(raw: postgres.Raw, step: Callable[[], object]) -> None:
    """Run a step in one transaction, with retries as in `retry_while_locked`.

    Raises:
        DatabaseBusy: as `retry_while_locked`.
    """

    def attempt() -> None:
        with raw.transaction():
            raw.execute(SHORT_LOCK_TIMEOUT)
            step()

    retry_while_locked(raw, attempt)


def run_foreign_migration(raw: postgres.Raw, step: Callable[[], None]) -> None:
    """Run another library's migration, with retries as in `retry_while_locked`.

    Args:
        raw: The connection that it uses, outside any transaction.
        step: The migration. A repeated call continues where the last one stopped.

    Raises:
        DatabaseBusy: as `retry_while_locked`.
    """
    with _waiting(raw, LOCK_SECONDS):
        retry_while_locked(raw, step)


def concurrently(raw: postgres.Raw, statement: sql.Composed | str) -> None:
    """Build or drop an index while others use its table.

    The statement blocks no other session, but may itself wait for long transactions.

    Args:
        raw: A connection outside any transaction.
        statement: With `CONCURRENTLY`, or another one that blocks no session.

    Raises:
        DatabaseBusy: a transaction has been open for ten minutes.
    """
    try:
        with _waiting(raw, WAIT_SECONDS):
            raw.execute(statement if isinstance(statement, sql.Composed) else statement.encode())
    except _LOCKED as error:
        raise _busy(raw) from error


@contextmanager
def _waiting(raw: postgres.Raw, seconds: float) -> Iterator[None]:
    """Limit the wait for each lock to `seconds` in this block."""
    raw.execute(f"SET lock_timeout = '{seconds:g}s'".encode())
    try:
        yield
    finally:
        if not raw.closed:
            raw.execute(f"SET lock_timeout = '{postgres.LOCK_SECONDS}s'".encode())


def _user(raw: postgres.Raw) -> str:
    """Describe the session that uses a table; empty if none does any more."""
    found = raw.execute(_USER).fetchone()
    return "" if found is None else ": {} by session {} ({})".format(*found)


def _busy(raw: postgres.Raw) -> DatabaseBusy:
    return DatabaseBusy(
        f"The migration is incomplete: a table was in use for {WAIT_SECONDS:g} seconds"
        f"{_user(raw)}. End the session that uses it, such as pg_dump or psql, and try again"
    )
