"""Doctor for Postgres: open the database, without the file checks that Postgres does itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership, check_complete
from langgraph_runtime_sql.errors import DatabaseOverloaded
from langgraph_runtime_sql.migrations import open_database
from langgraph_runtime_sql.migrations.postgres import revision
from langgraph_runtime_sql.tools import without_platform
from threadhold.admin.findings import CannotExamine, OpenDatabase, owner_of


@contextmanager
def opened(url: str) -> Iterator[OpenDatabase]:
    """Open the database, and own it if no server does.

    Raises:
        CannotExamine: Postgres cannot be reached.
        DatabaseIncomplete: a move into the database is incomplete; repairs would break it.
    """
    database = open_database(url, exclusive=False)
    ownership = PostgresOwnership(PostgresEngine(url))

    def write(fn: Callable[[Connection], None]) -> None:
        with without_platform(database):
            database.write_sync(fn)

    try:
        owner = owner_of(partial(ownership.take, wait_seconds=0))
        check_complete(url)
        yield OpenDatabase(owner, revision, database.read_sync, write)
    except DatabaseOverloaded as error:
        raise CannotExamine(str(error)) from error
    finally:
        database.close()
        ownership.release()
