"""Process: the one place that holds the running platform, and the configuration of its next start.

There is one, because `langgraph_api` can be configured only once in a process. Modules below
`runtime` reach here what they need of the running platform. Modules above use `runtime.current`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from langgraph_runtime_sql.errors import NotStarted
from langgraph_runtime_sql.options import Options


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The host's settings for the next start.

    Attributes:
        options: The runtime's options.
        hooks: The host's object with hooks, or None.
    """

    options: Options = field(default_factory=Options)
    hooks: Any = None


class Running(Protocol):
    """What modules below `runtime` need of the running platform, which is a `runtime.Runtime`.

    Attributes:
        options: The runtime's options.
        database: The open `database.database.Database`.
        bus: The `events.bus.Bus`.
        store: The `store.store.SqlStore`.
    """

    options: Options
    database: Any
    bus: Any
    store: Any


class _Process:
    """The state of this process."""

    def __init__(self) -> None:
        self.configuration = Configuration()
        self.running: Running | None = None
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
def running(runtime: Running) -> Iterator[None]:
    """Make `runtime` the current one within the block."""
    before, process.running = process.running, runtime
    try:
        yield
    finally:
        process.running = before


def current() -> Running:
    """Return the runtime of this process.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    if process.running is None:
        raise NotStarted
    return process.running
