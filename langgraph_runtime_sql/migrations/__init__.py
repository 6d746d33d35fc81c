"""Migrations: Alembic scripts that bring a database to the schema in `database.schema`."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_runtime_sql.audit import log as audit_log
from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.audit import triggers as audit_triggers
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.sqlite.engine import DIALECT, SqliteEngine
from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.errors import DatabaseTooNew, DatabaseTooOld
from langgraph_runtime_sql.migrations import sealed_only, tables, triggers
from langgraph_runtime_sql.migrations.reporting import tell
from langgraph_runtime_sql.progress import Progress
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.store.store import SqlStore
from langgraph_runtime_sql.tenancy import scope

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import Script
    from sqlalchemy import Connection as SqlConnection
    from sqlalchemy import Engine

    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine

HEAD = "0100"
# Before the first release the schema began anew. The last commit with the scripts before that.
_LAST_COMMIT = "126ac102"
_FORMER = frozenset(f"{number:04}" for number in range(1, 18))
_FOLDER = Path(__file__).parent


def open_database(
    url: str, *, tenant_key: str | None = None, store: SqlStore | None = None, **options: Any
) -> Database:
    """Return a database with all its parts. The caller starts and stops it.

    Args:
        url: As in `Database`.
        tenant_key: As in `Options`. Without it every transaction sees all rows.
        store: The store whose tables it has; by default one without vector search.
        options: The other arguments of `Database`.
    """
    log = audit_log.Log(url)
    database = Database(
        url,
        upgrade=partial(upgrade, store=store or SqlStore()),
        register_functions=filters.register_functions,
        visibility=partial(scope.current, tenant_key),
        recording=partial(recorder.recording, log),
        **options,
    )
    audit_log.register(database, log)
    return database


def migrate(url: str, store: SqlStore | None = None) -> None:
    """Bring the schema of `url` up to date without starting anything.

    Postgres may be served meanwhile, a file may not.

    Args:
        url, store: As in `open_database`.
    """
    database = open_database(url, store=store, exclusive=not is_postgres(url))
    try:
        database.migrate()
    finally:
        database.close()


def upgrade(engine: "SqliteEngine | PostgresEngine", store: SqlStore) -> None:
    """Bring the database to `HEAD`, including the tables of the store.

    Args:
        engine: The engine of the database.
        store: The store whose tables it has.

    Raises:
        DatabaseTooNew: it is past `HEAD`.
        DatabaseTooOld: it is from before the first script.
        DatabaseOverloaded: the server cannot be reached.
        DatabaseBusy: another migration, or a session that uses a table, has lasted ten minutes.
    """
    if engine.dialect.name == "postgresql":
        _upgrade_postgres(engine, store)
        return
    raw: Any = engine.open()
    found = revision(raw)
    if found is None:
        _create(raw)
    elif found != HEAD:
        _check_known(found)
        replay(raw, HEAD)
    triggers.ensure(raw)
    audit_triggers.ensure(raw)
    store.ensure_schema(raw)
    sealed_only.ensure(raw)


def _upgrade_postgres(engine: Any, store: SqlStore) -> None:
    from langgraph_runtime_sql.migrations import postgres

    with postgres.alone(engine) as raw:
        found = postgres.revision(raw)
        if found is None:
            postgres.create(raw, HEAD)
        elif found != HEAD:
            _check_known(found)
            replay_postgres(engine, HEAD)
        postgres.ensure_others(raw, store)


def revision(raw: sqlite3.Connection) -> str | None:
    """Return the revision of a file's schema; None without a schema."""
    known = raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if known is None:
        return None
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _create(raw: sqlite3.Connection) -> None:
    """Create the schema in an empty file; replaying the scripts gives the same one.

    Importing Alembic would double the time to the first answer.
    """
    raw.execute("BEGIN IMMEDIATE")
    for statement in tables.creating(DIALECT):
        raw.execute(statement)
    raw.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    raw.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))
    raw.execute("COMMIT")


def scripts() -> frozenset[str]:
    """Return the revisions of all scripts."""
    return frozenset(script.revision for script in _scripts())


def _check_known(found: str) -> None:
    if found in _FORMER:
        raise DatabaseTooOld(
            f"The database is at revision {found}, from before the first release, which this version "
            f"cannot read. Commit {_LAST_COMMIT} can: serve it with that, or copy what you need through "
            "its API into a new database."
        )
    if found not in scripts():
        raise DatabaseTooNew(
            f"The database is at revision {found}, which this version does not know "
            f"(it knows up to {HEAD}). Install the version that migrated it, or restore a backup."
        )


def replay(raw: sqlite3.Connection, to: str) -> None:
    """Run the pending scripts on the file, in one transaction.

    Args:
        raw: The connection.
        to: The last script to run.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)
    # SQLAlchemy owns the transaction, so that Alembic does not end it.
    with engine.begin() as connection:
        missing = len(_missing(revision(raw), to))
        done = 0

        def applied(**_: Any) -> None:
            nonlocal done
            done += 1
            _report_progress(done, missing)

        _report_progress(done, missing)
        _upgrade(connection, "BEGIN IMMEDIATE", to, applied)


def replay_postgres(engine: "PostgresEngine", to: str) -> None:
    """Run the pending scripts on the Postgres database, each in one transaction.

    The script's `prepare` does slow work first, outside of transactions, while others use the
    tables. If it is interrupted, the next migration calls it again, and it continues.

    Args:
        engine: The engine whose connections are used.
        to: The last script to run.

    Raises:
        DatabaseBusy: other sessions have used a table for ten minutes.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    from langgraph_runtime_sql.database.postgres.lock_wait import retry_while_locked
    from langgraph_runtime_sql.migrations import postgres

    def connect() -> Any:
        raw = engine.open()
        raw.autocommit = False
        return raw

    alchemy = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    with closing(engine.open()) as raw:
        raw.execute("SET threadhold.everything = 'on'")
        missing = _missing(postgres.revision(raw), to)
        for done, script in enumerate(missing):
            _report_progress(done, len(missing))
            if (prepare := getattr(script.module, "prepare", None)) is not None:
                prepare(raw)
            retry_while_locked(raw, partial(_run, alchemy, script.revision))
        _report_progress(len(missing), len(missing))


def _report_progress(done: int, total: int) -> None:
    tell(Progress("Migrating", done, total, "scripts"))


def _missing(found: str | None, to: str) -> list["Script"]:
    """Return the scripts after the revision `found` up to `to`, in their order."""
    every = _scripts()
    known = [None, *(script.revision for script in every)]
    return every[known.index(found) : known.index(to)]


def _scripts() -> list["Script"]:
    """Return all scripts, the oldest first."""
    from alembic.script import ScriptDirectory

    return list(ScriptDirectory.from_config(_config()).walk_revisions())[::-1]


def _run(alchemy: "Engine", revision: str) -> None:
    from langgraph_runtime_sql.database.postgres.lock_wait import SHORT_LOCK_TIMEOUT

    with alchemy.begin() as connection:
        connection.exec_driver_sql(SHORT_LOCK_TIMEOUT)
        _upgrade(connection, "SET LOCAL threadhold.everything = 'on'", revision)


def _upgrade(
    connection: "SqlConnection",
    first: str,
    revision: str,
    applied: Callable[..., None] | None = None,
) -> None:
    """Execute the statement `first`, run the scripts up to `revision`, and call `applied` after each."""
    from alembic import command

    config = _config()
    connection.exec_driver_sql(first)
    config.attributes |= {"connection": connection, "applied": applied}
    command.upgrade(config, revision)


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
