"""Runtime: the one object that holds what the running platform works with.

The host calls `configure` before the start. The lifespan creates the `Runtime`, and operations get
it from `current()`: `langgraph_api` calls static methods, which cannot receive it as an argument.
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
    """The host's settings for the next start.

    Attributes:
        options: The runtime's options.
        hooks: The host's object with hooks, or None.
    """

    options: Options = field(default_factory=Options)
    hooks: Any = None


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
    """

    database: "Database"
    bus: "LocalBus"
    store: "SqlStore"
    options: Options = field(default_factory=Options)
    hooks: Any = None
    queue: "Queue | None" = None


class _Process:
    """The state of this process. There is one, because `langgraph_api` is configured only once."""

    def __init__(self) -> None:
        self.configuration = Configuration()
        self.running: Runtime | None = None
        self.last_error: BaseException | None = None


process = _Process()


def configure(options: Options, hooks: Any = None) -> None:
    """Set the configuration of the next start.

    Args:
        options: The runtime's options.
        hooks: The host's object with hooks, accepted by `hooks.check`, or None.
    """
    process.configuration = Configuration(options=options, hooks=hooks)


def configuration() -> Configuration:
    """Return the configuration of the next start."""
    return process.configuration


@contextmanager
def running(runtime: Runtime) -> Iterator[Runtime]:
    """Make `runtime` the current one within the block."""
    before, process.running = process.running, runtime
    try:
        yield runtime
    finally:
        process.running = before


def current() -> Runtime:
    """Return the runtime of this process.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    if process.running is None:
        raise NotStarted
    return process.running
