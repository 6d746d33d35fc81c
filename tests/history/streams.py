"""Streams: whether the events that a client got, over all servers, are complete."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import dropwhile
from typing import Any

from tests.history.claims import overtaken_steps
from tests.history.evidence import Evidence, Run
from tests.history.recorder import Operation
from tests.history.undone import ENDED

# The id, name and data of an event.
Event = list[Any]
FORGETTING = ("restart redis", "flush redis")


def streams_are_whole(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Each event comes once, in order, without gaps, and from no superseded attempt.

    Where events were lost, the client gets an error in their place.
    """
    faults = evidence.operations("fault")
    forgotten = [each.begun for each in faults if each.asked["what"] in FORGETTING]
    counts = {each.asked["tag"]: each.asked["count"] for each in evidence.operations("run", "wait")}
    for pieces in chains(evidence.operations("stream")):
        run = pieces[0].asked["run"]
        events = [event for piece in pieces for event in piece.answer.get("events", ())]
        lost = [number for number, (_, name, _) in enumerate(events) if name == "error"]
        seen = events[: lost[0]] if lost else events
        if wrong := _disorder(seen):
            yield f"the stream of run {run}: {wrong}", pieces
        kept = evidence.runs.get(run)
        for piece in pieces:
            if wrong := _bad_loss(piece, kept, counts):
                yield f"the stream of run {run}: {wrong}", [piece]
        if lost and not any(each.begun < (pieces[-1].ended or 0.0) for each in faults):
            yield f"the stream of run {run} was broken off without a fault", pieces
        if lost or not pieces[-1].answer.get("closed") or kept is None or kept.status != "success":
            continue
        end = pieces[-1].ended or 0.0
        if not events and any(time < end for time in forgotten):
            continue
        sent = Counter(
            (data["attempt"], data["pid"]) for _, name, data in events if name == "custom"
        )
        sender = last_of(evidence, run)
        done = sum((step.run, step.attempt, step.pid) == (run, *sender) for step in evidence.steps)
        if sent[sender] != done:
            yield f"the stream of run {run} ends too early: {sent[sender]} of {done} steps", pieces


def late_steps_are_not_sent(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """No stream has an event of a step that began after another attempt had begun."""
    late = {
        (each.run, each.attempt, each.pid, each.step): each for each in overtaken_steps(evidence)
    }
    for piece in evidence.operations("stream"):
        for _, name, data in piece.answer.get("events", ()):
            step = name == "custom" and late.get(_step(data))
            if step:
                yield "a stream has an event of a superseded attempt", [step, piece]


def _step(data: dict[str, Any]) -> tuple[str, int, int, int]:
    return data["run"], data["attempt"], data["pid"], data["step"]


def _bad_loss(piece: Operation, kept: Run | None, counts: dict[str, int]) -> str | None:
    """Return what is wrong with a piece that reports a loss, if anything.

    The piece must end with the result of the run, and must not call an existing run missing.
    """
    events = piece.answer.get("events", ())
    rest = list(dropwhile(lambda event: event[1] != "error", events))
    if not rest or kept is None or kept.status not in ENDED or not piece.answer.get("closed"):
        return None
    last, failed = rest[-1], kept.status == "error"
    if last[1] != ("error" if failed else "values"):
        return f"it does not end with the result of a run that is {kept.status}"
    if len({str(data) for _, name, data in rest if name == "error"}) > 1 + failed:
        return "it reports several different errors of one run"
    steps = [each for each in last[2].get("log", ()) if each.startswith(f"{kept.run}:")]
    if kept.status == "success" and len(steps) != counts.get(kept.tag or "", len(steps)):
        return f"its result has the steps {steps}"
    return None


def last_of(evidence: Evidence, run: str) -> tuple[int, int]:
    """Return the attempt that ended a run, and its process.

    Unsent events of an earlier attempt are lost with it.
    """
    ended = evidence.changes_by_run[run][-1]
    return ended.attempt or 0, int(ended.by)


def chains(pieces: list[Operation]) -> list[list[Operation]]:
    """Return the pieces of each stream that a client has read, in order."""
    found: list[list[Operation]] = []
    latest: dict[tuple[int, str], list[Operation]] = {}
    for piece in pieces:
        key = piece.client, piece.asked["run"]
        if key not in latest or piece.asked["after"] == "-1":
            latest[key] = []
            found.append(latest[key])
        latest[key].append(piece)
    return found


def _disorder(events: list[Event]) -> str | None:
    """Return what is wrong with the events of a stream, if anything."""
    order, sender, count = (-1, -1), None, 0
    superseded = set()
    for name, kind, data in events:
        if name is None:
            return f"an event without a number: {kind} {data}"
        first, _, second = name.partition("-")
        if (int(first), int(second)) <= order:
            return f"event {name} is repeated or out of order"
        order = int(first), int(second)
        if kind != "custom":
            continue
        if (data["attempt"], data["pid"]) != sender:
            superseded.add(sender)
            attempt = 0 if sender is None else sender[0]
            sender, count = (data["attempt"], data["pid"]), 0
            if sender in superseded or sender[0] < attempt:
                return f"event {name} is by a superseded attempt"
        if data["n"] != count:
            return f"event {name} is number {data['n']} of its attempt, expected {count}"
        count += 1
    return None
