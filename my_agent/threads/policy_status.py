"""The status of a thread under the thread policy."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class PolicyStatus(StrEnum):
    """The status that the thread policy stores in the metadata of a thread.

    created --> OPEN --+---------------------------> LOCKED --> ARCHIVED
                       |                               ^           ^
                       +-- a run is in flight          |           |
                       |     '--> PENDING_LOCK --------'           |
                       |              the run has ended            |
                       '-- unused for a long time -----------------'

    A closed thread never opens again.
    """

    OPEN = "open"
    PENDING_LOCK = "pending_lock"
    LOCKED = "locked"
    ARCHIVED = "archived"


TRANSITIONS: Final[Mapping[PolicyStatus, frozenset[PolicyStatus]]] = {
    PolicyStatus.OPEN: frozenset(PolicyStatus) - {PolicyStatus.OPEN},
    PolicyStatus.PENDING_LOCK: frozenset({PolicyStatus.LOCKED}),
    PolicyStatus.LOCKED: frozenset({PolicyStatus.ARCHIVED}),
    PolicyStatus.ARCHIVED: frozenset(),
}
"""The transitions of the diagram: each status, and the statuses that may follow it."""

THREAD_RESOLVED, THREAD_LOCKED = "thread_resolved", "thread_locked"
"""The `error` of a refusal.

`thread_resolved`: an existing thread can be resumed. `thread_locked`: the thread is read-only.
"""
