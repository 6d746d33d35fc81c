"""Scan: the records of one source, read line by line in one pass."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from my_agent.diagnosis.reading import (
    documents,
    dumps,
    extended,
    fields,
    formats,
    names,
    series,
    slow,
    spans,
    stacks,
    states,
    tables,
    telemetry,
)
from my_agent.diagnosis.reading.record import LONGEST, Line, Point, Record, Told, workload
from my_agent.diagnosis.reading.shifts import Shifts
from my_agent.diagnosis.reading.spot import Spot

LINES = 1_000_000
"""Lines of a source that are read."""
CONTINUED = 400
"""Lines that may belong to one record."""
RECORD = 4_000
"""Characters of a record whose end is far; a longer one is shown until its telling line."""
_TELLING = re.compile(
    r"(?i:error|fail|fatal|denied|refused|cannot|can't|unable|no space|killed|expired|timed? ?out|panic)"
)
_LEAVES, _HALF = 120, 190
_Block = tables.Table | dumps.Dump | series.Csv | extended.Extended


class Scan:
    """A source that is being read.

    Args:
        text: The source.
        name: Its name; it may tell the component.
        given: When it was given, in microseconds since 1970.

    Attributes:
        told: What it tells beside its records.
        shifts: Its metrics.
        calls: The spans in it.
    """

    def __init__(self, text: str, name: str, given: int) -> None:
        self.told = Told()
        self.shifts = Shifts()
        self.calls = spans.Calls()
        self._text = text
        self._given = given
        self._component = names.component(name)
        self._subject = ""
        self._block: _Block | None = None
        self._pending: Record | None = None
        self._first = self._cause = ""
        self._cause_end = 0
        self._indent = self._continued = 0
        self._is_cause = False
        self._blank = True
        self._is_empty = True
        self._when: int | None = None
        self._latest: int | None = None
        self._number = 0
        self._next = 0

    def records(self) -> Iterator[Record]:
        """Yield the records in their order."""
        for _, _, found in self.steps():
            yield from found

    def steps(self) -> Iterator[tuple[int, str, list[Record]]]:
        """Yield for each line, or document of several, its end, its form and the records that are whole.

        The form of an empty line, and of what is not known, is empty.
        """
        text, size = self._text, len(self._text)
        while self._next < size:
            start = self._next
            end = text.find("\n", start)
            end = size if end < 0 else end
            self._next = end + 1
            self._number += 1
            if self._number > LINES:
                self.told.unread = text.count("\n", start, size) + (not text.endswith("\n"))
                self.told.lines = self._number - 1 + self.told.unread
                break
            found = list(self._line(start, end))
            yield self._next, "" if self._is_empty else self._form(found), found
        else:
            self.told.lines = self._number
        yield size, "", list(self._flush())

    def _form(self, found: list[Record]) -> str:
        if self._block is not None:
            return self._block.form
        known = self._pending or (found[-1] if found else None)
        return "" if known is None or known.form == "text" else known.form

    def _line(self, start: int, end: int) -> Iterator[Record]:
        raw = self._text[start : min(end, start + LONGEST)]
        said = formats.shorten(raw)
        self._is_empty = not said
        if not said:
            self._blank = True
            if isinstance(self._block, tables.Table):
                self._block = None
            return
        blank, self._blank = self._blank, False
        if self._text[end - 1 : end] == "\r" and end > start:
            end -= 1
        spot = Spot(start, end, self._number, self._given, self._latest)
        if self._block is not None:
            found = self._of_block(raw, said, spot)
            if found is not None:
                yield from found
                return
            self._block = None
        if self._continues(raw, said, blank, end):
            return
        found = self._opened(raw, said, spot)
        if found is not None:
            yield from found
            return
        yield from self._flush()
        self._begin(raw, said, spot)

    # A line in a table, a dump or a file of metrics.

    def _of_block(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        """Return the records of a line in the present block; None: the block has ended."""
        block = self._block
        if isinstance(block, series.Csv):
            return self._csv_row(block, said, spot)
        if isinstance(block, extended.Extended):
            line = block.line(said)
            if line is not None:
                self._seen(line.when)
            return None if line is None else [self._record(line, spot)]
        if block is None or said[:2] in ("$ ", "=="):
            return None
        record = block.take(raw, spot)
        if record is None:
            return None
        if isinstance(block, dumps.Dump):
            self._subject = block.subject or self._subject
            # A table in it, such as that of its events, is read as one.
            if kind := tables.header(raw):
                self._block = tables.Table(kind, raw, self._subject, self._given)
        record.component = record.component or self._component
        self._seen(record.when)
        return [record]

    def _csv_row(self, block: series.Csv, said: str, spot: Spot) -> list[Record] | None:
        if block.names(said):
            return []
        row = block.line(said)
        if row is None:
            return None
        cells, when = row
        if block.has_spans:
            return [self._span(block.row(cells), spot)]
        line = block.said(cells)
        self._seen(when)
        if line is None:
            if when is not None:
                for point in block.points(cells, when, spot):
                    self.shifts.add(point)
            return []
        record = self._record(line, spot)
        record.when = record.when or when
        return [record]

    # A line that belongs to the record before it.

    def _continues(self, raw: str, said: str, blank: bool, end: int) -> bool:
        pending = self._pending
        if pending is None or self._continued >= CONTINUED:
            return False
        indent = len(raw) - len(raw.lstrip(" \t"))
        deeper = indent > self._indent and not blank
        if pending.form == "text" and stacks.begins(said):
            return False
        if not deeper and not stacks.continues(said, pending.form) and not slow.continues(said, pending.form):
            return False
        if said[0] == "{" and not deeper:
            return False
        self._continued += 1
        pending.end = end
        if pending.form == "text":
            self.told.unknown += 1
        self._learn(said, end)
        return True

    def _learn(self, said: str, end: int) -> None:
        """Keep the line of a record that says most: the last cause, or what the exception is."""
        pending = self._pending
        if pending is None:
            return
        if pending.form == slow.FORM:
            self._cause = said if slow.is_statement(said) else self._cause
            self._cause_end = end
            return
        if pending.form in ("trace", "text", "node-trace"):
            pending.form = stacks.language(said) or pending.form
        cause = stacks.is_cause(said)
        better = cause or (stacks.says(said) and not self._is_cause)
        weaker = not self._cause and _TELLING.search(said[:400]) is not None and not said.startswith(("at ", "File "))
        if better or weaker:
            self._cause, self._cause_end, self._is_cause = said, end, cause or self._is_cause

    # A line that begins something.

    def _opened(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        """Return the records of a line that begins a section, a table, a dump or a document."""
        first = said[0]
        if said.startswith(("#Fields:", "#fields\t")):
            self._block = extended.Extended(said, self._component, self._given)
            return [*self._flush(), spot.record("w3c", self._component, "", said[:2_000], stance="neutral", name="header")]
        if first in "$=%#[" or "@" in said[:60]:
            section = self._section(said, spot)
            if section is not None:
                return section
        if first in "{[" and (found := self._json(said, spot)) is not None:
            return found
        if first == "{" and len(said) > 1:
            return None
        if stacks.begins(said):
            return None
        line = slow.read(said, self._given) if first == "#" else formats.parse(said, self._given)
        if line is not None:
            return [*self._flush(), *self._keep(line, raw, spot)]
        return self._block_of(raw, said, spot)

    def _section(self, said: str, spot: Spot) -> list[Record] | None:
        file = names.FILE.fullmatch(said)
        prompt = None if file else names.PROMPT.match(said[:1_000])
        if file is None and prompt is None:
            return None
        before = list(self._flush())
        name = file["name"].strip() if file else prompt["command"] if prompt else ""
        self._component = names.component(name)
        self._subject = ""
        self._when = None
        self._blank = True
        return [*before, spot.record("command", self._component, "", said[:2_000], stance="neutral", name=said[:200])]

    def _keep(self, line: Line, raw: str, spot: Spot) -> list[Record]:
        """Make a line the record that the next lines may belong to."""
        record = self._record(line, spot)
        self._seen(record.when)
        self._hold(record, raw)
        return []

    def _block_of(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        following = self._following()
        if series.is_sample(said) and (said[0] == "#" or series.is_sample(following.strip())):
            return self._sample(said, spot)
        table = series.csv_header(raw, following, self._component, self._given)
        if table is not None:
            self._block = table
            return [*self._flush(), spot.record("csv", self._component, "", said, stance="neutral", name="header")]
        kind = tables.header(raw)
        if kind and following.strip():
            self._block = tables.Table(kind, raw, self._subject or self._component, self._given)
            form = "kubectl-events" if kind == "events" else kind
            return [*self._flush(), spot.record(form, self._component, "", " ".join(said.split()), stance="neutral", name="header")]
        row = tables.pod(raw, spot)
        if row is not None:
            return [*self._flush(), row]
        form = dumps.begins(raw if raw[:1].isspace() else said, following)
        if form:
            self._block = dump = dumps.Dump(form, self._subject or self._component, self._given)
            record = dump.take(raw, spot)
            if record is not None:
                self._subject = dump.subject
                return [*self._flush(), record]
            self._block = None
        return None

    def _sample(self, said: str, spot: Spot) -> list[Record] | None:
        found = series.sample(said, spot)
        if found is None:
            return None
        record, point = found
        record.component = record.component or self._component
        if point is not None:
            self.shifts.add(point)
        return [*self._flush(), record]

    def _following(self) -> str:
        """Return the next line that is not empty."""
        place = self._next
        for _ in range(3):
            end = self._text.find("\n", place)
            line = self._text[place : min(end if end >= 0 else len(self._text), place + LONGEST)]
            if line.strip() or end < 0:
                return line
            place = end + 1
        return ""

    # Documents and spans of JSON.

    def _json(self, said: str, spot: Spot) -> list[Record] | None:
        if said[0] == "{" and said[-1] == "}" and not documents.holds_list(said):
            special = '"span' in said or '"traceId"' in said or '"resource' in said[:200]
            return self._object(said, spot) if special else self._plain_object(said, spot)
        if said[0] == "[" and said[1:].lstrip()[:1] not in ("{", "") and len(said) > 1:
            return None
        place = self._text.find(said[0], spot.start)
        return self._document(place, spot)

    def _plain_object(self, said: str, spot: Spot) -> list[Record] | None:
        line = fields.json(said, self._given)
        if line is None:
            return None
        before = list(self._flush())
        self._keep(line, said, spot)
        return before

    def _object(self, said: str, spot: Spot) -> list[Record] | None:
        try:
            found = orjson.loads(said)
        except ValueError:
            return None
        if not isinstance(found, dict):
            return None
        if telemetry.is_export(found):
            return [*self._flush(), *(self._element(found, spot, True) or [])]
        if not spans.is_span(found):
            return self._plain_object(said, spot)
        return [*self._flush(), self._span(found, spot)]

    def _span(self, found: Mapping[str, Any], spot: Spot) -> Record:
        line = self.calls.add(found, self._given)
        self._seen(line.when)
        took = spans.duration(found)
        if took is not None and line.when is not None:
            name = line.text.partition(" ")[0]
            component = workload(line.component) or self._component
            self.shifts.add(Point(spot.start, spot.end, spot.line, line.when, component, f"{name} ms", took))
        return self._record(line, spot)

    def _document(self, place: int, spot: Spot) -> list[Record] | None:
        """Read a document of JSON; None: it is damaged, or no list of events."""
        found: list[Record] = []
        reader = documents.elements(self._text, place)
        at, line = place, spot.line
        end, objects = place, 0
        try:
            while True:
                element = next(reader)
                line += self._text.count("\n", at, element.start)
                at = element.start
                here = Spot(element.start, element.end, line, self._given, self._latest)
                if element.is_beside:
                    found += self._leaves(element.value, here)
                    continue
                records = self._element(element.value, here, objects > 0)
                if records is None:
                    return None
                objects += 1
                found += records
                end = element.end
        except StopIteration as stop:
            end = int(stop.value)
        except (ValueError, RecursionError):
            # What was read of it is right; the rest is read line by line.
            pass
        if not objects:
            return None
        self._number += self._text.count("\n", spot.start, end)
        rest = self._text.find("\n", end)
        self._next = len(self._text) if rest < 0 else rest + 1
        return [*self._flush(), *found]

    def _element(self, value: dict[str, object], spot: Spot, known: bool) -> list[Record] | None:
        """Return the records of an object of a document; None: it is better read line by line."""
        if spans.is_span(value):
            return [self._span(value, spot)]
        if telemetry.is_export(value):
            for span in telemetry.spans(value):
                self.calls.add(span, self._given)
            return [self._record(each, spot) for each in telemetry.lines(value, self._given)] or self._leaves(value, spot)
        if isinstance(value.get("metric"), dict) and ("values" in value or "value" in value):
            return self._series(value, spot)
        line = fields.object_line(value, self._given)
        if line is not None and (line.when is not None or line.level):
            self._seen(line.when)
            return [self._record(line, spot)]
        if not known and "\n" in self._text[spot.start : spot.end]:
            return None
        return [self._record(line, spot)] if line is not None and not known else self._leaves(value, spot)

    def _series(self, value: dict[str, object], spot: Spot) -> list[Record]:
        for point in series.matrix(value, spot):
            self.shifts.add(point)
        return []

    def _leaves(self, value: dict[str, object], spot: Spot) -> list[Record]:
        found: list[Record] = []
        name = value.get("metadata")
        subject = workload(str(name.get("name", ""))) if isinstance(name, dict) else ""
        waiting: list[tuple[str, object]] = list(value.items())
        while waiting and len(found) < _LEAVES:
            path, inside = waiting.pop(0)
            if isinstance(inside, dict):
                waiting += [(f"{path}.{key}", each) for key, each in list(inside.items())[:100]]
            elif isinstance(inside, list):
                waiting += [(path, each) for each in inside[:20]]
            elif inside is not None:
                key = path.rpartition(".")[2]
                said = str(inside).lower() if isinstance(inside, bool) else str(inside)
                stance = states.value(key, said) or ("" if states.is_telling(key) and " " in said else "neutral")
                named = "" if not stance else f"{path} {stance}"
                found.append(spot.record("json", subject or self._component, "", f"{path}: {said}"[:2_000], stance=stance, name=named))
        return found

    # Records.

    def _begin(self, raw: str, said: str, spot: Spot) -> None:
        """Hold a line of no format: the beginning of a trace, or text."""
        form = stacks.opens(said)
        if not form:
            self.told.unknown += 1
        record = spot.record(form or "text", self._component, "error" if form else "", said, when=self._when)
        self._hold(record, raw)
        if form:
            self._is_cause = False

    def _hold(self, record: Record, raw: str) -> None:
        self._pending = record
        self._first, self._cause = record.text, ""
        self._cause_end = record.end
        self._is_cause = False
        self._indent = len(raw) - len(raw.lstrip(" \t"))
        self._continued = 0

    def _flush(self) -> Iterator[Record]:
        record, self._pending = self._pending, None
        if record is None:
            return
        if record.end - record.start > RECORD:
            record.end = self._cause_end
        if self._cause and self._cause not in self._first:
            opens = self._first.startswith(("Traceback (", "goroutine ", "Stack trace"))
            first = "" if opens else f"{self._first[:_HALF]}\n"
            record.text = f"{first}{self._cause[: 2 * _HALF - len(first)]}"
        yield record

    def _record(self, line: Line, spot: Spot) -> Record:
        component = line.component
        if line.by_logger or not component:
            component = self._component or component
        return spot.record(line.form, workload(component), line.level, line.text or self._shown(spot), when=line.when)

    def _shown(self, spot: Spot) -> str:
        return self._text[spot.start : min(spot.end, spot.start + 400)].strip()

    def _seen(self, when: int | None) -> None:
        if when is not None:
            self._when = when
            if self._latest is None or when > self._latest:
                self._latest = when
