"""Tools: what lets a command use the runtime's operations without the platform."""

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.bus import LocalBus
from langgraph_runtime_sql.store.store import SqlStore


@contextmanager
def without_platform(database: Database) -> Iterator[None]:
    """Let operations work with `database` until the end of the block.

    Nobody follows the events that they send, no hook is called, and there are no tenants.

    Args:
        database: The caller opens and closes it.
    """
    here = runtime.Runtime(database=database, bus=LocalBus(), store=SqlStore())
    with runtime.running(here):
        yield
