"""Doctor for Postgres: examine and repair, without the file checks that Postgres does itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership, check_complete
from langgraph_runtime_sql.errors import DatabaseInUse, DatabaseOverloaded
from langgraph_runtime_sql.migrations import HEAD, open_database
from langgraph_runtime_sql.migrations.postgres import revision
from langgraph_runtime_sql.tools import without_platform
from threadhold.admin import findings
from threadhold.admin.findings import CannotExamine, Finding, RepairRefused, wrong_schema


def examine(url: str) -> list[Finding]:
    """Do the same as `threadhold.admin.doctor.examine`."""
    with _opened(url) as (database, served):
        return database.read_sync(lambda conn: _examine(conn, served=served))


def repair(url: str) -> list[Finding]:
    """Do the same as `threadhold.admin.doctor.repair`."""

    def fn(conn: Connection) -> list[Finding]:
        found = _examine(conn, served=False)
        findings.repair(conn, found)
        return found

    with _opened(url) as (database, served):
        if served:
            raise RepairRefused(
                "Nothing was repaired: the database is in use by another process. Stop it first."
            )
        with without_platform(database):
            return database.write_sync(fn)


@contextmanager
def _opened(url: str) -> Iterator[tuple[Database, bool]]:
    """Open the database, take ownership if it is free, and yield whether a server owns it.

    Raises:
        CannotExamine: Postgres cannot be reached.
        DatabaseIncomplete: a move into the database is incomplete; repairs would break it.
    """
    database = open_database(url, exclusive=False)
    ownership = PostgresOwnership(PostgresEngine(url))
    served = False
    try:
        try:
            ownership.take(wait_seconds=0)
        except DatabaseInUse:
            served = True
        check_complete(url)
        yield database, served
    except DatabaseOverloaded as error:
        raise CannotExamine(str(error)) from error
    finally:
        database.close()
        ownership.release()


def _examine(conn: Connection, *, served: bool) -> list[Finding]:
    found = revision(conn.raw)
    if found != HEAD:
        raise wrong_schema(f"The Postgres database {conn.raw.info.dbname}", found)
    return findings.examine(conn, served=served)
