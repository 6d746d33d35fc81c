"""Shared by tests of the diagnosis: events, and a small incident."""

from typing import Any

from my_agent.diagnosis.record.events import (
    CONTENTS,
    Event,
    EvidenceRecorded,
    HypothesisProposed,
    InvestigationStarted,
    New,
    NoteAdded,
    ObservationRecorded,
    ResultRecorded,
    SessionOpened,
    SourceAdded,
    new,
)
from my_agent.diagnosis.record.log import event_hash
from my_agent.diagnosis.record.snapshots import GENESIS
from my_agent.diagnosis.record.texts import measure

LOG = """==> payments.log <==
2026-03-02 09:00:01,000 INFO [payments] request handled in 12 ms
2026-03-02 09:05:01,000 INFO [payments] request handled in 15 ms
2026-03-02 09:10:01,000 INFO [payments] request handled in 11 ms
2026-03-02 09:40:00,000 ERROR [payments] write failed: No space left on device
2026-03-02 09:40:30,000 ERROR [payments] write failed: No space left on device
==> checkout.log <==
2026-03-02 09:00:02,000 INFO [checkout] request handled in 40 ms
2026-03-02 09:15:02,000 INFO [checkout] request handled in 44 ms
2026-03-02 09:20:02,000 INFO [checkout] request handled in 42 ms
2026-03-02 09:41:40,000 ERROR [checkout] call to payments failed: 503
2026-03-02 09:42:40,000 ERROR [checkout] call to payments failed: 503
"""
"""Logs of two services: a disk is full, and the caller fails after it."""

TEXT = "2026-03-02 09:40:00,000 ERROR [payments] write failed: No space left on device"


def note(text: str = "a note", author: str = "ada") -> New:
    return new(NoteAdded(author=author, text=text))


def opened() -> list[New]:
    """Return the events of a session with a source, an observation and a started hypothesis."""
    return [
        new(SessionOpened(title="payments is down")),
        source(),
        observed(),
        proposed(),
        new(InvestigationStarted(hypothesis="h1")),
    ]


def source(name: str = "s1", text: str = TEXT, **more: Any) -> New:
    """Return the event of a source, whose text is not in the event."""
    about = {"kind": "log", "format": "plain", "name": "payments", **more}
    return new(SourceAdded(id=name, **about, **measure([text])._asdict()))


def observed(name: str = "o1", service: str = "payments") -> New:
    fields: dict[str, Any] = {
        "kind": "fault",
        "service": service,
        "when": 1,
        "text": "disk full",
    }
    return new(
        ObservationRecorded(id=name, source="s1", start=0, end=len(TEXT), quote=TEXT, **fields)
    )


def proposed(name: str = "h1", service: str = "payments") -> New:
    return new(
        HypothesisProposed(
            id=name,
            parent=None,
            service=service,
            fault="disk_full",
            statement=f"{service} failed because of a full disk",
            by="rules",
        )
    )


def evidence(
    test: str = "signature", direction: Any = "for", hypothesis: str = "h1", name: str = "o1"
) -> New:
    place: dict[str, Any] = {"source": "s1", "start": 0, "end": len(TEXT), "quote": TEXT}
    return new(
        EvidenceRecorded(
            hypothesis=hypothesis, test=test, direction=direction, observation=name, **place
        )
    )


def result(test: str = "signature", outcome: Any = "passed", hypothesis: str = "h1") -> New:
    return new(ResultRecorded(hypothesis=hypothesis, test=test, outcome=outcome, reason="seen"))


def stored(events: list[New], session: str = "s") -> list[Event]:
    """Return events as the log would store them, one a second."""
    return chained(
        [(each.type, CONTENTS[each.type].VERSION, each.data) for each in events], session
    )


def chained(events: list[tuple[str, int, dict[str, Any]]], session: str = "s") -> list[Event]:
    """Return events of any version with their hashes."""
    made: list[Event] = []
    for seq, (kind, version, data) in enumerate(events, 1):
        previous = made[-1].hash if made else GENESIS
        event = Event(seq, kind, version, data, seq * 1_000_000, None, previous, "")
        made.append(event._replace(hash=event_hash(session, event)))
    return made
