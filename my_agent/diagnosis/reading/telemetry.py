"""Telemetry: exports of OpenTelemetry as JSON, whose records are deep inside."""

from collections.abc import Iterator, Mapping
from typing import Any

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import Line

MOST = 20_000
"""Records of one export that are read."""
_ERROR, _WARNING = 17, 13


def is_export(found: Mapping[str, Any]) -> bool:
    """Return whether an object is an export of logs or spans."""
    return isinstance(found.get("resourceLogs"), list) or isinstance(
        found.get("resourceSpans"), list
    )


def lines(found: Mapping[str, Any], given: int) -> list[Line]:
    """Return what the records of an export say."""
    said = []
    for component, record in _inside(found, "resourceLogs", "scopeLogs", "logRecords"):
        number = record.get("severityNumber")
        level = ""
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            level = "error" if number >= _ERROR else "warning" if number >= _WARNING else "info"
        time = record.get("timeUnixNano") or record.get("observedTimeUnixNano") or ""
        text = _value(record.get("body")) or _value(record.get("attributes"))
        said.append(Line("otel", dates.parse(str(time), given), component, level, text))
    for span in spans(found):
        status = str(span["status"])
        failed = status in ("2", "STATUS_CODE_ERROR")
        when = dates.parse(str(span["startTimeUnixNano"]), given)
        said.append(
            Line(
                "span",
                when,
                span["service"],
                "error" if failed else "info",
                f"{span['name']} {status}".strip(),
            )
        )
    return said


def spans(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans of an export as flat objects."""
    for component, span in _inside(found, "resourceSpans", "scopeSpans", "spans"):
        status = span.get("status")
        yield {
            "span_id": span.get("spanId", ""),
            "parent_id": span.get("parentSpanId", ""),
            "service": component,
            "name": str(span.get("name", "")),
            "status": status.get("code", "") if isinstance(status, dict) else "",
            "startTimeUnixNano": span.get("startTimeUnixNano", ""),
        }


def _inside(
    found: Mapping[str, Any], outer: str, middle: str, inner: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    left = MOST
    for resource in _objects(found.get(outer)):
        component = _component(resource.get("resource"))
        for scope in _objects(resource.get(middle)):
            for record in _objects(scope.get(inner)):
                if left <= 0:
                    return
                left -= 1
                yield component, record


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def _component(resource: object) -> str:
    if not isinstance(resource, dict):
        return ""
    names = {
        str(each.get("key")): _value(each.get("value"))
        for each in _objects(resource.get("attributes"))
    }
    keys = (
        "service.name",
        "k8s.container.name",
        "k8s.deployment.name",
        "k8s.pod.name",
        "systemd.unit",
        "host.name",
    )
    return next((names[each] for each in keys if names.get(each)), "")


def _value(value: object) -> str:
    """Return a value of OpenTelemetry as a text."""
    if isinstance(value, dict):
        for key in ("stringValue", "intValue", "doubleValue", "boolValue"):
            if key in value:
                return str(value[key])
        for key in ("kvlistValue", "arrayValue"):
            inside = value.get(key)
            if isinstance(inside, dict):
                return _value(inside.get("values"))
        return ""
    if isinstance(value, list):
        pairs = (
            (str(each.get("key", "")), _value(each.get("value", each)))
            for each in value[:20]
            if isinstance(each, dict)
        )
        return " ".join(f"{key}={said}" if key else said for key, said in pairs)
    return ""
