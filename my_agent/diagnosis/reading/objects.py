"""Objects: the records of objects of JSON: events, spans, series, exports, and any others."""

from collections.abc import Mapping
from typing import Any

from my_agent.diagnosis.reading import fields, series, spans, states, telemetry
from my_agent.diagnosis.reading.record import Line, Point, Record, workload
from my_agent.diagnosis.reading.shifts import Shifts
from my_agent.diagnosis.reading.spot import Spot

LEAVES = 120
"""Values of an object without a form that are read."""
_WIDEST, _LONGEST = 100, 20


class Objects:
    """Reads the objects of one source.

    Attributes:
        component: What the source is of, or an empty text.
        shifts: The metrics in them.
        calls: The spans in them.
    """

    def __init__(self, component: str, given: int) -> None:
        self.component = component
        self.shifts = Shifts()
        self.calls = spans.Calls()
        self._given = given

    def record(self, line: Line, spot: Spot, shown: str) -> Record:
        """Return the record of what a line says.

        Args:
            line: What it says.
            spot: Where it is.
            shown: The line itself, for one that says nothing.
        """
        component = line.component
        if line.by_logger or not component:
            component = self.component or component
        text = line.text or shown
        return spot.record(line.form, workload(component), line.level, text, when=line.when)

    def span(self, found: Mapping[str, Any], spot: Spot) -> Record:
        """Return the record of a span of a trace."""
        line = self.calls.add(found, self._given)
        took = spans.duration(found)
        if took is not None and line.when is not None:
            metric = f"{line.text.partition(' ')[0]} ms"
            owner = workload(line.component) or self.component
            self.shifts.add(Point(spot.start, spot.end, spot.line, line.when, owner, metric, took))
        return self.record(line, spot, "")

    def special(self, found: dict[str, Any], spot: Spot) -> list[Record] | None:
        """Return the records of a span, an export or a series; None: it is another object."""
        if spans.is_span(found):
            return [self.span(found, spot)]
        if telemetry.is_export(found):
            for span in telemetry.spans(found):
                self.calls.add(span, self._given)
            lines = telemetry.lines(found, self._given)
            return [self.record(each, spot, "") for each in lines] or self.leaves(found, spot)
        if isinstance(found.get("metric"), dict) and ("values" in found or "value" in found):
            for point in series.matrix(found, spot):
                self.shifts.add(point)
            return []
        return None

    def element(self, found: dict[str, Any], spot: Spot, *, known: bool) -> list[Record] | None:
        """Return the records of an object of a document.

        Args:
            found: The object.
            spot: Where it is.
            known: Whether an object before it in the document was read.

        Returns:
            None if it is better read line by line.
        """
        special = self.special(found, spot)
        if special is not None:
            return special
        line = fields.object_line(found, self._given)
        if line is not None and (line.when is not None or line.level):
            return [self.record(line, spot, "")]
        if not known and spot.is_long:
            return None
        if line is not None and not known:
            return [self.record(line, spot, "")]
        return self.leaves(found, spot)

    def leaves(self, found: Mapping[str, Any], spot: Spot) -> list[Record]:
        """Return a record for each value in an object of no known form."""
        records: list[Record] = []
        about = found.get("metadata")
        subject = workload(str(about.get("name", ""))) if isinstance(about, dict) else ""
        waiting: list[tuple[str, Any]] = list(found.items())
        while waiting and len(records) < LEAVES:
            path, inside = waiting.pop(0)
            if isinstance(inside, dict):
                items = list(inside.items())[:_WIDEST]
                waiting += [(f"{path}.{key}", each) for key, each in items]
            elif isinstance(inside, list):
                waiting += [(path, each) for each in inside[:_LONGEST]]
            elif inside is not None:
                records.append(_leaf(path, inside, subject or self.component, spot))
        return records


def _leaf(path: str, value: object, component: str, spot: Spot) -> Record:
    key = path.rpartition(".")[2]
    said = str(value).lower() if isinstance(value, bool) else str(value)
    telling = states.is_telling(key) and " " in said
    stance = states.value(key, said) or ("" if telling else "neutral")
    name = f"{path} {stance}" if stance else ""
    text = f"{path}: {said}"[:2_000]
    return spot.record("json", component, "", text, stance=stance, name=name)
