"""What the graph takes and what it keeps."""

from typing_extensions import TypedDict


class Input(TypedDict):
    """What a caller may send.

    Attributes:
        job_id: a job of the ICP finder's, which names this run's thread as its own.
    """

    job_id: str


class State(Input, total=False):
    """What a thread keeps.

    Attributes:
        done: candidates that are enriched.
        total: of so many.
    """

    done: int
    total: int
