"""Run the runtime's operations in a command, without the platform."""

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import SqlStore


@contextmanager
def without_platform(database: Database, tenant_key: str | None = None) -> Iterator[None]:
    """Let operations use `database` within the block.

    Hooks are not called, events reach no client, and there are no limits.

    Args:
        database: An open database. The caller closes it.
        tenant_key: The metadata entry that names the tenant of new rows; None: they have none.
    """
    bus, options = Bus(database, name=""), Options(tenant_key=tenant_key)
    with process.running(Runtime(database=database, bus=bus, store=SqlStore(), options=options)):
        yield
