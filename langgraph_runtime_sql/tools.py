"""Run the runtime's operations in a command, without the platform."""

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import SqlStore


@contextmanager
def without_platform(database: Database) -> Iterator[None]:
    """Let operations use `database` within the block.

    Hooks are not called, events reach no client, and there are no tenants.

    Args:
        database: An open database. The caller closes it.
    """
    bus = Bus(database, name="")
    with process.running(Runtime(database=database, bus=bus, store=SqlStore())):
        yield
