"""What `/metrics` reports of this process's workers."""

from dataclasses import dataclass


@dataclass(slots=True)
class Workers:
    """The queue's slots; the queue keeps both numbers right, on its own event loop.

    Attributes:
        max: Runs this process executes at once; 0 while it has no queue.
        active: Runs it is executing now.
    """

    max: int = 0
    active: int = 0


workers = Workers()


def get_metrics() -> dict[str, dict[str, int]]:
    """`{"workers": {"max", "active", "available"}}`, in runs."""
    return {
        "workers": {
            "max": workers.max,
            "active": workers.active,
            "available": max(0, workers.max - workers.active),
        }
    }
