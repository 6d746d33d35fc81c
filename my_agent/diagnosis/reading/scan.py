"""Scan: the records of one source, read line by line in one pass."""

from collections.abc import Iterator
from itertools import islice

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
    tables,
)
from my_agent.diagnosis.reading.held import Held
from my_agent.diagnosis.reading.objects import Objects
from my_agent.diagnosis.reading.record import LONGEST, Line, Record, Told
from my_agent.diagnosis.reading.spot import Spot

LINES = 1_000_000
"""Lines of a source that are read."""
_Block = tables.Table | dumps.Dump | series.Csv | extended.Extended
_SHOWN = 400
# What an object of one line has in its text if it is a span or an export.
_SPECIAL = ('"span', '"traceId"', '"resource')
_PROMPTS = "$=%#["


class Scan:
    """A source that is being read.

    Args:
        text: The source.
        name: Its name; it may tell the component.
        given: When it was given, in microseconds since 1970.

    Attributes:
        told: What it tells beside its records.
        objects: The metrics and spans in it.
    """

    def __init__(self, text: str, name: str, given: int) -> None:
        self.told = Told()
        self.objects = Objects(names.component(name), given)
        self._text = text
        self._given = given
        self._subject = ""
        self._block: _Block | None = None
        self._held = Held()
        self._blank = self._is_empty = True
        self._when: int | None = None
        self._latest: int | None = None
        self._number = self._next = 0
        # The last line of the text of Prometheus.
        self._sampled = -1

    def records(self) -> Iterator[Record]:
        """Yield the records in their order."""
        for _, _, found in self.steps():
            yield from found

    def steps(self) -> Iterator[tuple[int, str, list[Record]]]:
        """Yield for each line, or document of several, its end, its form and the whole records.

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
                self._number += self.told.unread - 1
                break
            found = self._line(start, end)
            yield self._next, "" if self._is_empty else self._form(found), found
        self.told.lines = self._number
        yield size, "", list(self._held.release())

    def _form(self, found: list[Record]) -> str:
        if self._block is not None:
            return self._block.form
        known = self._held.record or (found[-1] if found else None)
        return "" if known is None or known.form == "text" else known.form

    @property
    def _component(self) -> str:
        return self.objects.component

    def _line(self, start: int, end: int) -> list[Record]:
        """Return the records that are whole after a line."""
        raw = self._text[start : min(end, start + LONGEST)]
        said = formats.shorten(raw)
        self._is_empty = not said
        if not said:
            self._blank = True
            if isinstance(self._block, tables.Table):
                self._block = None
            return []
        blank, self._blank = self._blank, False
        if end > start and self._text[end - 1] == "\r":
            end -= 1
        spot = Spot(start, end, self._number, self._given, self._latest)
        if self._block is not None:
            found = self._of_block(raw, said, spot)
            if found is not None:
                return found
            self._block = None
        step = spans.tree(said) if "\u2500" in said[:80] else None
        if step is not None:
            return self._keep(step, raw, spot)
        if self._held.take(raw, said, end, after_blank=blank):
            if self._held.record is not None and self._held.record.form == "text":
                self.told.unknown += 1
            return []
        found = self._opened(raw, said, spot)
        if found is None:
            found = list(self._held.release())
            self._begin(raw, said, spot)
        return found

    # A line in a table, a dump or a file of metrics.

    def _of_block(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        """Return the records of a line in the present block; None: the block has ended."""
        block = self._block
        if isinstance(block, series.Csv):
            return self._csv_row(block, said, spot)
        if isinstance(block, extended.Extended):
            line = block.line(said)
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
        self._seen(when)
        if block.has_spans:
            return [self.objects.span(block.row(cells), spot)]
        line = block.said(cells)
        if line is not None:
            return [self._record(line._replace(when=line.when or when), spot)]
        if when is not None:
            for point in block.points(cells, when, spot):
                self.objects.shifts.add(point)
        return []

    # A line that begins something.

    def _opened(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        """Return the records of a line that begins a section, a table, a dump or a document.

        None: it begins nothing, or a trace.
        """
        if said.startswith(extended.HEADERS):
            self._block = extended.Extended(said, self._component, self._given)
            return self._beside(spot, "w3c", said)
        first = said[0]
        if first in _PROMPTS or "@" in said[:60]:
            section = self._section(said, spot)
            if section is not None:
                return section
        if first in "{[" and (found := self._json(raw, said, spot)) is not None:
            return found
        if stacks.begins(said):
            return None
        line = None
        if first == "#":
            line = slow.read(said, self._given)
        elif first != "{":
            line = formats.parse(said, self._given)
        if line is not None:
            return self._keep(line, raw, spot)
        return self._block_of(raw, said, spot)

    def _section(self, said: str, spot: Spot) -> list[Record] | None:
        name = names.section(said)
        if name is None:
            return None
        before = list(self._held.release())
        self.objects.component = names.component(name)
        self._subject = ""
        self._when = None
        self._blank = True
        record = spot.record("command", self._component, "", said[:2_000], stance="neutral")
        record.name = said[:200]
        return [*before, record]

    def _keep(self, line: Line, raw: str, spot: Spot) -> list[Record]:
        """Hold a line, since the next ones may belong to it. Return the record before it."""
        before = list(self._held.release())
        self._held.begin(self._record(line, spot), raw)
        return before

    def _block_of(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        following = self._following()
        sure = said[0] == "#" or self._sampled == spot.line - 1
        if series.is_sample(said) and (sure or series.is_sample(following.strip())):
            return self._sample(said, spot)
        table = series.csv_header(raw, following, self._component, self._given)
        if table is not None:
            self._block = table
            return self._beside(spot, "csv", said)
        kind = tables.header(raw)
        if kind and following.strip():
            subject = self._subject or self._component
            self._block = opened = tables.Table(kind, raw, subject, self._given)
            return self._beside(spot, opened.form, said)
        row = tables.pod(raw, spot)
        if row is not None:
            return [*self._held.release(), row]
        return self._dump(raw, said, following, spot)

    def _dump(self, raw: str, said: str, following: str, spot: Spot) -> list[Record] | None:
        form = dumps.begins(raw if raw[:1].isspace() else said, following)
        if not form:
            return None
        dump = dumps.Dump(form, self._subject or self._component, self._given)
        record = dump.take(raw, spot)
        if record is None:
            return None
        self._block = dump
        self._subject = dump.subject
        return [*self._held.release(), record]

    def _beside(self, spot: Spot, form: str, said: str) -> list[Record]:
        """Return the record of a header."""
        shown = " ".join(said[:2_000].split())
        header = spot.record(form, self._component, "", shown, stance="neutral", name="header")
        return [*self._held.release(), header]

    def _sample(self, said: str, spot: Spot) -> list[Record] | None:
        found = series.sample(said, spot)
        if found is None:
            return None
        record, point = found
        self._sampled = spot.line
        record.component = record.component or self._component
        if point is not None:
            self.objects.shifts.add(point)
        return [*self._held.release(), record]

    def _following(self) -> str:
        """Return the next line that is not empty, of the next three."""
        place = self._next
        for _ in range(3):
            end = self._text.find("\n", place)
            line = self._text[place : min(end if end >= 0 else len(self._text), place + LONGEST)]
            if line.strip() or end < 0:
                return line
            place = end + 1
        return ""

    # Objects and documents of JSON.

    def _json(self, raw: str, said: str, spot: Spot) -> list[Record] | None:
        if said[0] == "{" and said[-1] == "}":
            if any(each in said for each in _SPECIAL) and (found := self._special(said, spot)):
                return [*self._held.release(), *found]
            line = fields.json(said, self._given)
            many = documents.holds_list(said)
            if line is not None and (not many or (line.when is not None and line.level)):
                return self._keep(line, raw, spot)
            if not many:
                return None
        if said[0] == "[" and said[1:].lstrip()[:1] not in ("{", "") and len(said) > 1:
            return None
        return self._document(self._text.find(said[0], spot.start), spot)

    def _special(self, said: str, spot: Spot) -> list[Record] | None:
        try:
            found = orjson.loads(said)
        except ValueError:
            return None
        return self.objects.special(found, spot) if isinstance(found, dict) else None

    def _document(self, start: int, spot: Spot) -> list[Record] | None:
        """Read a document of JSON; None: it is damaged, or no list of events."""
        found: list[Record] = []
        beside: list[Record] = []
        at, line, end, known = start, spot.line, start, False
        try:
            for element in documents.elements(self._text, start):
                line += self._text.count("\n", at, element.start)
                at, end = element.start, element.end
                long = "\n" in self._text[at : min(end, at + LONGEST)]
                here = Spot(at, end, line, self._given, self._latest, long)
                if element.is_beside:
                    beside += self.objects.leaves(element.value, here)
                    continue
                records = self.objects.element(element.value, here, known=known)
                if records is None:
                    return None
                known = True
                found += records
        except (ValueError, RecursionError):
            # What was read of it is right; the rest is read line by line.
            pass
        else:
            end = documents.close(self._text, end)
        if not known:
            return None
        for record in islice(found, 1):
            self._seen(record.when)
        self._number += self._text.count("\n", spot.start, end)
        rest = self._text.find("\n", end)
        self._next = len(self._text) if rest < 0 else rest + 1
        return [*self._held.release(), *found, *beside]

    # Records.

    def _begin(self, raw: str, said: str, spot: Spot) -> None:
        """Hold a line of no format: the beginning of a trace, or text."""
        form = stacks.opens(said)
        if not form:
            self.told.unknown += 1
        level = "error" if form else ""
        record = spot.record(form or "text", self._component, level, said, when=self._when)
        self._held.begin(record, raw)

    def _record(self, line: Line, spot: Spot) -> Record:
        self._seen(line.when)
        shown = self._text[spot.start : min(spot.end, spot.start + _SHOWN)].strip()
        return self.objects.record(line, spot, shown)

    def _seen(self, when: int | None) -> None:
        if when is not None:
            self._when = when
            if self._latest is None or when > self._latest:
                self._latest = when
