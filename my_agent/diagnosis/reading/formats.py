"""Formats: the line of a log in one of six common formats."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from my_agent.diagnosis.reading.record import LEVELS


class Line(NamedTuple):
    """What a line says: its time, service, level and message, each as written."""

    time: str
    service: str
    level: str
    text: str


LONGEST = 20_000
"""Characters of a line that are read."""

_TIMES = ("time", "ts", "timestamp", "@timestamp", "t", "datetime", "date")
_SERVICES = ("service", "service.name", "svc", "app", "application", "component", "logger", "name")
_LEVEL_KEYS = ("level", "severity", "lvl", "loglevel", "log.level")
_TEXTS = ("msg", "message", "event", "error", "err", "log")

_ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_NAME = r"[A-Za-z][\w./-]*"
_LEVEL = r"(?:FATAL|CRITICAL|SEVERE|ERROR|WARNING|WARN|INFO|NOTICE|DEBUG|TRACE)"
# Only the beginning of a word can be a key: without the look-behind a long word takes its square.
_PAIR = re.compile(r'(?<![\w.@-])([\w.@-]++)=("(?:[^"\\]|\\.)*"|\S*)')
_PLAIN = re.compile(
    rf"\[?(?P<time>{_ISO})\]?[ \t|-]+\[?(?P<level>{_LEVEL})\]?[ \t|:-]+"
    rf"(?:\[(?P<in>{_NAME})\]|(?P<before>{_NAME}):|(?P<between>{_NAME}) -)?\s*(?P<text>.*)",
    re.IGNORECASE,
)
# Other lines with a date: of Postgres, of Java, and of programs that write no level.
_DATED = re.compile(
    rf"\[?(?P<time>{_ISO})\]?(?: (?:UTC|GMT))?[ \t|,-]++(?:\[[^\]]*\]\s*+)*+"
    rf"(?:(?P<level>{_LEVEL}|LOG|PANIC|ERR|CRIT)\b:?\s*)?(?P<text>\S.*)",
    re.DOTALL,
)
# Errors without a date, as programs print them to a terminal.
_BARE = re.compile(
    r"(?:\[?(?P<level>FATAL|CRITICAL|ERROR|WARNING|WARN|PANIC)\]?[: ]\s*|Exception in |Traceback \()\S.*"
    r"|(?:[\w]+\.)*\w+(?:Error|Exception)(?::.*)?"
)
_SYSLOG = re.compile(
    r"(?:<(?P<pri>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
    rf"(?P<service>{_NAME})(?:\[\d+\])?: (?P<text>.*)"
)
_SYSLOG_NEW = re.compile(
    rf"<(?P<pri>\d{{1,3}})>1 (?P<time>{_ISO}) \S+ (?P<service>\S+) \S+ \S+ (?:-|\[.*?\]) ?(?P<text>.*)"
)
_ACCESS = re.compile(
    r'\S+ \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<request>[A-Z]+ [^"]*)" (?P<status>\d{3}) (?P<rest>.*)'
)
_KLOG = re.compile(
    r"(?P<level>[IWEF])(?P<time>\d{4} \d\d:\d\d:\d\d(?:\.\d+)?)\s+\d+ (?P<file>[\w./-]+):\d+\] "
    r"(?P<text>.*)"
)
_KLOG_LEVELS = {"I": "info", "W": "warning", "E": "error", "F": "error"}
# The severities of syslog, from 0: up to 3 are errors, 4 is a warning.
_SYSLOG_ERROR, _SYSLOG_WARNING = 3, 4
_WORDS = re.compile(r"\b(error|fatal|critical|panic|failed|failure|warning|warn)\b", re.IGNORECASE)
_SERVER_ERROR, _CLIENT_ERROR = 500, 400


def _json(line: str) -> Line | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or "span_id" in found or "spanId" in found:
        return None
    return _fields(found)


def _logfmt(line: str) -> Line | None:
    if "=" not in line:
        return None
    pairs = {key: _unquoted(value) for key, value in _PAIR.findall(line)}
    return _fields(pairs) if any(key in pairs for key in (*_TIMES, *_LEVEL_KEYS)) else None


def _unquoted(value: str) -> str:
    return value[1:-1].replace('\\"', '"') if value.startswith('"') else value


def _fields(found: Mapping[str, Any]) -> Line | None:
    text = _first(found, _TEXTS)
    if not text:
        return None
    more = str(found.get("error") or found.get("err") or "")
    if more and more not in text:
        text = f"{text}: {more}"
    level = LEVELS.get(_first(found, _LEVEL_KEYS).lower(), "")
    return Line(_first(found, _TIMES), _first(found, _SERVICES), level or _level(text), text)


def _syslog(line: str) -> Line | None:
    found = _SYSLOG.fullmatch(line) or _SYSLOG_NEW.fullmatch(line)
    if found is None:
        return None
    level = _level(found["text"])
    if found["pri"] is not None:
        severity = int(found["pri"]) % 8
        errors = "error" if severity <= _SYSLOG_ERROR else "info"
        level = "warning" if severity == _SYSLOG_WARNING else errors
    return Line(found["time"], found["service"], level, found["text"])


def _access(line: str) -> Line | None:
    found = _ACCESS.fullmatch(line)
    if found is None:
        return None
    status = int(found["status"])
    level = "error" if status >= _SERVER_ERROR else "info"
    level = "warning" if _CLIENT_ERROR <= status < _SERVER_ERROR else level
    # Sizes and agents would make every line a template of its own.
    return Line(found["time"], "", level, f"{found['request']} answered {status}")


def _klog(line: str) -> Line | None:
    found = _KLOG.fullmatch(line)
    if found is None:
        return None
    return Line(found["time"], "", _KLOG_LEVELS[found["level"]], found["text"])


def _plain(line: str) -> Line | None:
    found = _PLAIN.fullmatch(line)
    if found is None:
        return None
    service = found["in"] or found["before"] or found["between"] or ""
    return Line(found["time"], service, LEVELS[found["level"].lower()], found["text"])


def _dated(line: str) -> Line | None:
    found = _DATED.fullmatch(line)
    if found is None:
        return None
    level = LEVELS.get((found["level"] or "").lower(), "") or _level(found["text"])
    return Line(found["time"], "", level, found["text"])


def _bare(line: str) -> Line | None:
    found = _BARE.fullmatch(line)
    if found is None:
        return None
    # The line that opens a stack trace says nothing; its last line does.
    usual = "info" if line.startswith("Traceback") else "error"
    return Line("", "", LEVELS.get((found["level"] or usual).lower(), "error"), line)


FORMATS: dict[str, Callable[[str], Line | None]] = {
    "json": _json,
    "syslog": _syslog,
    "access": _access,
    "klog": _klog,
    "plain": _plain,
    "logfmt": _logfmt,
    "dated": _dated,
    "bare": _bare,
}
"""The function that reads a line of each format, or returns None; the most special first.

The last two are what is left: any line with a date, and errors without one.
"""


def parse(line: str) -> tuple[str, Line] | None:
    """Return the format of a line and what it says, or None."""
    line = line[:LONGEST].strip()
    for name, read in FORMATS.items():
        if (found := read(line)) is not None:
            return name, found
    return None


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(found[key]) for key in keys if found.get(key) not in (None, "")), "")


def _level(text: str) -> str:
    found = _WORDS.search(text)
    if found is None:
        return "info"
    return "warning" if found[1].lower().startswith("warn") else "error"
