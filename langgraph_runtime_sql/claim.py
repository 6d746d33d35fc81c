"""Claims: the attempt at a run on whose behalf a task writes."""

from dataclasses import dataclass, field

from langgraph_runtime_sql.clock import elapsed


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt at a run.

    Attributes:
        run_id: The run.
        attempt: The number of the attempt, from 1.
        temporary_thread_id: The run's thread, if the thread is deleted with the run.
        since: The start of the attempt's lease, by `clock.elapsed`.
        owner: The process that claimed the run. After an uncounted attempt, another process may
            make one with the same number.
    """

    run_id: str
    attempt: int
    temporary_thread_id: str | None = None
    since: float = field(default_factory=elapsed, compare=False)
    owner: str | None = None
