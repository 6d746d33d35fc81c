"""Pauses: let other threads run Python during long work in a thread.

Such work releases the interpreter again and again, but for microseconds: the event loop's thread wakes
up too late, and each release ends the wait after which it would be given the interpreter. A pause is
longer than the time to wake up.
"""

from time import perf_counter, sleep

# A pause follows so much work, unless the thread was idle since the last.
WORK_SECONDS, PAUSE_SECONDS, IDLE_SECONDS = 0.002, 0.0002, 0.1


class Pauses:
    """The pauses of one thread's work."""

    def __init__(self) -> None:
        self._due = 0.0

    def take(self) -> None:
        """Pause if enough work was done since the last pause. Call it at each small step."""
        now = perf_counter()
        if now < self._due:
            return
        if now < self._due + IDLE_SECONDS:
            sleep(PAUSE_SECONDS)
        self._due = perf_counter() + WORK_SECONDS
