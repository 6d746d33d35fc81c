"""Undone: which runs are gone because somebody asked for it."""

from collections import defaultdict

from tests.history.audit import Change
from tests.history.evidence import Evidence

ENDED = ("success", "error", "timeout", "interrupted")


def undone(evidence: Evidence) -> set[str]:
    """The runs that are gone, and of whom somebody had asked for that.

    A thread's deletion takes all of its runs. A run that is undone, or in whose way another came
    that wants it undone, is so only if it had not ended.
    """
    cancelled = {
        each.asked["run"]
        for each in evidence.operations("cancel")
        if each.outcome != "fail" and each.asked["action"] == "rollback"
    }
    undoers: dict[str, list[Change]] = defaultdict(list)
    for change in evidence.changes:
        if change.strategy == "rollback":
            undoers[change.thread].append(change)
    deleted, found = deleted_threads(evidence), set()
    for run, changes in evidence.changes_by_run.items():
        gone = changes[-1]
        if gone.status is not None:
            continue
        in_the_way = any(
            changes[0].number < undoer.number < gone.number for undoer in undoers[gone.thread]
        )
        unfinished = gone.was not in ENDED
        if gone.thread in deleted or (unfinished and (run in cancelled or in_the_way)):
            found.add(run)
    return found


def deleted_threads(evidence: Evidence) -> set[str]:
    """The threads that somebody may have deleted."""
    asked = evidence.operations("delete")
    return {each.asked["thread"] for each in asked if each.outcome != "fail"}
