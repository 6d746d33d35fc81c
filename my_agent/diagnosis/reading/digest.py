"""Digest: read one source, however long, and return what it says."""

from collections import Counter

from my_agent.diagnosis.reading import stance
from my_agent.diagnosis.reading.groups import Groups
from my_agent.diagnosis.reading.scan import Scan
from my_agent.diagnosis.reading.summary import (
    BUCKETS,
    GROUPS,
    PLACES,
    QUOTE,
    Digest,
    Group,
    Place,
    Shift,
    Stance,
)

__all__ = [
    "BUCKETS",
    "GROUPS",
    "PLACES",
    "QUOTE",
    "Digest",
    "Group",
    "Place",
    "Shift",
    "Stance",
    "digest",
]

READER = 1
"""Version of the readers. Raise it with every change of what they say; sources are then read again."""


def digest(text: str, name: str, kind: str, form: str, given_micros: int) -> Digest:
    """Return what a source says; for a worker process.

    Args:
        text: The source.
        name: Its name; it may tell the component.
        kind: `log`, `metrics`, `trace`, `text`...; every kind is read in the same way.
        form: The format that it seems to have.
        given_micros: When it was given, in microseconds since 1970. It decides the year of dates
            without one, so that the same source is always read in the same way.
    """
    scan = Scan(text, name, given_micros)
    groups = Groups(stance.of)
    forms: Counter[str] = Counter()
    for record in scan.records():
        forms[record.form] += 1
        groups.add(record)
    found, dropped = groups.best()
    for known in ("command", "text"):
        if len(forms) > 1:
            del forms[known]
    told = scan.told
    return Digest(
        form=max(forms, key=lambda each: forms[each], default=form or "text"),
        lines=told.lines,
        unread=told.unread,
        unknown=told.unknown,
        dropped=dropped,
        first=groups.first,
        last=groups.last,
        groups=found,
        shifts=scan.objects.shifts.find(),
        metrics=scan.objects.shifts.names(),
        calls=scan.objects.calls.pairs(),
    )
