"""Answer: how a thread that owns a connection tells a coroutine, or a thread, the outcome."""

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
    """One caller's wait: on an event loop when made there, else on a blocked thread."""

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._future: asyncio.Future[T] | Future[T] = (
            Future() if loop is None else loop.create_future()
        )

    async def wait(self) -> T:
        """The result, or the error raised; on the loop that made this answer."""
        if not isinstance(self._future, asyncio.Future):
            raise TypeError("This answer is for a thread")
        return await self._future

    def block(self) -> T:
        """The same for a thread without a loop."""
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
            # A caller whose loop is closed has gone: nobody is left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, batch)


def _resolve(batch: list[Outcome]) -> None:
    for answer, result, error in batch:
        future = answer._future
        if future.done():
            # Cancelled meanwhile.
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def tell_of_commit(callbacks: Iterable[Callable[[], None]]) -> None:
    """Call what waited for a commit. One that fails must keep neither the others nor the answer."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            logger.exception("A callback failed after a commit")
