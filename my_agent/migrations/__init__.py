"""Migrations: Alembic scripts that create and change the tables in each graph's `tables.py`.

Each graph with tables has its own branch of scripts, named after the graph, so that the branches
grow independently: `versions/chat_0001.py`, `versions/icp_finder_0001.py`.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError

from my_agent.transactions import SHARED, ProductDatabaseError, hold, lock

if TYPE_CHECKING:
    from alembic.config import Config

HEADS: frozenset[str] = frozenset(
    {"chat_0004", "diagnosis_0001", "icp_finder_0004", "research_0001", "tutor_0001"}
)
"""The last script of each branch. Listed here, because reading the scripts would import Alembic."""

# A transaction that waits for an exclusive table lock blocks all later ones. So a migration waits
# only briefly, lets the others proceed, and retries until a deadline. All values in seconds.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
DEADLINE_SECONDS = 600.0
# SQLSTATE of lock_not_available and deadlock_detected.
_LOCK_CONFLICTS = ("55P03", "40P01")

# The server's runtime has its own version table in the same database.
VERSIONS = "product_version"
_FOLDER = Path(__file__).parent


def upgrade(engine: Engine) -> None:
    """Migrate the database to `HEADS`, in one transaction.

    Raises:
        ProductDatabaseError: the database has a migration that this code does not know, or another
            process has migrated it or locked a table for ten minutes.
    """
    with engine.connect().execution_options(reads_only=True) as connection:
        if revisions(connection) == HEADS:
            return
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not _try_upgrade(engine):
        if time.monotonic() > deadline:
            raise ProductDatabaseError(
                "The database was not migrated: another process has been migrating it, or using a "
                f"table, for {DEADLINE_SECONDS:g} seconds. Stop that process and try again."
            )
        time.sleep(PAUSE_SECONDS)


def _try_upgrade(engine: Engine) -> bool:
    """Migrate the database. Return False if a lock could not be taken."""
    # Imported before the transaction starts: Postgres aborts transactions that are idle too long.
    import alembic.command  # noqa: F401

    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
            lock(connection, VERSIONS)
            hold(connection, SHARED)
            found = revisions(connection)
            if found != HEADS:
                _migrate(connection, found)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) not in _LOCK_CONFLICTS:
            raise
        return False
    return True


def revisions(connection: Connection) -> frozenset[str]:
    """Return the last script of each branch that the database has run."""
    if not inspect(connection).has_table(VERSIONS):
        return frozenset()
    rows = connection.execute(text(f"SELECT version_num FROM {VERSIONS}"))
    return frozenset(str(row[0]) for row in rows)


def scripts() -> frozenset[str]:
    """Return the ids of all scripts."""
    from alembic.script import ScriptDirectory

    found = ScriptDirectory.from_config(_config()).walk_revisions()
    return frozenset(script.revision for script in found)


def _migrate(connection: Connection, found: frozenset[str]) -> None:
    from alembic import command

    config = _config()
    if unknown := sorted(found - scripts()):
        raise ProductDatabaseError(
            f"The database has migrations that this version does not know: {', '.join(unknown)}. "
            "Install the version that migrated it, or restore a backup."
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "heads")


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
