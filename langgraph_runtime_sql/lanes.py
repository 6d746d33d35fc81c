"""Lanes: operations of one kind that follow each other closely, a few to a transaction.

Whatever comes while one of a lane is under way waits for it, and then goes together with
whatever else has come: one transaction, one commit. So the checkpoints and writes of a step,
which a graph hands over one by one, cost about as much as one of them.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.delivery import Answer


@dataclass(frozen=True, slots=True)
class Job:
    """An operation, and who waits for it."""

    fn: Callable[[Connection], Any]
    answer: Answer[Any]


class Lanes:
    """What waits, by lane. A lane exists while somebody is at it."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[Job]] = {}
        self._lock = threading.Lock()

    def enter(self, lane: Hashable, job: Job) -> bool:
        """Put `job` into a lane; whether the lane is new, so that somebody has to go to it."""
        with self._lock:
            is_new = lane not in self._waiting
            self._waiting.setdefault(lane, []).append(job)
            return is_new

    def next(self, lane: Hashable) -> list[Job]:
        """Take what waits in a lane; the lane ends if it is nothing."""
        with self._lock:
            if found := self._waiting[lane]:
                self._waiting[lane] = []
            else:
                del self._waiting[lane]
            return found
