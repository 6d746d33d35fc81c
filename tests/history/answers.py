"""Answers: whether what clients were told was true at the time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.history.evidence import Evidence
from tests.history.recorder import Operation
from tests.history.undone import ENDED

# When a run was in flight, by the clock of operations.
Span = tuple[float, float]
# Seconds that a run may still be seen in flight after its end was written: until that is
# committed, by a process that may be stopped meanwhile.
COMMITTED_SECONDS = 20.0


def refusals_have_a_reason(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Nothing that is there is called missing, no thread busy that is not."""
    busy: dict[str, list[Span]] = defaultdict(list)
    spans: dict[str, Span] = {}
    for run, changes in evidence.changes_by_run.items():
        ends = (each.at for each in changes if each.status in (*ENDED, None))
        end = next(ends, float("inf"))
        spans[run] = changes[0].at - evidence.epoch, end - evidence.epoch
        busy[changes[0].thread].append(spans[run])
    for asked in evidence.history:
        status = asked.answer.get("status", 0)
        if status == 404 and _is_there(evidence, asked, spans):
            yield "what is there was not found", [asked]
        elif status == 409 and not _is_taken(asked, busy):
            yield "a thread was called busy that was not", [asked]
        elif 400 <= status < 500 and status not in (404, 409):
            yield "it was refused without a reason", [asked]


def _is_there(evidence: Evidence, asked: Operation, spans: dict[str, Span]) -> bool:
    """Whether all that a question was about was there until after its answer."""
    run = asked.asked.get("run")
    if asked.kind == "cancel":
        return asked.ended is not None and spans[asked.asked["run"]][1] > asked.ended
    thread = asked.asked["thread"]
    # Items are looked at by who has written them, and never deleted.
    if asked.kind == "look" and thread is None:
        return True
    return thread in evidence.threads and (run is None or run in evidence.runs)


def _is_taken(asked: Operation, busy: dict[str, list[Span]]) -> bool:
    """Whether a thread was at work at some moment of a question that minds."""
    minds = asked.kind == "state" or asked.asked.get("strategy") == "reject"
    end = float("inf") if asked.ended is None else asked.ended
    spans = busy[asked.asked["thread"]]
    return minds and any(
        first <= end and last + COMMITTED_SECONDS >= asked.begun for first, last in spans
    )


def reads_are_fresh(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Who has written something finds it at every server, or a later value unknown of."""
    last: dict[tuple[Any, ...], list[Operation]] = defaultdict(list)
    for asked in evidence.operations("item", "patch", "look"):
        place = asked.client, asked.asked.get("thread"), asked.asked["key"]
        if asked.kind != "look":
            # What nobody knows of may have happened, or happen yet.
            unknown = [each for each in last[place] if each.outcome == "info"]
            if asked.outcome != "fail":
                last[place] = [*(unknown if asked.ok else last[place]), asked]
        elif asked.ok:
            known = last[place]
            held = asked.answer["found"] or {}
            value = held.get(asked.asked["key"] if asked.asked["thread"] else "value")
            if value not in [each.asked["value"] for each in known]:
                yield "what was written is not what is read", [*known, asked]
