"""Turns: one thread at a time executes Python between its waits for Postgres.

A driver releases the interpreter's lock at each call of its library. With several threads at work,
each release hands the lock to another thread, and getting it back takes a switch of threads. These
switches cost more than the work itself, the more the more cores there are.

A turn is a courtesy: what needs it can go on without it, so nothing ever waits for a thread that waits.
"""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")
# A thread that does not get its turn by then goes on. Work between two waits takes less.
PATIENCE_SECONDS = 0.02


class InterpreterTurns:
    """Gives a turn to one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()

    def connect(self, *args: Any, **options: Any) -> "TurnConnection":
        """Open a connection, as the driver does, whose threads take these turns."""
        raw = TurnConnection.connect(*args, **options)
        raw.turns = self
        return raw

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a turn in the block, except while the thread waits for the server."""
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        self._local.has_turn = self._lock.acquire(timeout=PATIENCE_SECONDS)

    def _give(self) -> None:
        if self._local.has_turn:
            self._local.has_turn = False
            self._lock.release()

    def between_waits(self, work: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Give the turn away at each wait of `work`, which the driver waits for."""
        has_turn = getattr(self._local, "has_turn", False)
        ready = None
        while True:
            try:
                awaited = work.send(ready)
            except StopIteration as end:
                result: T = end.value
                return result
            if not has_turn:
                ready = yield awaited
                continue
            self._give()
            try:
                ready = yield awaited
            finally:
                self._take()


class TurnConnection(psycopg.Connection[Any]):
    """A connection whose thread gives its turn away while it waits for the server.

    Attributes:
        turns: The turns of all threads on the same database, if they take turns.
    """

    turns: InterpreterTurns | None = None

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait as the driver does."""
        if self.turns is not None:
            gen = self.turns.between_waits(gen)
        return super().wait(gen, *args, **options)
