"""Claims: which attempt had a run at what time, and the steps that it executed."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.history.audit import Change
from tests.history.evidence import Evidence, Step

# A claim and the change that ended it.
Span = tuple[Change, Change | None]


def late_steps(evidence: Evidence) -> list[Step]:
    """Return the steps that superseded processes executed before they knew it."""
    return [
        step
        for step, spans in claims(evidence)
        if spans and all(end is not None and end.at < step.begun for _, end in spans)
    ]


def overtaken_steps(evidence: Evidence) -> list[Step]:
    """Return the steps that began after another attempt at their run had begun."""
    begun: dict[str, list[Change]] = {
        run: [each for each in changes if each.status == "running"]
        for run, changes in evidence.changes_by_run.items()
    }
    return [
        step
        for step, spans in claims(evidence)
        if spans
        and any(
            spans[-1][0].number < each.number and each.at < step.begun for each in begun[step.run]
        )
    ]


def claims(evidence: Evidence) -> Iterator[tuple[Step, list[Span]]]:
    """Yield each step with the claims under which it may have been executed, and their ends."""
    spans: dict[tuple[str, int | None, str], list[Span]] = defaultdict(list)
    for run, changes in evidence.changes_by_run.items():
        for change, after in pairwise([*changes, None]):
            if change is not None and change.status == "running":
                spans[run, change.attempt, change.by].append((change, after))
    for step in evidence.steps:
        yield step, spans.get((step.run, step.attempt, str(step.pid)), [])


def may_not_know(claimed: Change, end: Change | None) -> bool:
    return end is not None and (end.by != claimed.by or end.status is None)
