"""Runtime: the one object that holds what the running platform works with.

The lifespan creates it, and operations get it from `current()`: `langgraph_api` calls static
methods, which cannot receive it as an argument.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.stopping import Stopping
from langgraph_runtime_sql.store.store import SqlStore


class RunQueue(Protocol):
    """What operations need of the process's queue, which lies above them.

    Attributes:
        renewal: The queue's `leases.Renewal`.
        stopping: Whether the queue is shutting down.
        draining: Whether the queue has stopped claiming, because the process stops soon.
    """

    renewal: Any
    stopping: bool
    draining: bool

    def note_stop_request(self, run_id: str) -> None:
        """Record that a run of this process was asked to stop."""

    def drain(self) -> None:
        """Claim no more runs if others execute them, and ask those here to stop."""

    async def sweep(self) -> None:
        """Free lost runs now."""

    async def hand_back_all(self) -> None:
        """Claim no more runs, and return those of this process to the queue."""


@dataclass(slots=True, kw_only=True)
class Runtime:
    """The parts of the running platform.

    Attributes:
        database: The open database.
        bus: Carries wake-ups, control messages and events.
        store: The long-term memory of graphs.
        options: The runtime's options.
        hooks: The host's object with hooks, or None.
        queue: The process's queue while it works; None in a process that executes no runs.
        stopping: The end of the process, while the lifespan runs.
        deliver_webhooks: Wakes the delivery of webhooks; called from any thread.
    """

    database: Database
    bus: Bus
    store: SqlStore
    options: Options = field(default_factory=Options)
    hooks: Any = None
    queue: RunQueue | None = None
    stopping: Stopping | None = None
    deliver_webhooks: Callable[[], None] | None = None


def current() -> Runtime:
    """Return the runtime of this process.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    return cast(Runtime, process.current())
