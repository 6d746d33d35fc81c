"""Stuck runs: find runs whose node still runs long after the run should have stopped.

A node that ignores its cancellation occupies its run's slot. A node that is a plain function frees
the slot, but occupies a thread. Only the end of the process ends either, so operators must know.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import structlog

from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.queue.node_threads import Attempt

logger = structlog.stdlib.get_logger(__name__)

# Most nodes return, or check for their cancellation, within this time.
LATE_SECONDS = 30.0
# What a stuck run occupies.
_KEEPS = ("slot", "thread")


class StuckRuns:
    """The stuck runs of one queue."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, Attempt], float] = {}
        self._logged: set[tuple[str, Attempt]] = set()

    def look(self, slots: Iterable[Attempt], threads: Iterable[Attempt]) -> None:
        """Log each newly stuck attempt once, and update the metric.

        Args:
            slots: Attempts that should have stopped and still occupy a slot.
            threads: Attempts that are over and still occupy a thread.
        """
        now = elapsed()
        found = {*(("slot", each) for each in slots), *(("thread", each) for each in threads)}
        self._since = {each: self._since.get(each, now) for each in found}
        late = {each for each, since in self._since.items() if now - since >= LATE_SECONDS}
        for keeps, (run_id, attempt) in sorted(late - self._logged):
            logger.warning(
                "Run got stuck", action="run_stuck", keeps=keeps, run_id=run_id, attempt=attempt
            )
        if late != self._logged:
            for keeps in _KEEPS:
                _gauge().labels(keeps).set(sum(each[0] == keeps for each in late))
        self._logged = late


@cache
def _gauge() -> Any:
    # Imported late, because the library would delay each start.
    from prometheus_client import Gauge

    return Gauge(
        "threadhold_stuck_runs",
        "Runs that should have stopped but occupy a slot or a thread",
        ["keeps"],
    )
