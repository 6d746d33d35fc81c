"""Streams: whether what a client was sent, over all servers that it was resumed at, is whole."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.history.evidence import Evidence
from tests.history.recorder import Operation

# The id, name and data of an event.
Event = list[Any]
FORGETTING = ("restart redis", "flush redis")


def streams_are_whole(evidence: Evidence) -> Iterator[tuple[str, Iterable[Any]]]:
    """Each event once, in order, none left out, and none by a superseded attempt.

    Where events were lost, the client is told so by an error in their place.
    """
    forgotten = [
        each.begun for each in evidence.operations("fault") if each.asked["what"] in FORGETTING
    ]
    for pieces in chains(evidence.operations("stream")):
        run = pieces[0].asked["run"]
        events = [event for piece in pieces for event in piece.answer.get("events", ())]
        told = [number for number, (_, name, _) in enumerate(events) if name == "error"]
        seen = events[: told[0]] if told else events
        if wrong := _disorder(seen):
            yield f"the stream of run {run}: {wrong}", pieces
        kept = evidence.runs.get(run)
        if told or not pieces[-1].answer.get("closed") or kept is None or kept.status != "success":
            continue
        end = pieces[-1].ended or 0.0
        if not events and any(moment < end for moment in forgotten):
            continue
        sent = Counter(
            (data["attempt"], data["pid"]) for _, name, data in events if name == "custom"
        )
        who = last_of(evidence, run)
        done = sum((step.run, step.attempt, step.pid) == (run, *who) for step in evidence.steps)
        if sent[who] != done:
            yield f"the stream of run {run} ends too early: {sent[who]} of {done} steps", pieces


def last_of(evidence: Evidence, run: str) -> tuple[int, int]:
    """The attempt that ended a run, and its process.

    What one before it did and could not send any more has died with it.
    """
    ended = evidence.changes_by_run[run][-1]
    return ended.attempt or 0, int(ended.by)


def chains(pieces: list[Operation]) -> list[list[Operation]]:
    """The pieces of each stream that a client has read, one after the other."""
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
    """What is wrong with the events of a stream, if anything."""
    order, sender, count = (-1, -1), None, 0
    gone = set()
    for name, kind, data in events:
        if name is None:
            return f"an event without a number: {kind} {data}"
        first, _, second = name.partition("-")
        if (int(first), int(second)) <= order:
            return f"event {name} comes again, or too late"
        order = int(first), int(second)
        if kind != "custom":
            continue
        if (data["attempt"], data["pid"]) != sender:
            gone.add(sender)
            attempt = 0 if sender is None else sender[0]
            sender, count = (data["attempt"], data["pid"]), 0
            if sender in gone or sender[0] < attempt:
                return f"event {name} is by a superseded attempt"
        if data["n"] != count:
            return f"event {name} is number {data['n']} of its attempt, {count} was to come"
        count += 1
    return None
