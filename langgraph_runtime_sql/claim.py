"""Claim: the attempt at a run that a task works for."""

from dataclasses import dataclass, field

from langgraph_runtime_sql.clock import elapsed


@dataclass(frozen=True, slots=True)
class Claim:
    """The attempt at a run on whose behalf the current task writes.

    Attributes:
        run_id: The run.
        attempt: How many times the run has been started, this one included.
        temporary_thread_id: The run's thread, if the thread is deleted with the run.
        since: When the claim that gave the attempt its lease began, by `clock.elapsed`.
        owner: The process that claimed the run. Where attempts are not counted, another
            process may make one with the same number.
    """

    run_id: str
    attempt: int
    temporary_thread_id: str | None = None
    since: float = field(default_factory=elapsed, compare=False)
    owner: str | None = None
