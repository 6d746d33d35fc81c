"""Migrations of a Postgres database: one process at a time, while others may serve it."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from psycopg import sql

from langgraph_runtime_sql.audit import triggers as audit_triggers
from langgraph_runtime_sql.database.postgres import lock_wait
from langgraph_runtime_sql.database.postgres.connection import DIALECT
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine, Raw, try_lock
from langgraph_runtime_sql.database.schema import metadata, partitions
from langgraph_runtime_sql.errors import DatabaseBusy
from langgraph_runtime_sql.migrations import functions, sealed_only, tables, triggers
from langgraph_runtime_sql.store.store import SqlStore
from langgraph_runtime_sql.tenancy import row_security

_KEY = 7_214_880_110

# Our tables and those of langgraph's stores; the database may hold other tables, too.
_BROKEN = """
    SELECT named.relname, named.relname ~ '_cc(new|old)[0-9]*$'
    FROM pg_index AS built
    JOIN pg_class AS named ON named.oid = built.indexrelid
    JOIN pg_class AS owner ON owner.oid = built.indrelid
    WHERE NOT built.indisvalid AND owner.relnamespace = current_schema()::regnamespace
        AND (owner.relname = ANY (%(tables)s) OR owner.relname ~ '^store')
    ORDER BY 1
"""


@contextmanager
def alone(engine: PostgresEngine) -> Iterator[Raw]:
    """Yield a connection while no other process migrates the same database.

    Raises:
        DatabaseOverloaded: the server cannot be reached.
        DatabaseBusy: another process has been migrating for ten minutes.
    """
    with closing(engine.reach()) as raw:
        deadline = time.monotonic() + lock_wait.WAIT_SECONDS
        # Polled, not awaited: a concurrent index build waits for the end of every running
        # statement, so also of one that waits for this lock.
        while not try_lock(raw, _KEY):
            if time.monotonic() > deadline:
                raise DatabaseBusy(
                    "Another process is migrating the database: try again once it has finished"
                )
            time.sleep(0.05)
        raw.execute("SET threadhold.everything = 'on'")
        try:
            yield raw
        finally:
            if not raw.closed:
                raw.execute("SELECT pg_advisory_unlock(%s)", (_KEY,))


def revision(raw: Raw) -> str | None:
    """Return the revision of the schema; None without a schema."""
    known = raw.execute("SELECT to_regclass('alembic_version')").fetchone()
    if known is None or known[0] is None:
        return None
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def create(raw: Raw, head: str) -> None:
    """Create the schema in an empty database."""
    with raw.transaction():
        for statement in tables.creating(DIALECT):
            raw.execute(statement)
        raw.execute(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
            " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
        raw.execute("INSERT INTO alembic_version VALUES (%s)", (head,))


def ensure_others(raw: Raw, store: SqlStore) -> None:
    """Update what has no revision: functions, triggers, the store's tables and policies."""
    lock_wait.transaction(raw, partial(_ensure_ours, raw))
    store.ensure_postgres_schema(raw)
    row_security.ensure(raw)
    sealed_only.ensure_postgres(raw)
    mend_indexes(raw)


def _ensure_ours(raw: Raw) -> None:
    functions.ensure(raw)
    triggers.ensure_postgres(raw)
    audit_triggers.ensure_postgres(raw)


def mend_indexes(raw: Raw) -> None:
    """Rebuild the indexes whose build was interrupted; Postgres does not use them."""
    ours = [name for each in metadata.sorted_tables for name in (each.name, *partitions(each))]
    broken = raw.execute(_BROKEN, {"tables": ours})
    for name, is_copy in broken.fetchall():
        # REINDEX builds a copy, and leaves it behind if it is interrupted.
        statement = "DROP INDEX CONCURRENTLY {}" if is_copy else "REINDEX INDEX CONCURRENTLY {}"
        lock_wait.concurrently(raw, sql.SQL(statement).format(sql.Identifier(name)))
