"""Stopping: what the streams and runs of this process do between the signal and the end.

A stream that ends before its run, because of a stop or of an outage, is handed over: its last event says
where to continue.

From the signal on, runs and streams go on for the grace period. Then the remaining runs return to
the queue. After them the remaining streams end, so that a client misses no event of this process.
"""

import asyncio
import signal
from contextvars import ContextVar
from dataclasses import dataclass, field

from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.errors import RuntimeSqlError

REASON = "server_shutdown"
"""Why a server that stops asks its runs to stop at the end of a step. A graph that asks itself says otherwise."""


@dataclass(slots=True)
class StreamPosition:
    """Where the reader of a run's stream is.

    Attributes:
        id: Id of the last event that the stream has yielded, also if its client is not shown it;
            `-1` before the first.
        is_cut: Set when the stream is to be handed over before the process stops.
        reason: Why, and what the client does.
    """

    id: bytes = b"-1"
    is_cut: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str | None = None


place: ContextVar[StreamPosition | None] = ContextVar("place", default=None)
"""The place of the stream that this task sends. The reader of the stream keeps it up to date."""


async def hand_over(reason: str) -> None:
    """Let the stream that this task sends end with `resume`: wait until it is cut off.

    Return at once if the task sends no stream.

    Args:
        reason: Why, and what the client does.
    """
    if (here := place.get()) is not None:
        here.reason = reason
        here.is_cut.set()
        await asyncio.Event().wait()


class StreamHandedOver(RuntimeSqlError):
    """The stream ends before its run: the client continues at another process, or later."""


def server_stops() -> bool:
    """Return whether uvicorn, which handles the signals of a host, has begun to stop."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True


class Stopping:
    """The end of a process. It belongs to the event loop that creates it.

    Args:
        grace_seconds: Time from the signal for runs and streams to end by themselves.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None
        self._begun, self._over = asyncio.Event(), asyncio.Event()

    def begin(self) -> None:
        """Begin the grace period. Repeatable, from any thread and from a signal handler."""
        if self._began is None:
            self._began = elapsed()
            self._loop.call_soon_threadsafe(self._begun.set)

    def end(self) -> None:
        """Let the remaining streams end. Repeatable."""
        self.begin()
        self._over.set()

    @property
    def has_begun(self) -> bool:
        """Whether the process is about to stop."""
        return self._began is not None

    @property
    def is_over(self) -> bool:
        """Whether the remaining streams end now."""
        return self._over.is_set()

    @property
    def seconds_left(self) -> float:
        """The rest of the grace period, in seconds; all of it before the signal."""
        if self._began is None:
            return self._grace
        return max(0.0, self._began + self._grace - elapsed())

    async def wait_begun(self) -> None:
        """Wait for the signal."""
        await self._begun.wait()

    async def wait_over(self, timeout: float | None = None) -> bool:
        """Wait until the remaining streams end, and return whether they do.

        Args:
            timeout: Seconds to wait at most.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._over.wait()
        except TimeoutError:
            return False
        return True
