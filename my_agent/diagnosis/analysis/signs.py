"""Signs: what is abnormal in a reading, when it began, and whether it is new."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from my_agent.diagnosis.analysis import faults
from my_agent.diagnosis.reading import reader
from my_agent.diagnosis.reading.reader import Reading, Source
from my_agent.diagnosis.reading.record import Point, Record, Span
from my_agent.diagnosis.reading.templates import mine

MINUTE = 60_000_000
# The beginning of the data shows what is normal.
BASELINE = 0.3
# Messages of a group in that beginning, from which on the group is chronic.
CHRONIC = 3
# A group that becomes this much more frequent is new in spite of it.
RISE = 4.0
# A metric is abnormal this many deviations from its median, for so many points in a row.
DEVIATIONS, ROW = 6.0, 2
# Deviations are at least this part of the median: a flat line has none.
FLAT = 0.08
QUOTE = 300
# Signs and services that one reading can have.
MOST = 300

SignKind = Literal["fault", "error", "call", "metric", "symptom", "change"]


@dataclass(frozen=True)
class Sign:
    """Something abnormal, or a change, at a place in a source.

    Attributes:
        kind: `fault`: a message that shows a fault; `error`: another error; `call`: an error that
            names another service; `metric`: an abnormal metric that shows a fault; `symptom`:
            another abnormal metric; `change`: a new version.
        service: the service that shows it.
        fault: the fault that it shows, or an empty text.
        other: the service that it names, or an empty text.
        when: its beginning in microseconds since 1970, or None.
        count: how often it occurs.
        chronic: whether it was there in normal times already.
        text: what it says, shortened.
    """

    kind: SignKind
    service: str
    source: str
    start: int
    end: int
    text: str
    when: int | None
    fault: str = ""
    other: str = ""
    count: int = 1
    chronic: bool = False

    @property
    def id(self) -> str:
        """Return the id of its observation: the same place has the same id in each reading."""
        return f"{self.source}:{self.start}-{self.end}:{self.kind}:{self.fault}"[:80]


@dataclass
class Picture:
    """All signs of a reading.

    Attributes:
        services: names of all services that have data.
        calls: pairs of caller and called service.
        has_baseline: whether the data begins before the incident.
    """

    signs: list[Sign] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    calls: set[tuple[str, str]] = field(default_factory=set)
    has_baseline: bool = False

    def new(self, service: str) -> list[Sign]:
        """Return the signs of a service that are no part of normal times, without changes."""
        return [
            each
            for each in self.signs
            if each.service == service and not each.chronic and each.kind != "change"
        ]

    def onset(self, service: str) -> Sign | None:
        """Return the first new sign of a service with a known time, or None."""
        timed = [each for each in self.new(service) if each.when is not None]
        return min(timed, key=lambda each: each.when or 0, default=None)

    def callers(self, service: str) -> set[str]:
        """Return the services that call a service, also through others."""
        found: set[str] = set()
        waiting = [service]
        while waiting:
            called = waiting.pop()
            new = {caller for caller, each in self.calls if each == called} - found - {service}
            found |= new
            waiting += new
        return found


def picture(sources: Sequence[Source]) -> Picture:
    """Read sources and return what is abnormal in them; for a worker process."""
    return find(reader.read(sources))


def find(reading: Reading) -> Picture:
    """Return the signs of a reading."""
    picture = Picture()
    records = [each for each in reading.records if each.service]
    picture.services.update(each.service for each in records)
    picture.services.update(each.service for each in reading.points)
    picture.services.update(each.service for each in reading.spans)
    picture.services.discard("")
    times = [each.when for each in records if each.when is not None]
    times += [each.when for each in reading.points]
    first, last = (min(times), max(times)) if times else (0, 0)
    until = first + int((last - first) * BASELINE)
    named = _named(picture.services, records)
    groups = mine(each for each in records if _is_notable(each))
    for group in groups.values():
        picture.signs.append(_sign(group, named, first, until, last))
    picture.signs += _changes(records)
    picture.signs += _abnormal(reading.points, until)
    picture.signs += _failed_spans(reading.spans)
    picture.calls |= {(e.caller, e.service) for e in reading.spans if e.caller != e.service}
    picture.calls |= {(e.service, e.other) for e in picture.signs if e.kind == "call"}
    picture.calls = {(one, other) for one, other in picture.calls if one and other}
    normal = sum(each.when is not None and each.when <= until for each in records)
    errors = sum(
        each.when is not None and each.when <= until for each in records if each.level == "error"
    )
    picture.has_baseline = last - first > 2 * MINUTE and (
        normal - errors >= CHRONIC or bool(reading.points)
    )
    _bound(picture)
    if not picture.has_baseline:
        # Without normal times nothing can be told from them.
        picture.signs = [_as_new(each) for each in picture.signs]
    return picture


def _bound(picture: Picture) -> None:
    """Drop the least telling signs and services, so that no test takes long."""
    if len(picture.signs) > MOST:
        picture.signs.sort(key=lambda each: (not each.fault, each.chronic, -each.count, each.id))
        del picture.signs[MOST:]
    if len(picture.services) > MOST:
        shown = {each.service for each in picture.signs}
        picture.services = shown | set(sorted(picture.services)[:MOST])
        picture.calls = {pair for pair in picture.calls if shown.issuperset(pair)}


def _as_new(sign: Sign) -> Sign:
    return Sign(**{**sign.__dict__, "chronic": False}) if sign.chronic else sign


def _is_notable(record: Record) -> bool:
    return record.level in ("error", "warning") or faults.of_message(record.text) is not None


def _named(services: Iterable[str], records: Sequence[Record]) -> re.Pattern[str] | None:
    """Return what matches the name of a service in a message."""
    words = sorted({*services, *_called(records)}, key=len, reverse=True)
    if not words:
        return None
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, words))})(?![\w-])")


_CALLED = re.compile(
    r"(?:calling|call to|upstream|connect(?:ing)? to|connection to|reach|request to|response from"
    r"|from upstream|dependency|from)\s+[\"']?(?:https?://)?(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)\b"
)
_NO_NAMES = {
    "the",
    "a",
    "an",
    "host",
    "server",
    "service",
    "upstream",
    "database",
    "localhost",
    "client",
    "peer",
    "backend",
    "any",
    "all",
    "port",
    "socket",
    "address",
    "remote",
}


def _called(records: Iterable[Record]) -> set[str]:
    """Return the names of services that errors name, also of those without data."""
    return {
        found["name"]
        for each in records
        if each.level in ("error", "warning")
        for found in _CALLED.finditer(each.text)
        if found["name"] not in _NO_NAMES
    }


def _sign(
    group: list[Record], named: re.Pattern[str] | None, first: int, until: int, last: int
) -> Sign:
    record = group[0]
    fault = faults.of_message(record.text) or ""
    others = [] if named is None else named.findall(record.text)
    other = next((each for each in others if each != record.service), "")
    times = sorted(each.when for each in group if each.when is not None)
    chronic = _is_chronic(times, first, until, last)
    if chronic:
        shown = record
    else:
        # A first error long before the others is an accident.
        shown = next((each for each in group if each.when is None or each.when > until), record)
    kind: SignKind = "fault" if fault else "call" if other else "error"
    service = record.service
    if fault in ("certificate_expired", "dns_failure") and other:
        # The caller reports the fault, and the called service has it.
        service, other = other, record.service
    return Sign(
        kind, service, shown.source, shown.start, min(shown.end, shown.start + QUOTE), shown.text,
        shown.when, fault, other, len(group), chronic,
    )  # fmt: skip


def _is_chronic(times: list[int], first: int, until: int, last: int) -> bool:
    """Return whether messages are as frequent in normal times as later."""
    early = sum(each <= until for each in times)
    if early < CHRONIC or last <= until:
        return False
    before = early / max(1, until - first)
    after = (len(times) - early) / (last - until)
    return after < RISE * before


def _changes(records: Iterable[Record]) -> list[Sign]:
    return [
        Sign("change", each.service, each.source, each.start, min(each.end, each.start + QUOTE),
             each.text, each.when)
        for each in records
        if each.level == "info" and faults.CHANGE.search(each.text)
    ]  # fmt: skip


def _abnormal(points: Sequence[Point], until: int) -> list[Sign]:
    series: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for each in points:
        series[each.service, each.metric].append(each)
    found = []
    for (service, metric), values in series.items():
        values.sort(key=lambda each: each.when)
        normal = [each.value for each in values if each.when <= until]
        if len(normal) < CHRONIC:
            continue
        middle = median(normal)
        spread = 1.5 * median(abs(each - middle) for each in normal)
        limit = DEVIATIONS * max(spread, FLAT * abs(middle), 1e-9)
        begin = _run(values, until, middle, limit)
        if begin is None:
            continue
        fault = faults.of_metric(metric) or ""
        text = f"{metric} rose from {middle:g} to {begin.value:g}"
        if begin.value < middle:
            text = f"{metric} fell from {middle:g} to {begin.value:g}"
        kind: SignKind = "metric" if fault else "symptom"
        found.append(
            Sign(kind, service, begin.source, begin.start, begin.end, text, begin.when, fault)
        )
    return found


def _run(values: list[Point], until: int, middle: float, limit: float) -> Point | None:
    """Return the first of some abnormal points in a row after normal times, or None."""
    row: list[Point] = []
    for each in values:
        row = [*row, each] if abs(each.value - middle) > limit and each.when > until else []
        if len(row) >= ROW:
            return row[0]
    return None


def _failed_spans(spans: Sequence[Span]) -> list[Sign]:
    """Return a sign for each failing step of traces; its error leads to the service it calls."""
    failed: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for each in spans:
        if each.failed:
            failed[each.caller, each.service].append(each)
    found = []
    for (caller, service), group in failed.items():
        one = group[0]
        end = min(one.end, one.start + QUOTE)
        owner, other = (caller, service) if caller else (service, "")
        found.append(
            Sign("call" if other else "error", owner, one.source, one.start, end,
                 one.text, one.when, "", other, len(group))
        )  # fmt: skip
    return found
