"""Runtime: everything that the running platform works with, in one value.

The host decides `configure(options, hooks)` before the start. The lifespan opens what it needs
and holds it as the process's one `Runtime`, which every operation reaches by `current()`.
`langgraph_api` calls static methods, so no operation can be given it as an argument.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph_runtime_sql.errors import NotStarted
from langgraph_runtime_sql.options import Options

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database
    from langgraph_runtime_sql.events.bus import LocalBus
    from langgraph_runtime_sql.queue.queue import Queue
    from langgraph_runtime_sql.store.store import SqlStore


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What the host decides before the start.

    Attributes:
        options: As in `Options`.
        hooks: The host's object with hooks, or None.
    """

    options: Options = field(default_factory=Options)
    hooks: Any = None


@dataclass(slots=True, kw_only=True)
class Runtime:
    """What operations work with, from the start of the lifespan to its end.

    Attributes:
        database: The open database.
        bus: Carries wake-ups, control messages and events.
        store: The long-term memory of graphs, as it is configured.
        options: As in `Options`.
        hooks: The host's object with hooks, or None.
        queue: The queue of this process while it works; None where it executes no runs.
    """

    database: "Database"
    bus: "LocalBus"
    store: "SqlStore"
    options: Options = field(default_factory=Options)
    hooks: Any = None
    queue: "Queue | None" = None


class _Process:
    """What there is once in a process, because `langgraph_api` can be configured only once."""

    def __init__(self) -> None:
        self.configuration = Configuration()
        self.running: Runtime | None = None
        self.last_error: BaseException | None = None


process = _Process()


def configure(options: Options, hooks: Any = None) -> None:
    """Use these from the next start on.

    Args:
        options: As in `Options`.
        hooks: The host's object with hooks, which `hooks.check` has accepted, or None.
    """
    process.configuration = Configuration(options=options, hooks=hooks)


def configuration() -> Configuration:
    """What the next start uses."""
    return process.configuration


@contextmanager
def running(runtime: Runtime) -> Iterator[Runtime]:
    """Make `runtime` the process's own until the end of the block."""
    before, process.running = process.running, runtime
    try:
        yield runtime
    finally:
        process.running = before


def current() -> Runtime:
    """The runtime of this process.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    if process.running is None:
        raise NotStarted
    return process.running
