"""Outage: the one state of the database that health, metrics, log, queue and streams look at.

An engine begins an outage with the first statement that fails for its cause, and a probe ends it.
Operations are tried meanwhile all the same: reads and small writes may succeed on a full disk. Those
of requests fail at once. Those of runs and of the platform's own tasks wait, and go on where they
were: no attempt is lost, and no node runs again. Those of waits and streams wait, too, but not for ever.
"""

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Protocol, TypeVar

import structlog

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.answer import Answer
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOutage, DatabaseState

logger = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

# How often the probe looks whether the cause is gone; each outage soon after another doubles it.
PROBE_SECONDS, SLOWEST_PROBE_SECONDS, SOON_SECONDS = 1.0, 30.0, 60.0
# Waits and streams end after this time without a usable database. Shorter outages do not disturb them.
STREAM_SECONDS = 30.0
# An outage that begins so soon after another continues it: the probe has found room or a connection, and
# the operations that wait have not.
CONTINUES_SECONDS = 5.0
# How often the log repeats the cause.
SAY_SECONDS = 60.0


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
        self._since = self._ended = self._said = float("-inf")
        self._is_told = False
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
        """Return how many seconds a wait or a stream may still wait; None for any number.

        Args:
            began: When it began, by `clock.elapsed`. One that a client has opened during the outage gets
                its time too, so that clients do not ask again and again. Infinite for what waits for ever.

        Raises:
            DatabaseOutage: no longer.
        """
        if self.error is None or began == math.inf:
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

    def note(self, error: BaseException, asked_at: float | None = None) -> None:
        """Look at the error of an operation: it may begin an outage or be damage.

        Args:
            error: The error.
            asked_at: Since when the operation has waited, by `clock.elapsed`; None: it failed at once.
        """
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
                self._begin(elapsed() if asked_at is None else asked_at)
            is_due = elapsed() - self._said >= SAY_SECONDS
            if not self.is_watched or not (is_due or (before and before.state != error.state)):
                return
            self._said, self._is_told = elapsed(), True
        logger.error(
            "The database cannot be used",
            action="database_outage",
            state=error.state.value,
            reason=error.reason,
            seconds=round(elapsed() - self._since, 1),
        )

    def _begin(self, since: float) -> None:
        """Begin an outage. The caller holds the lock."""
        if since - self._ended >= CONTINUES_SECONDS:
            self._since, self._said = since, float("-inf")
        Answer.settle([(each, None, None) for each in self._until_begin])
        self._until_begin = []

    def end(self) -> None:
        """End the outage, if there is one."""
        with self._lock:
            error, self.error = self.error, None
            if error is None:
                return
            self._ended = elapsed()
            self._release()
            # Of one that goes on and off, the log has a line a minute.
            is_told, self._is_told = self._is_told, False
        if not is_told:
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
        """Wait until the outage ends or the process stops, as long as the calling task may wait.

        Raises:
            DatabaseOutage: the task may wait no longer.
        """
        answer: Answer[None] = Answer(asyncio.get_running_loop())
        if not self._waits(answer):
            return
        try:
            async with asyncio.timeout(self.stream_seconds(request_context.patient_since.get())):
                await answer.wait()
        except TimeoutError:
            self.refuse()

    def block(self) -> None:
        """Wait like `over`, blocking a thread without an event loop. Without a limit: no stream blocks."""
        answer: Answer[None] = Answer(None)
        if self._waits(answer):
            answer.block()

    def is_waited_for(self) -> bool:
        """Return whether the calling task waits for the end of an outage instead of failing."""
        return request_context.patient_since.get() > -math.inf and not self._is_stopping


@contextmanager
def waited_for(began: float = math.inf) -> Iterator[None]:
    """Let operations of this block, and of tasks that it starts, wait for the end of outages.

    Args:
        began: When the stream that they are for began, as for `Outage.stream_seconds`.
    """
    token = request_context.patient_since.set(began)
    try:
        yield
    finally:
        request_context.patient_since.reset(token)


def is_bounded() -> bool:
    """Return whether the calling task works for a wait or a stream, which ends after `STREAM_SECONDS`."""
    return -math.inf < request_context.patient_since.get() < math.inf


async def followed(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the events of a wait or a stream, whose operations wait for the end of a short outage.

    Raises:
        DatabaseOutage: the database cannot be used for `STREAM_SECONDS`.
    """
    began = elapsed()
    async with aclosing(events):
        while True:
            with waited_for(began):
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event


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
