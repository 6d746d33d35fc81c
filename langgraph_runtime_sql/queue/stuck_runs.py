"""Stuck runs: what goes on although it was to stop, and keeps others waiting.

A node that does not let itself be cancelled keeps its run's slot; one that is a plain function gives
the slot back, but keeps a thread. Nothing can end either but the end of the process. So
whoever runs the server is told which run it is, and how many there are.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import structlog

from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.queue.node_threads import Attempt

logger = structlog.stdlib.get_logger(__name__)

# Most nodes come to an end by then, or look whether they should.
LATE_SECONDS = 30.0

_SAID = {
    "slot": "A run was to stop and goes on: a node ignores its cancellation, and keeps a slot",
    "thread": "A node goes on although its run is over: it is a plain function, and keeps a thread",
}


class StuckRuns:
    """Those of a queue."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, Attempt], float] = {}
        self._logged: set[tuple[str, Attempt]] = set()

    def look(self, slots: Iterable[Attempt], threads: Iterable[Attempt]) -> None:
        """Tell of those that have gone on for too long, of each once, and count them.

        Args:
            slots: Attempts that were to stop and keep their slots.
            threads: Attempts that are over, for which threads are still at work.
        """
        now = elapsed()
        found = {*(("slot", each) for each in slots), *(("thread", each) for each in threads)}
        self._since = {each: self._since.get(each, now) for each in found}
        late = {each for each, since in self._since.items() if now - since >= LATE_SECONDS}
        for kept, (run_id, attempt) in sorted(late - self._logged):
            logger.warning(
                _SAID[kept], action="straggler", keeps=kept, run_id=run_id, attempt=attempt
            )
        if late != self._logged:
            for kept in _SAID:
                _gauge().labels(kept).set(sum(each[0] == kept for each in late))
        self._logged = late


@cache
def _gauge() -> Any:
    # Where there is something to count: each start would wait for the library.
    from prometheus_client import Gauge

    return Gauge(
        "threadhold_stragglers", "Runs that were to stop and keep a slot or a thread", ["keeps"]
    )
