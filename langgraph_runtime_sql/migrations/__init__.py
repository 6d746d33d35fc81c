"""Migrations: Alembic scripts that bring a database to the schema in `tables`."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from langgraph_runtime_sql import checkpoint, store
from langgraph_runtime_sql.errors import DatabaseTooNew

if TYPE_CHECKING:
    from langgraph_runtime_sql.sqlite import SqliteEngine

HEAD = "0001"
_FOLDER = Path(__file__).parent


def upgrade(engine: "SqliteEngine") -> None:
    """Bring the file to `HEAD`, the savers' and stores' own tables included.

    Raises:
        DatabaseTooNew: it is past `HEAD`.
    """
    raw = engine.open()
    found = _revision(raw)
    if found != HEAD:
        _migrate(raw, found)
    checkpoint.ensure_schema(raw)
    store.ensure_schema(raw)


def _revision(raw: sqlite3.Connection) -> str | None:
    known = raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if known is None:
        return None
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _migrate(raw: sqlite3.Connection, found: str | None) -> None:
    # Imported only when there is something to do: it costs a quarter of a second.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    scripts = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in scripts:
        raise DatabaseTooNew(
            f"The database is at revision {found}, which this version does not know "
            f"(it knows up to {HEAD}). Install the version that migrated it, or restore a backup."
        )
    sqlalchemy_engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)
    # Its transaction is SQLAlchemy's to end, so that Alembic leaves it alone.
    with sqlalchemy_engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)
