"""Migrating: run the Alembic scripts of an application's tables.

Each group of tables has its own branch of scripts, so that the branches grow independently:
`versions/orders_0001.py`, `versions/customers_0001.py`. The revision of a script is the name of its
file, and the numbers of a branch grow.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from threadhold.tables.row_security import secure
from threadhold.tables.transactions import Owner, TablesError, lock

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

# A transaction that waits for an exclusive table lock blocks all later ones. So a migration waits
# only briefly, lets the others proceed, and retries until a deadline. All values in seconds.
LOCK_SECONDS = 2
PAUSE_SECONDS = 1.0
DEADLINE_SECONDS = 600.0
# SQLSTATE of lock_not_available and deadlock_detected.
_LOCK_CONFLICTS = ("55P03", "40P01")


class _Locked(Exception):
    """Another transaction holds a lock of a table."""


class Migrated(Protocol):
    """What a migration needs of an application's tables (`tables.Tables`)."""

    @property
    def scripts(self) -> Path:
        """The folder with `versions`."""

    @property
    def versions(self) -> str:
        """The name of the table with the scripts that have run."""

    @property
    def heads(self) -> frozenset[str]:
        """The last script of each branch."""

    def tenants(self) -> Mapping[str, str]:
        """Return the tenant's column by table."""


def heads(folder: Path) -> frozenset[str]:
    """Return the last script of each branch, by their names: reading them would import Alembic."""
    names = sorted(path.stem for path in (folder / "versions").glob("*_[0-9]*.py"))
    return frozenset({name.rpartition("_")[0]: name for name in names}.values())


def upgrade(tables: Migrated, on: Owner) -> None:
    """Migrate a database to the last scripts, in one transaction. Blocks.

    Raises:
        TablesError: the database has a migration that this code does not know, or another process
            has migrated it or locked a table for ten minutes.
    """
    if on.read(partial(revisions, versions=tables.versions)) == tables.heads:
        return
    # Imported before the transaction starts: Postgres aborts transactions that are idle too long.
    import alembic.runtime.environment  # noqa: F401

    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            on.alter(partial(_upgrade, tables))
            return
        except _Locked as error:
            if time.monotonic() > deadline:
                raise TablesError(
                    "The database was not migrated: another process has been migrating it, or "
                    f"using a table, for {DEADLINE_SECONDS:g} seconds. Stop that process and try "
                    "again."
                ) from error
        time.sleep(PAUSE_SECONDS)


def revisions(connection: Connection, versions: str) -> frozenset[str]:
    """Return the last script of each branch that the database has run."""
    if not inspect(connection).has_table(versions):
        return frozenset()
    rows = connection.execute(text(f"SELECT version_num FROM {versions}"))
    return frozenset(str(row[0]) for row in rows)


def known(folder: Path) -> frozenset[str]:
    """Return the ids of all scripts."""
    return frozenset(script.revision for script in _directory(folder).walk_revisions())


def _upgrade(tables: Migrated, connection: Connection) -> None:
    try:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        lock(connection, tables.versions)
        found = revisions(connection, tables.versions)
        if found != tables.heads:
            _run(tables, connection, found)
            for table, tenant in tables.tenants().items():
                secure(connection, table, tenant=tenant)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in _LOCK_CONFLICTS:
            raise _Locked from error
        raise


def _run(tables: Migrated, connection: Connection, found: frozenset[str]) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    if unknown := sorted(found - known(tables.scripts)):
        raise TablesError(
            f"The database has migrations that this version does not know: {', '.join(unknown)}. "
            "Install the version that migrated it, or restore a backup."
        )
    directory = _directory(tables.scripts)
    missing = EnvironmentContext(
        Config(), directory, fn=lambda revision, _: directory._upgrade_revs("heads", revision)
    )
    with missing:
        missing.configure(
            connection=connection, target_metadata=None, version_table=tables.versions
        )
        missing.run_migrations()


def _directory(folder: Path) -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    return ScriptDirectory(folder)
