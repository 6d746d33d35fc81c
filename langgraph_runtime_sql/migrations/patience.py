"""Patience: how a migration waits for tables that others are using.

Whoever waits for a table to himself keeps all waiting who come after him, those who would only read
it, too. So a migration waits shortly, lets the others by, and asks again.
"""

import time
from collections.abc import Callable

import psycopg
from psycopg import errors, sql
from sqlalchemy.exc import DBAPIError

from langgraph_runtime_sql import postgres
from langgraph_runtime_sql.errors import DatabaseBusy

# As long as building an index on a large table may take.
PATIENCE_SECONDS = 600.0
# How long others may be kept waiting, and then how long they are let by.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
# The first thing to say in the transaction of a step.
BRIEFLY = f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"

_IN_THE_WAY = (errors.LockNotAvailable, errors.DeadlockDetected)


def patiently(step: Callable[[], None]) -> None:
    """Do a step, again and again while somebody else is using its tables.

    Args:
        step: One transaction, which begins with `BRIEFLY`.

    Raises:
        DatabaseBusy: somebody has been using them for ten minutes.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            step()
            return
        except (psycopg.Error, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(cause, _IN_THE_WAY):
                raise
            if time.monotonic() > deadline:
                raise _busy() from error
        time.sleep(PAUSE_SECONDS)


def concurrently(raw: postgres.Raw, statement: sql.Composed | str) -> None:
    """Build or drop an index beside those who use its table.

    That keeps nobody waiting, and so may itself wait for whoever is in a long transaction.

    Args:
        raw: A connection outside any transaction.
        statement: With `CONCURRENTLY`.

    Raises:
        DatabaseBusy: somebody has been in a transaction for ten minutes.
    """
    raw.execute(f"SET lock_timeout = '{PATIENCE_SECONDS:g}s'".encode())
    try:
        raw.execute(statement if isinstance(statement, sql.Composed) else statement.encode())
    except _IN_THE_WAY as error:
        raise _busy() from error
    raw.execute(f"SET lock_timeout = '{postgres.LOCK_SECONDS}s'".encode())


def _busy() -> DatabaseBusy:
    return DatabaseBusy(
        f"The migration has not come to its end: a table was in use for {PATIENCE_SECONDS:g} "
        "seconds. End what has it open, such as pg_dump or a session of psql, and try again"
    )
