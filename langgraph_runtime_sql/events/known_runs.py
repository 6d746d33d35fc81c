"""Known runs: those that are live in this process, and those that have recently ended in it."""

from collections import OrderedDict

# How many ended runs, and how many early control messages, are remembered.
MAX_REMEMBERED = 10_000


class KnownRuns:
    """What this process knows about runs. Changes need the lock of the topics."""

    def __init__(self) -> None:
        self._live: dict[str, bool] = {}
        # On Postgres a run's creation may be announced after its end.
        self._ended: OrderedDict[str, None] = OrderedDict()

    def is_live(self, run_id: str) -> bool:
        """Return whether this process knows that the run has not ended."""
        return run_id in self._live

    def is_resumable(self, run_id: str) -> bool:
        """Return whether a live run keeps its stream."""
        return self._live.get(run_id, False)

    def has_ended(self, run_id: str) -> bool:
        """Return whether this process has recently announced the run's end."""
        return run_id in self._ended

    def begin(self, run_id: str, *, resumable: bool) -> bool:
        """Note that a run is live. Return False if it has ended."""
        if run_id in self._ended:
            return False
        self._live[run_id] = resumable
        return True

    def end(self, run_id: str) -> None:
        """Note that a run has ended. Repeatable."""
        self._ended[run_id] = None
        while len(self._ended) > MAX_REMEMBERED:
            self._ended.popitem(last=False)
        self.release(run_id)

    def release(self, run_id: str) -> None:
        """Forget that a run is live. Repeatable."""
        self._live.pop(run_id, None)

    def live(self) -> set[str]:
        """Return the ids of the live runs."""
        return set(self._live)
