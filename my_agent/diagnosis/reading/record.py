"""What is read in a source: records of logs, points of metrics, spans of traces."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_LEVELS = {
    "error": ("error", "err", "severe", "fatal", "critical", "crit", "emerg", "alert", "panic"),
    "warning": ("warning", "warn"),
    "info": ("info", "notice", "debug", "trace", "information"),
}
LEVELS = {word: level for level, words in _LEVELS.items() for word in words}
_EPOCH = re.compile(r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}")
# Digits of whole seconds since 1970 until the year 2286.
_SECONDS_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Record:
    """A line of a log with its continuation lines.

    Attributes:
        source: id of the source.
        start: offset of its first character in the source.
        end: offset behind its last character of the first line.
        when: microseconds since 1970, or None.
        service: name of the service, or an empty text.
        level: `error`, `warning`, `info`, or an empty text.
        text: the message.
    """

    source: str
    start: int
    end: int
    when: int | None
    service: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a metric at a time in microseconds since 1970."""

    source: str
    start: int
    end: int
    when: int
    service: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Span:
    """A step of a trace. `caller` is the service of its parent, or an empty text."""

    source: str
    start: int
    end: int
    when: int | None
    service: str
    caller: str
    failed: bool
    text: str


def parse_time(text: str, now: datetime) -> int | None:
    """Return a time in microseconds since 1970; None if it is none.

    Args:
        text: ISO 8601, seconds or parts of them since 1970, or a date without a year.
        now: the time of reading. A date without a year is in the twelve months before it.
    """
    text = text.strip().strip("[]\"'")
    if _EPOCH.fullmatch(text):
        whole, _, part = text.partition(".")
        scale = 10 ** (len(whole) - _SECONDS_DIGITS)
        return int(int(whole) * 1_000_000 / scale) + int(float(f"0.{part or 0}") * 1_000_000)
    try:
        found = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return _with_year(text, now)
    return micros(found if found.tzinfo else found.replace(tzinfo=UTC))


def _with_year(text: str, now: datetime) -> int | None:
    for form in ("%Y %b %d %H:%M:%S", "%Y %m%d %H:%M:%S.%f", "%Y %m%d %H:%M:%S"):
        for year in (now.year, now.year - 1):
            try:
                found = datetime.strptime(f"{year} {' '.join(text.split())}", form)
            except ValueError:
                continue
            if (found := found.replace(tzinfo=UTC)) <= now + timedelta(days=1):
                return micros(found)
    for form in ("%d/%b/%Y:%H:%M:%S %z", "%Y/%m/%d %H:%M:%S"):
        try:
            found = datetime.strptime(text, form)
        except ValueError:
            continue
        return micros(found if found.tzinfo else found.replace(tzinfo=UTC))
    return None


def micros(date: datetime) -> int:
    """Return a date in microseconds since 1970."""
    return int((date - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
