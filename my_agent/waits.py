"""The seconds that runs have waited for structured answers."""

import threading
from collections import OrderedDict

from langchain_core.runnables import RunnableConfig

from my_agent.breaker import tenant_of

Run = tuple[str, str]
"""A tenant, and the id of its run: a client may choose an id, but not that of another tenant."""

# Runs whose waits are remembered.
MOST = 1000


def run_of(config: RunnableConfig) -> Run | None:
    """Return the run of a config; None outside of a server."""
    # A server names the run at the top for its graph, and in the metadata for the graph's nodes.
    places = (config.get("configurable"), config, config.get("metadata"))
    found = next((run for each in places if each and (run := each.get("run_id"))), None)
    return None if found is None else (tenant_of(config), str(found))


class Waits:
    """Remembers how long each of the latest runs has waited. The seconds of parallel calls add up."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[Run, float] = OrderedDict()
        self._lock = threading.Lock()

    def left(self, run: Run | None, budget: float) -> float:
        """Return the seconds of a budget that a run has not waited yet."""
        with self._lock:
            return budget - (0.0 if run is None else self._seconds.get(run, 0.0))

    def add(self, run: Run | None, seconds: float) -> None:
        """Add the seconds of a call."""
        if run is None:
            return
        with self._lock:
            self._seconds[run] = self._seconds.get(run, 0.0) + seconds
            self._seconds.move_to_end(run)
            if len(self._seconds) > MOST:
                self._seconds.popitem(last=False)


shared = Waits()
"""The waits of this process."""
