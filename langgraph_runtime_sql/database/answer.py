"""Answers: a database thread hands the outcome of an operation to a coroutine or a thread."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
Outcome = tuple["Answer[Any]", Any, BaseException | None]


class Answer(Generic[T]):
    """The outcome that one caller waits for.

    Args:
        loop: The caller's event loop; None for a thread that blocks.
    """

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._future: asyncio.Future[T] | Future[T] = (
            Future() if loop is None else loop.create_future()
        )

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller no longer waits."""
        return self._future.cancelled()

    async def wait(self) -> T:
        """Return the result or raise the error, on the event loop of the caller."""
        if not isinstance(self._future, asyncio.Future):
            raise TypeError("This answer is for a thread")
        return await self._future

    def block(self) -> T:
        """Return the result or raise the error, blocking a thread without an event loop."""
        if isinstance(self._future, asyncio.Future):
            raise TypeError("This answer is for an event loop")
        return self._future.result()

    def give(self, result: T) -> None:
        """Deliver a result, from any thread."""
        Answer.settle([(self, result, None)])

    def fail(self, error: BaseException) -> None:
        """Deliver an error, from any thread."""
        Answer.settle([(self, None, error)])

    @staticmethod
    def settle(outcomes: Iterable[Outcome]) -> None:
        """Deliver many outcomes with one wake-up for each event loop."""
        by_loop: dict[asyncio.AbstractEventLoop | None, list[Outcome]] = defaultdict(list)
        for outcome in outcomes:
            by_loop[outcome[0]._loop].append(outcome)
        for loop, batch in by_loop.items():
            if loop is None:
                _resolve(batch)
                continue
            # The caller's loop is closed, so nothing waits for the answer.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, batch)


def _resolve(batch: list[Outcome]) -> None:
    for answer, result, error in batch:
        future = answer._future
        if future.done():
            # The caller has cancelled it.
            continue
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):
            # A future refuses StopIteration, and its caller would wait forever.
            future.set_exception(RuntimeError("An operation raised StopIteration"))
        else:
            future.set_exception(error)


def run_callbacks(callbacks: Iterable[Callable[[], None]]) -> None:
    """Call the callbacks of a commit. One that fails stops neither the others nor the answer."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            logger.exception("A callback failed after a commit")
