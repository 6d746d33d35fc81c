"""Outage: the one state of the database that health, metrics, log, queue and streams look at.

An engine begins an outage with the first statement that fails for its cause, and a probe ends it.
Operations are tried meanwhile all the same: reads and small writes may succeed on a full disk. Those
of requests fail at once. Those of runs and of the platform's own tasks wait, and go on where they
were: no attempt is lost, and no node runs again.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.answer import Answer
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOutage, DatabaseState

logger = structlog.stdlib.get_logger(__name__)

# How often the probe looks whether the cause is gone; each outage soon after another doubles it.
PROBE_SECONDS, SLOWEST_PROBE_SECONDS, SOON_SECONDS = 1.0, 30.0, 60.0
# A stream that waits for events ends with an error after this time of an outage. Shorter outages do not
# disturb it.
STREAM_SECONDS = 5.0


class Probed(Protocol):
    """What the end of outages needs of the database."""

    @property
    def outage(self) -> "Outage":
        """The state of the database."""

    async def probe(self) -> None:
        """Raise unless the database can be written to."""


class Outage:
    """The state of one database in this process. Its methods may be called from any thread.

    Attributes:
        error: The outage; None while there is none.
        damage: The first damage that an operation has met. It stays until a restart.
        is_watched: Whether `watch` ends outages. Otherwise the caller of an operation says why it failed.
    """

    def __init__(self) -> None:
        self.error: DatabaseOutage | None = None
        self.damage: DatabaseDamaged | None = None
        self._lock = threading.Lock()
        self._since = self._ended = float("-inf")
        self._is_stopping = False
        self.is_watched = False
        self._until_begin: list[Answer[None]] = []
        self._until_end: list[Answer[None]] = []

    @property
    def state(self) -> DatabaseState:
        """The state of the database."""
        if (found := self.error or self.damage) is None:
            return DatabaseState.OK
        return found.state

    def ended_within(self, seconds: float) -> bool:
        """Return whether an outage has ended within the last `seconds`, or goes on."""
        return self.error is not None or elapsed() - self._ended < seconds

    def stream_seconds(self, began: float) -> float | None:
        """Return how many seconds a stream may still wait; None for any number.

        Args:
            began: When the stream began, by `clock.elapsed`. One that a client has opened during the
                outage gets its time too, so that clients do not ask again and again.

        Raises:
            DatabaseOutage: no longer.
        """
        if self.error is None:
            return None
        left = max(self._since, began) + STREAM_SECONDS - elapsed()
        if left <= 0:
            self.refuse()
        return left

    def refuse(self) -> None:
        """Raise the outage, if there is one.

        Raises:
            DatabaseOutage: there is one.
        """
        if (error := self.error) is not None:
            raise DatabaseOutage(error.state, error.reason)

    def note(self, error: BaseException) -> None:
        """Look at the error of an operation: it may begin an outage or be damage."""
        if isinstance(error, DatabaseDamaged) and self.damage is None:
            self.damage = error
            if self.is_watched:
                reason = error.reason
                logger.error("The database is damaged", action="database_damaged", reason=reason)
        if not isinstance(error, DatabaseOutage):
            return
        with self._lock:
            before, self.error = self.error, error
            if before is None:
                self._since = elapsed()
                Answer.settle([(each, None, None) for each in self._until_begin])
                self._until_begin = []
        if self.is_watched and (before is None or before.state != error.state):
            logger.error(
                "The database cannot be used",
                action="database_outage",
                state=error.state.value,
                reason=error.reason,
            )

    def end(self) -> None:
        """End the outage, if there is one."""
        with self._lock:
            error, self.error = self.error, None
            if error is None:
                return
            self._ended = elapsed()
            self._release()
        if not self.is_watched:
            return
        logger.warning(
            "The database can be used again",
            action="database_outage_over",
            state=error.state.value,
            seconds=round(self._ended - self._since, 1),
        )

    def stop_waiting(self) -> None:
        """Let operations wait no longer, because the process stops."""
        with self._lock:
            self._is_stopping = True
            self._release()

    def _release(self) -> None:
        Answer.settle([(each, None, None) for each in self._until_end])
        self._until_end = []

    def _waits(self, answer: Answer[None]) -> bool:
        """Let an answer be given at the end of the outage. Return False if there is none."""
        with self._lock:
            if self.error is None or self._is_stopping:
                return False
            self._until_end.append(answer)
            return True

    async def begun(self) -> None:
        """Wait until an outage begins."""
        answer: Answer[None] = Answer(asyncio.get_running_loop())
        with self._lock:
            if self.error is not None:
                return
            self._until_begin.append(answer)
        await answer.wait()

    async def over(self) -> None:
        """Wait until the outage ends or the process stops."""
        answer: Answer[None] = Answer(asyncio.get_running_loop())
        if self._waits(answer):
            await answer.wait()

    def block(self) -> None:
        """Wait like `over`, blocking a thread without an event loop."""
        answer: Answer[None] = Answer(None)
        if self._waits(answer):
            answer.block()

    def is_waited_for(self) -> bool:
        """Return whether the calling task waits for the end of an outage instead of failing."""
        return request_context.patient.get() and not self._is_stopping


@contextmanager
def waited_for() -> Iterator[None]:
    """Let operations of this block, and of tasks that it starts, wait for the end of outages."""
    token = request_context.patient.set(True)
    try:
        yield
    finally:
        request_context.patient.reset(token)


async def watch(database: Probed, began: Callable[[], None]) -> None:
    """End the outages of a database when their cause is gone, until cancelled.

    Args:
        database: The database.
        began: Called at the beginning of each outage.
    """
    outage, pause, ended = database.outage, PROBE_SECONDS, float("-inf")
    outage.is_watched = True
    while True:
        await outage.begun()
        began()
        is_soon = elapsed() - ended < SOON_SECONDS
        pause = min(2 * pause, SLOWEST_PROBE_SECONDS) if is_soon else PROBE_SECONDS
        while outage.error is not None:
            await asyncio.sleep(pause)
            try:
                await database.probe()
            except Exception as error:
                logger.debug("The outage goes on", exc_info=error)
            else:
                outage.end()
        ended = elapsed()
