"""The statuses of runs and threads, and their transitions.

A run:

    created --> PENDING ---- claimed ---> RUNNING --+--> SUCCESS
                 |   ^                      |       +--> ERROR
                 |   '-- retried, worker ---'       +--> TIMEOUT
                 |       lost or stopping           |
                 '---------- cancelled -------------+--> INTERRUPTED

The four on the right are final. A rollback or deletion removes the run's row.

A thread is BUSY while one of its runs is in flight:

    created with a run --> BUSY -- last run in flight ends --> IDLE | INTERRUPTED | ERROR
                            ^                                            |
                            '---------------- run created ---------------'

    created, copied --> IDLE | INTERRUPTED | ERROR
    IDLE <-- client writes a state, run deleted --> INTERRUPTED
    ERROR -- client writes a state, run deleted --> IDLE | INTERRUPTED
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """The status of a run, as stored and as the API shows it."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class ThreadStatus(StrEnum):
    """The status of a thread, as stored and as the API shows it."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


ENDED: Final = frozenset(
    {RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.INTERRUPTED}
)
"""The final statuses of a run."""

IN_FLIGHT: Final = frozenset({RunStatus.PENDING, RunStatus.RUNNING})
"""The statuses of a run that has not ended."""

AT_REST: Final = frozenset({ThreadStatus.IDLE, ThreadStatus.INTERRUPTED, ThreadStatus.ERROR})
"""The statuses of a thread without a run in flight."""

ROLLBACK: Final = "rollback"
"""Used by workers and hooks in place of the status of a run that is rolled back."""

RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.INTERRUPTED}),
    RunStatus.RUNNING: ENDED | {RunStatus.PENDING},
    **dict.fromkeys(ENDED, frozenset[RunStatus]()),
}
"""The transitions of a run. Writing the same status again is allowed, too."""

THREAD_TRANSITIONS: Final[Mapping[ThreadStatus, frozenset[ThreadStatus]]] = {
    ThreadStatus.BUSY: AT_REST,
    ThreadStatus.IDLE: frozenset({ThreadStatus.BUSY, ThreadStatus.INTERRUPTED}),
    ThreadStatus.INTERRUPTED: frozenset({ThreadStatus.BUSY, ThreadStatus.IDLE}),
    ThreadStatus.ERROR: frozenset({ThreadStatus.BUSY, ThreadStatus.IDLE, ThreadStatus.INTERRUPTED}),
}
"""The transitions of a thread. Writing the same status again is allowed, too."""
