"""The status of a thread under the thread policy."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class PolicyStatus(StrEnum):
    """The status that the policy gives a thread, in the thread's metadata.

    created --> OPEN --+---------------------------> LOCKED --> ARCHIVED
                       |                               ^           ^
                       +-- a run is in flight          |           |
                       |     '--> PENDING_LOCK --------'           |
                       |              the run has ended            |
                       '-- not used for long ----------------------'

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
"""The diagram of a thread under the policy."""

THREAD_RESOLVED, THREAD_LOCKED = "thread_resolved", "thread_locked"
"""The `error` of a refusal: a thread could be resumed instead, or is closed to what writes to it."""
