"""Streams: whether the events that a client got, over all servers, are complete."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.history.claims import overtaken_steps
from tests.history.evidence import Evidence
from tests.history.recorder import Operation

# The id, name and data of an event.
Event = list[Any]


def streams_are_whole(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Each event comes once, in order, without gaps, and from no superseded attempt.

    No fault excuses a loss: what was published is in the database.
    """
    for pieces in chains(evidence.operations("stream")):
        run = pieces[0].asked["run"]
        events = [event for piece in pieces for event in piece.answer.get("events", ())]
        errors = [number for number, (_, name, _) in enumerate(events) if name == "error"]
        seen = events[: errors[0]] if errors else events
        if wrong := _disorder(seen):
            yield f"the stream of run {run}: {wrong}", pieces
        if any(map(is_loss, events)):
            yield f"the stream of run {run} reported lost events", pieces
        kept = evidence.runs.get(run)
        if errors and kept is not None and kept.status == "success":
            yield f"the stream of run {run}, which succeeded, has an error", pieces
        is_whole = pieces[-1].answer.get("closed") and not errors
        if not is_whole or kept is None or kept.status != "success":
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


def is_loss(event: Event) -> bool:
    """Return whether an event says that others were lost."""
    _, name, data = event
    return bool(name == "error" and data.get("error") == "EventsLost")


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
