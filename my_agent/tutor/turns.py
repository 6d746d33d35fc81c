"""Turns: check texts with Harper in one thread, tenants in turn, for a limited time in each run.

Harper may be used by one thread at a time, and its time grows with the square of a text's length.
So a text is checked in pieces, and after each piece the next tenant has its turn.
"""

import asyncio
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from my_agent.tutor import grammar
from my_agent.tutor.corrections import Issue

T = TypeVar("T")
# Characters of a piece: some ten milliseconds, also with many mistakes.
PIECE = 1000
# Seconds that the checks of one run may take, with their waits for other tenants.
SECONDS = 10.0
_END = re.compile(r"[.!?\n]\s+|\s+")


class Turns:
    """One thread that works for tenants in turn."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "grammar")
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._lock = threading.Lock()

    async def run(self, tenant: str, work: Callable[[], T]) -> T:
        """Return the result of `work` when it is the tenant's turn. Cancelled work is not begun."""
        future: Future[T] = Future()

        def step() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # the caller gets it
                future.set_exception(error)

        with self._lock:
            self._waiting.setdefault(tenant, deque()).append(step)
        self._thread.submit(self._next)
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        with self._lock:
            tenant, queue = next(iter(self._waiting.items()))
            step = queue.popleft()
            if queue:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]
        step()


_turns = Turns()


async def check(tenant: str, text: str, until: float) -> list[Issue]:
    """Return the mistakes that Harper finds in a text before a deadline.

    Args:
        tenant: Whose turn it takes.
        until: The deadline on the event loop's clock. The pieces after it are not checked.
    """
    issues: list[Issue] = []
    try:
        async with asyncio.timeout_at(until):
            for start, piece in pieces(text):
                found = await _turns.run(tenant, lambda piece=piece: grammar.check(piece))  # type: ignore[misc]
                issues += [
                    {**each, "start": each["start"] + start, "end": each["end"] + start}
                    for each in found
                ]
    except TimeoutError:
        # A long backlog must not delay the answer. The model reviews the whole text.
        pass
    return issues


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their positions, cut after a sentence or else a word."""
    start = 0
    while len(text) - start > PIECE:
        ends = [found for found in _END.finditer(text, start + PIECE // 2, start + PIECE)]
        sentences = [found for found in ends if not found.group()[0].isspace()]
        cut = (sentences or ends)[-1].end() if ends else start + PIECE
        yield start, text[start:cut]
        start = cut
    yield start, text[start:]
