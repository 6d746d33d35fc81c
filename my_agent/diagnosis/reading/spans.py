"""Spans: steps of distributed traces, and which component calls which."""

import re
from collections.abc import Mapping
from typing import Any

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import Line, workload

MOST = 200_000
"""Spans whose component is remembered."""
CALLS = 2_000
_STEP = re.compile(
    r"[\u2500-\u257f ]{1,80}(?P<name>[^\s()][^()]{0,200}) \((?P<component>[\w.-]{1,80})\) - (?P<took>[\d.]{1,20})ms\b"
)
_DIGITS = 16
_IDS = ("span_id", "spanId", "spanID", "spanid", "id")
_PARENTS = ("parent_id", "parent_span_id", "parentSpanId", "parentId", "parentSpanID", "parentid")
_NAMES = (
    "service",
    "service_name",
    "serviceName",
    "service.name",
    "servicename",
    "podname",
    "processID",
)
_STARTS = (
    *("start", "start_time", "timestamp", "startTime", "startTimeUnixNano", "startTimeMillis"),
    *("starttime", "starttimeunixnano", "starttimemillis"),
)
# The units of a duration in milliseconds.
_TOOK = {"duration_ms": 1.0, "durationMs": 1.0, "duration": 0.001, "elapsed_ms": 1.0}
_BAD = ("error", "status_code_error", "true", "2", "failed")


def is_span(found: Mapping[str, Any]) -> bool:
    """Return whether an object is a span of a trace."""
    if "span_id" in found or "spanId" in found or "spanID" in found:
        return not ("message" in found or "msg" in found or "body" in found)
    return "traceId" in found and "id" in found and "localEndpoint" in found


def tree(line: str) -> Line | None:
    """Read a step of a trace that is drawn as a tree; None: the line is none."""
    found = _STEP.match(line[:1_000])
    if found is None:
        return None
    return Line("span", None, found["component"], "", f"{found['name']} {found['took']}ms")


class Calls:
    """Who calls whom, as far as the spans of a source tell."""

    def __init__(self) -> None:
        self._components: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []

    def add(self, found: Mapping[str, Any], given: int) -> Line:
        """Take a span and return what it says."""
        component = workload(_component(found))
        identity, parent = _of(found, *_IDS), _parent(found)
        if identity and len(self._components) < MOST:
            self._components[identity] = component
        if parent and len(self._open) < MOST:
            self._open.append((parent, component))
        name = _of(found, "name", "operation", "operationName", "operationname") or "call"
        status = _status(found)
        failed = status.lower() in _BAD or status.startswith("5")
        when = _when(found, given)
        return Line(
            "span", when, component, "error" if failed else "info", f"{name} {status}".strip()
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of a caller and what it calls, each once."""
        found = {(self._components.get(parent, ""), called): None for parent, called in self._open}
        return [(one, two) for one, two in found if one and two and one != two][:CALLS]


def duration(found: Mapping[str, Any]) -> float | None:
    """Return how many milliseconds a span took, or None if it does not say."""
    for key, scale in _TOOK.items():
        value = found.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) * scale
    return None


def _of(found: Mapping[str, Any], *keys: str) -> str:
    return next((str(found[key]) for key in keys if found.get(key) not in (None, "")), "")


def _component(found: Mapping[str, Any]) -> str:
    name = _of(found, *_NAMES)
    for key in ("localEndpoint", "process", "resource"):
        inside = found.get(key)
        if not name and isinstance(inside, dict):
            name = _of(inside, "serviceName", "service.name", "service_name")
    return name


def _parent(found: Mapping[str, Any]) -> str:
    parent = _of(found, *_PARENTS)
    references = found.get("references")
    if (
        not parent
        and isinstance(references, list)
        and references
        and isinstance(references[0], dict)
    ):
        parent = _of(references[0], "spanID", "spanId")
    return parent


def _status(found: Mapping[str, Any]) -> str:
    status = next(
        (
            found[each]
            for each in ("status", "status_code", "statusCode", "error")
            if found.get(each)
        ),
        "",
    )
    if isinstance(status, dict):
        status = status.get("code", status.get("status_code", ""))
    tags = found.get("tags")
    if not status and isinstance(tags, dict):
        status = tags.get("error") or tags.get("http.status_code") or ""
    if not status and isinstance(tags, list):
        names = {each.get("key"): each.get("value") for each in tags if isinstance(each, dict)}
        status = names.get("error") or names.get("http.status_code") or ""
    return "error" if status is True else str(status)


def _when(found: Mapping[str, Any], given: int) -> int | None:
    for key in _STARTS:
        value = found.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            when = dates.number(value, given)
        else:
            when = dates.parse(str(value or ""), given)
        if when is not None:
            return when
    return None
