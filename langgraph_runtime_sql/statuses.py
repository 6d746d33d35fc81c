"""The statuses of runs and threads, and the changes of them that the runtime makes.

A run:

    created --> PENDING ---- claimed ---> RUNNING --+--> SUCCESS
                 |   ^                      |       +--> ERROR
                 |   '-- retried, worker ---'       +--> TIMEOUT
                 |       lost or stopping           |
                 '---------- cancelled -------------+--> INTERRUPTED

The four on the right are final. A run that is rolled back or deleted has no status: its row goes.

A thread is BUSY while a run of it is in flight, and rests otherwise:

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
    """The status of a run, as it is stored and as the API shows it."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class ThreadStatus(StrEnum):
    """The status of a thread, as it is stored and as the API shows it."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


ENDED: Final = frozenset(
    {RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.INTERRUPTED}
)
"""The final statuses of a run."""

IN_FLIGHT: Final = frozenset({RunStatus.PENDING, RunStatus.RUNNING})
"""The statuses of a run that waits for a worker or has one."""

AT_REST: Final = frozenset({ThreadStatus.IDLE, ThreadStatus.INTERRUPTED, ThreadStatus.ERROR})
"""The statuses of a thread without a run in flight."""

ROLLBACK: Final = "rollback"
"""The end of a run that is undone. Workers and hooks name it in place of a status."""

RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.INTERRUPTED}),
    RunStatus.RUNNING: ENDED | {RunStatus.PENDING},
    **dict.fromkeys(ENDED, frozenset[RunStatus]()),
}
"""The diagram of a run. A status may also be written again."""

THREAD_TRANSITIONS: Final[Mapping[ThreadStatus, frozenset[ThreadStatus]]] = {
    ThreadStatus.BUSY: AT_REST,
    ThreadStatus.IDLE: frozenset({ThreadStatus.BUSY, ThreadStatus.INTERRUPTED}),
    ThreadStatus.INTERRUPTED: frozenset({ThreadStatus.BUSY, ThreadStatus.IDLE}),
    ThreadStatus.ERROR: frozenset({ThreadStatus.BUSY, ThreadStatus.IDLE, ThreadStatus.INTERRUPTED}),
}
"""The diagram of a thread. A status may also be written again."""
