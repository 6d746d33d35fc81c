"""Answers: checks that clients received true answers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.history.evidence import Evidence
from tests.history.recorder import Operation
from tests.history.undone import ENDED

# The time in which a run was in flight, by the clock of operations.
Span = tuple[float, float]
# Seconds for which a run may still appear in flight after its end was written: the commit comes
# later, and its process may be stopped meanwhile.
COMMITTED_SECONDS = 20.0


def refusals_have_a_reason(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Check that no existing object is called missing and no idle thread busy."""
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
            yield "an existing object was not found", [asked]
        elif status == 409 and not _is_taken(asked, busy):
            yield "an idle thread was called busy", [asked]
        elif 400 <= status < 500 and status not in (404, 409):
            yield "a request was refused without a reason", [asked]


def _is_there(evidence: Evidence, asked: Operation, spans: dict[str, Span]) -> bool:
    """Return whether every object of a request existed until after its answer."""
    run = asked.asked.get("run")
    if asked.kind == "cancel":
        return asked.ended is not None and spans[asked.asked["run"]][1] > asked.ended
    thread = asked.asked["thread"]
    # Only the client that wrote an item reads it, and items are never deleted.
    if asked.kind == "look" and thread is None:
        return True
    return thread in evidence.threads and (run is None or run in evidence.runs)


def _is_taken(asked: Operation, busy: dict[str, list[Span]]) -> bool:
    """Return whether the thread was busy during a request that a busy thread refuses."""
    refusable = asked.kind == "state" or asked.asked.get("strategy") == "reject"
    end = float("inf") if asked.ended is None else asked.ended
    spans = busy[asked.asked["thread"]]
    return refusable and any(
        first <= end and last + COMMITTED_SECONDS >= asked.begun for first, last in spans
    )


def reads_are_fresh(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Check that each client reads its last write at every server, or a later unknown write."""
    last: dict[tuple[Any, ...], list[Operation]] = defaultdict(list)
    for asked in evidence.operations("item", "patch", "look"):
        place = asked.client, asked.asked.get("thread"), asked.asked["key"]
        if asked.kind != "look":
            # An unknown write may have happened, or may still happen.
            unknown = [each for each in last[place] if each.outcome == "info"]
            if asked.outcome != "fail":
                last[place] = [*(unknown if asked.ok else last[place]), asked]
        elif asked.ok:
            known = last[place]
            held = asked.answer["found"] or {}
            value = held.get(asked.asked["key"] if asked.asked["thread"] else "value")
            if value not in [each.asked["value"] for each in known]:
                yield "a client does not read what it wrote", [*known, asked]
