"""Migrations: Alembic scripts that bring the graphs' tables to what each `tables.py` says.

Each graph that has tables has a branch of scripts of its own, named after it, so that they grow
independently: `versions/chat_0001.py`, `versions/icp_finder_0001.py`.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError

from my_agent.database import SHARED, ProductDatabaseError, hold, lock

if TYPE_CHECKING:
    from alembic.config import Config

HEADS: frozenset[str] = frozenset({"chat_0002", "icp_finder_0002"})
"""The last script of each branch. Here, because reading the scripts would import Alembic."""

# Whoever waits for a table to himself keeps all waiting who come after him. So a migration waits
# shortly, lets them by, and tries again.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 600.0
# A lock was not to be had, or two waited for each other.
_IN_THE_WAY = ("55P03", "40P01")

# The server's runtime has a version table of its own, in the same database.
VERSIONS = "product_version"
_FOLDER = Path(__file__).parent


def upgrade(engine: Engine) -> None:
    """Bring the database to `HEADS`, in one transaction.

    Raises:
        ProductDatabaseError: it has had a script that this code does not know, or others have been
            migrating it, or using a table, for ten minutes.
    """
    with engine.connect().execution_options(reads_only=True) as connection:
        if revisions(connection) == HEADS:
            return
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _upgraded(engine):
        if time.monotonic() > deadline:
            raise ProductDatabaseError(
                "The database was not migrated: another process has been migrating it, or using a "
                f"table, for {PATIENCE_SECONDS:g} seconds. End it and try again."
            )
        time.sleep(PAUSE_SECONDS)


def _upgraded(engine: Engine) -> bool:
    """Whether nobody was in the way."""
    # Not in the transaction, which may be idle for some seconds only.
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
        if getattr(error.orig, "sqlstate", None) not in _IN_THE_WAY:
            raise
        return False
    return True


def revisions(connection: Connection) -> frozenset[str]:
    """The last scripts that the database has had."""
    if not inspect(connection).has_table(VERSIONS):
        return frozenset()
    rows = connection.execute(text(f"SELECT version_num FROM {VERSIONS}"))
    return frozenset(str(row[0]) for row in rows)


def scripts() -> frozenset[str]:
    """Every script there is."""
    from alembic.script import ScriptDirectory

    found = ScriptDirectory.from_config(_config()).walk_revisions()
    return frozenset(script.revision for script in found)


def _migrate(connection: Connection, found: frozenset[str]) -> None:
    from alembic import command

    config = _config()
    if unknown := sorted(found - scripts()):
        raise ProductDatabaseError(
            f"The database has had {', '.join(unknown)}, which this version does not know. "
            "Install the version that migrated it, or restore a backup."
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "heads")


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
