"""Migrations: Alembic scripts that bring the graphs' tables to what each `tables.py` says.

Each graph that has tables has a branch of scripts of its own, named after it, so that they grow
independently: `versions/chat_0001.py`, `versions/icp_finder_0001.py`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from my_agent.database import SHARED, ProductDatabaseError, hold, lock

if TYPE_CHECKING:
    from alembic.config import Config

HEADS: frozenset[str] = frozenset({"chat_0002", "icp_finder_0002"})
"""The last script of each branch. Here, because reading the scripts would import Alembic."""

# The server's runtime has a version table of its own, in the same database.
VERSIONS = "product_version"
_FOLDER = Path(__file__).parent


def upgrade(engine: Engine) -> None:
    """Bring the database to `HEADS`, in one transaction.

    Raises:
        ProductDatabaseError: it has had a script that this code does not know.
    """
    with engine.connect().execution_options(reads_only=True) as connection:
        if revisions(connection) == HEADS:
            return
    with engine.begin() as connection:
        lock(connection, VERSIONS)
        hold(connection, SHARED)
        found = revisions(connection)
        if found != HEADS:
            _migrate(connection, found)


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
