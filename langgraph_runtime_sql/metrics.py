"""What `/metrics` reports about this process's workers."""

from dataclasses import dataclass


@dataclass(slots=True)
class Workers:
    """The queue's slots. The queue updates both numbers on its event loop.

    Attributes:
        max: Runs that this process executes at once; 0 without a queue.
        active: Runs that it executes now.
    """

    max: int = 0
    active: int = 0


workers = Workers()


def get_metrics() -> dict[str, dict[str, int]]:
    """Return `{"workers": {"max", "active", "available"}}`, in runs."""
    return {
        "workers": {
            "max": workers.max,
            "active": workers.active,
            "available": max(0, workers.max - workers.active),
        }
    }
