"""Input and state of the graph `enrichment`."""

from typing_extensions import TypedDict


class Input(TypedDict):
    """The input that a client may send.

    Attributes:
        job_id: a job of the ICP finder whose row names the thread of this run.
    """

    job_id: str


class State(Input, total=False):
    """The stored state of a thread.

    Attributes:
        done: number of candidates that were tried or are enriched.
        total: number of candidates of the job.
        failures: candidates that could not be enriched, each with `key`, `name` and `why`.
    """

    done: int
    total: int
    failures: list[dict[str, str]]
