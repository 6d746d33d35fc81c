"""Reader: read the records, points and spans of a session's sources."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from my_agent.diagnosis.reading import formats
from my_agent.diagnosis.reading.record import Point, Record, Span, parse_time

MAX_LINES = 50_000
"""Lines of one session that are read; the rest is left out, and the reading says so."""


MESSAGE = 2_000
"""Characters of a message that are kept; the offsets lead to all of it."""
NAMELESS = "application"
"""The service of lines that name none, in a source without a name."""


class Source(NamedTuple):
    """A stored source.

    Attributes:
        given: when it was given. It decides the year of dates without one, so that the same source
            is always read in the same way.
    """

    id: str
    kind: str
    format: str
    name: str
    text: str
    given: datetime


@dataclass
class Reading:
    """What the sources of a session say.

    Attributes:
        unread: the number of lines beyond `MAX_LINES`.
    """

    records: list[Record] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    unread: int = 0


def read(sources: Iterable[Source]) -> Reading:
    """Read sources. Those of a kind without data, such as words, are skipped."""
    reading = Reading()
    left = MAX_LINES
    for source in sources:
        lines = list(_lines(source.text))
        reading.unread += max(0, len(lines) - left)
        lines = lines[:left]
        left -= len(lines)
        if source.kind == "metrics":
            reading.points += _points(source, lines)
        elif source.kind == "trace":
            reading.spans += _spans(source, lines)
        elif source.kind in ("log", "probe"):
            reading.records += _records(source, lines)
    return reading


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line.rstrip("\r\n")
        start += len(line)


def _records(source: Source, lines: list[tuple[int, str]]) -> Iterator[Record]:
    dated = False
    for start, line in lines:
        found = formats.parse(line)
        if found is None or (found[0] == "bare" and dated):
            # A stack trace under a line with a date belongs to that line.
            continue
        said = found[1]
        dated = bool(said.time)
        service = (said.service or source.name).rpartition("/")[2] or NAMELESS
        when = parse_time(said.time, source.given) if said.time else None
        text = said.text[:MESSAGE]
        yield Record(source.id, start, start + len(line), when, service, said.level, text)


def _points(source: Source, lines: list[tuple[int, str]]) -> Iterator[Point]:
    """Read CSV: `timestamp,service,metric,value`, or a column for each `service.metric`."""
    if not lines:
        return
    mark = max(",;\t", key=lines[0][1].count)
    header = [name.strip().lower() for name in next(csv.reader([lines[0][1]], delimiter=mark))]
    places = {name: place for place, name in enumerate(header)}
    for start, line in lines[1:]:
        row = next(csv.reader([line], delimiter=mark), [])
        when = parse_time(row[0], source.given) if row else None
        if when is None or len(row) != len(header):
            continue
        if {"metric", "value"} <= places.keys():
            owner = places.get("service", places.get("host"))
            service = row[owner] if owner is not None else source.name
            named = [(service, row[places["metric"]], row[places["value"]])]
        else:
            named = [
                (name.rpartition(".")[0] or source.name, name.rpartition(".")[2], value)
                for name, value in zip(header[1:], row[1:], strict=True)
            ]
        for service, metric, value in named:
            if (number := _number(value)) is not None:
                end = start + len(line)
                yield Point(source.id, start, end, when, service.strip(), metric, number)


def _spans(source: Source, lines: list[tuple[int, str]]) -> Iterator[Span]:
    found: list[tuple[int, int, dict[str, Any]]] = []
    for start, line in lines:
        try:
            span = json.loads(line)
        except ValueError:
            continue
        if isinstance(span, dict):
            found.append((start, start + len(line), span))
    services = {_of(span, "span_id", "spanId"): _service(span) for _, _, span in found}
    for start, end, span in found:
        status = str(_of(span, "status", "status_code", "error")).lower()
        name = _of(span, "name", "operation", "operationName") or "call"
        yield Span(
            source.id,
            start,
            end,
            parse_time(_of(span, "start", "start_time", "timestamp", "startTime"), source.given),
            _service(span),
            services.get(_of(span, "parent_id", "parent_span_id", "parentSpanId"), ""),
            status in ("error", "status_code_error", "true", "2") or status.startswith("5"),
            f"{name} {status}".strip(),
        )


def _of(span: dict[str, Any], *keys: str) -> str:
    return next((str(span[key]) for key in keys if span.get(key) is not None), "")


def _service(span: dict[str, Any]) -> str:
    return _of(span, "service", "service_name", "serviceName", "service.name")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
