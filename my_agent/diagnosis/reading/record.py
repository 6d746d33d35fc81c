"""Record: what one reader found at one place of a source, before records are grouped."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_LEVELS = {
    "error": (
        *("error", "err", "severe", "fatal", "critical", "crit", "emerg", "emergency", "alert"),
        *("panic", "failure", "e", "f", "c", "fail"),
    ),
    "warning": ("warning", "warn", "w"),
    "info": (
        *("info", "notice", "debug", "trace", "information", "note", "log", "verbose", "fine"),
        *("finer", "finest", "config", "i", "d", "v", "t", "n", "dbg", "inf", "default"),
    ),
}
LEVELS = {word: level for level, words in _LEVELS.items() for word in words}
"""The levels of the digest by the words of programs, in small letters."""
LONGEST = 20_000
"""Characters of a line that are read."""
# What neither JSON in UTF-8 nor Postgres can hold.
_UNFIT = re.compile("[\x00\ud800-\udfff]")
# A replica of a Kubernetes workload: `web-6bc5876d74-4lbfd`.
_HASH = "[bcdfghjklmnpqrstvwxz0-9]"
_REPLICA = re.compile(rf"(?<=\w)-{_HASH}{{7,10}}-{_HASH}{{5}}\Z")


class Line(NamedTuple):
    """What a line says.

    Attributes:
        form: The format that it has.
        when: Its time in microseconds since 1970, or None.
        component: What wrote it, or an empty text.
        level: `error`, `warning`, `info`, or an empty text.
        text: The message.
        by_logger: Whether the component is a class or module of a program rather than a program.
    """

    form: str
    when: int | None
    component: str
    level: str
    text: str
    by_logger: bool = False


@dataclass(slots=True)
class Record:
    """A line of a source with the lines that belong to it.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last character, without the end of the line.
        line: Number of its first line, from 1.
        form: The reader that knows it.
        stance: What the reader itself knows about it, or an empty text.
        count: How often it happened.
        name: What it is grouped by; empty: its template.
    """

    start: int
    end: int
    line: int
    form: str
    when: int | None
    component: str
    level: str
    text: str
    stance: str = ""
    count: int = 1
    name: str = ""


@dataclass(slots=True)
class Point:
    """A value of a metric."""

    start: int
    end: int
    line: int
    when: int
    component: str
    metric: str
    value: float


@dataclass(slots=True)
class Told:
    """What reading a source tells beside its records."""

    lines: int = 0
    unread: int = 0
    unknown: int = 0


def words(text: str) -> frozenset[str]:
    """Return the words of a text, of which a list of names is made."""
    return frozenset(text.split())


def clean(text: str) -> str:
    """Return a text without characters that cannot be stored. Its length stays the same."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def workload(name: str) -> str:
    """Return the name of what a pod belongs to: all its replicas are one component."""
    return _REPLICA.sub("", name[:300])


def micros(moment: datetime) -> int:
    """Return a moment in microseconds since 1970."""
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
