"""Watching: whether the events that a client got of a whole thread are complete."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from tests.history.evidence import Evidence
from tests.history.recorder import Operation
from tests.history.streams import Event, is_loss, last_of
from tests.history.undone import undone

Sender = tuple[str, int, int]


def threads_streams_are_whole(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Each event comes once and in order, runs follow each other, and none is missing.

    No fault excuses a loss: what was published is in the database.
    """
    sessions: dict[str, list[Operation]] = defaultdict(list)
    for piece in evidence.operations("watch"):
        sessions[piece.asked["session"]].append(piece)
    for pieces in sessions.values():
        events = [event for piece in pieces for event in piece.answer.get("events", ())]
        errors = [number for number, (_, name, _) in enumerate(events) if name == "error"]
        seen = events[: errors[0]] if errors else events
        thread = pieces[0].asked["thread"]
        gaps = (_gap(seen), _missing(evidence, thread, seen), _hole(evidence, thread, seen))
        if wrong := _repeat(seen) or next(filter(None, gaps), None):
            yield f"the stream of thread {thread}: {wrong}", pieces
        if any(map(is_loss, events)):
            yield f"the stream of thread {thread} reported lost events", pieces


def _repeat(events: list[Event]) -> str | None:
    before = (-1, -1)
    for name, kind, data in events:
        if name is None:
            return f"an event without a number: {kind} {data}"
        first, _, second = name.partition("-")
        if (int(first), int(second)) <= before:
            return f"event {name} is repeated or out of order"
        before = int(first), int(second)
    return None


def _gap(events: list[Event]) -> str | None:
    """Return a gap in the events of an attempt; only the first one may start in the middle."""
    counts: dict[Sender, int] = {}
    latest: dict[str, int] = {}
    for name, kind, data in events:
        if kind != "custom":
            continue
        sender = data["run"], data["attempt"], data["pid"]
        if data["attempt"] < latest.get(data["run"], 0):
            return f"event {name} is by a superseded attempt"
        if data["n"] != counts.get(sender, data["n"] if not counts else 0):
            return f"event {name} is number {data['n']}, expected {counts.get(sender, 0)}"
        latest[data["run"]], counts[sender] = data["attempt"], data["n"] + 1
    return None


def _missing(evidence: Evidence, thread: str, events: list[Event]) -> str | None:
    """Return a run whose events are missing between the first and the last run that were seen."""
    senders = [
        (data["run"], data["attempt"], data["pid"]) for _, kind, data in events if kind == "custom"
    ]
    runs = list(dict.fromkeys(run for run, _, _ in senders))
    order = [
        change.run
        for change in evidence.changes
        if change.what == "run" and change.thread == thread and change.was == "running"
        if change.status == "success"
    ]
    places = [order.index(run) for run in runs if run in order]
    if not places:
        return None
    resumable = {
        each.answer.get("run") for each in evidence.operations("run") if each.asked.get("resumable")
    }
    steps: dict[Sender, int] = defaultdict(int)
    for step in evidence.steps:
        steps[step.run, step.attempt, step.pid] += 1
    # The client may have joined during the first run and left during the last.
    for run in order[min(places) + 1 : max(places)]:
        done = run in resumable and steps[run, *last_of(evidence, run)]
        sent = senders.count((run, *last_of(evidence, run)))
        if done and sent != done:
            return f"run {run} took {done} steps, but the client got {sent}"
    return None


def _hole(evidence: Evidence, thread: str, events: list[Event]) -> str | None:
    """Return numbers that are missing between two events.

    A new attempt may repeat numbers of events that were never stored. Only removed runs leave a
    hole: their events are deleted.
    """
    for (before, _, earlier), (after, _, later) in pairwise(events):
        first, last = (int(name.partition("-")[2]) for name in (before, after))
        if last > first + 1 and not _was_removed(evidence, thread, _run(earlier), _run(later)):
            return f"the numbers between {before} and {after} are missing"
    return None


def _run(data: Any) -> str | None:
    found = data if isinstance(data, dict) else {}
    run = found.get("run", found.get("run_id"))
    return run if isinstance(run, str) else None


def _was_removed(evidence: Evidence, thread: str, first: str | None, last: str | None) -> bool:
    """Return whether a run of the thread was removed that existed between two other runs."""
    removed = undone(evidence)
    begun = [each.number for each in evidence.changes_by_run.get(first or "", ())]
    ended = [each.number for each in evidence.changes_by_run.get(last or "", ())]
    start, end = min(begun, default=0), max(ended, default=math.inf)
    return any(
        changes[0].thread == thread and changes[0].number < end and changes[-1].number > start
        for run, changes in evidence.changes_by_run.items()
        if run in removed
    )
