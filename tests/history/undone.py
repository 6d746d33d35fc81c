"""Removed runs: which runs are gone because a client asked for it."""

from collections import defaultdict

from tests.history.audit import Change
from tests.history.evidence import Evidence

ENDED = ("success", "error", "timeout", "interrupted")


def undone(evidence: Evidence) -> set[str]:
    """Return the runs that are gone because a client asked for it.

    Deleting a thread removes all of its runs. A rollback, by cancelling or by a later run, removes
    a run only if it had not ended.
    """
    cancelled = {
        each.asked["run"]
        for each in evidence.operations("cancel")
        if each.outcome != "fail" and each.asked["action"] == "rollback"
    }
    rollbacks: dict[str, list[Change]] = defaultdict(list)
    for change in evidence.changes:
        if change.strategy == "rollback":
            rollbacks[change.thread].append(change)
    deleted, found = deleted_threads(evidence), set()
    for run, changes in evidence.changes_by_run.items():
        gone = changes[-1]
        if gone.status is not None:
            continue
        rolled_back = any(
            changes[0].number < rollback.number < gone.number for rollback in rollbacks[gone.thread]
        )
        unfinished = gone.was not in ENDED
        if gone.thread in deleted or (unfinished and (run in cancelled or rolled_back)):
            found.add(run)
    return found


def deleted_threads(evidence: Evidence) -> set[str]:
    """Return the threads that a client may have deleted."""
    asked = evidence.operations("delete")
    return {each.asked["thread"] for each in asked if each.outcome != "fail"}
