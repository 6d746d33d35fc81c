"""Shifts: metrics that change from their usual value to another one that stays."""

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from my_agent.diagnosis.reading.record import Point
from my_agent.diagnosis.reading.summary import Place, Shift

SERIES, PARTS, METRICS = 400, 240, 200
"""Series that are followed, parts of time of each that are kept, and names that are listed."""
# A shift is this many deviations from the median, for so many parts in a row.
DEVIATIONS, ROW, FEWEST = 6.0, 2, 5
# Deviations are at least this part of the median: a flat line has none.
FLAT = 0.08
MOST = 100
"""Shifts of one source."""


@dataclass(slots=True)
class _Part:
    when: int
    total: float
    count: int
    place: Place

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass(slots=True)
class _Series:
    parts: list[_Part] = field(default_factory=list)
    every: int = 1

    def add(self, point: Point) -> None:
        if self.parts and self.parts[-1].count < self.every:
            self.parts[-1].total += point.value
            self.parts[-1].count += 1
            return
        if len(self.parts) >= PARTS:
            self._halve()
        place = Place(point.start, point.end, point.line)
        self.parts.append(_Part(point.when, point.value, 1, place))

    def _halve(self) -> None:
        """Keep pairs of parts as one: what is kept does not grow with the source."""
        pairs = zip(self.parts[::2], self.parts[1::2], strict=True)
        self.parts = [
            _Part(one.when, one.total + two.total, one.count + two.count, one.place)
            for one, two in pairs
        ]
        self.every *= 2


class Shifts:
    """The metrics of one source, in bounded memory."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _Series] = {}

    def add(self, point: Point) -> None:
        """Take a value. Values of more than `SERIES` metrics are left out."""
        key = (point.component, point.metric)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= SERIES:
                return
            series = self._series[key] = _Series()
        series.add(point)

    def names(self) -> list[str]:
        """Return the names of the metrics."""
        names = dict.fromkeys(f"{component} {metric}".strip() for component, metric in self._series)
        return list(names)[:METRICS]

    def find(self) -> list[Shift]:
        """Return the shifts, the earliest first."""
        found = [
            shift
            for (component, metric), series in self._series.items()
            if (shift := _shift(component, metric, series.parts)) is not None
        ]
        return sorted(found, key=lambda each: each.when)[:MOST]


def _shift(component: str, metric: str, parts: list[_Part]) -> Shift | None:
    """Return the first change of a metric that lasts at least `ROW` parts."""
    if len(parts) < FEWEST:
        return None
    values = [each.mean for each in parts]
    usual = values[: max(ROW + 1, len(values) * 3 // 10)]
    middle = median(usual)
    spread = 1.4826 * median(abs(each - middle) for each in usual)
    # Counters grow all the time, and their growth is no change.
    if _only_grows(values):
        return None
    least = DEVIATIONS * max(spread, FLAT * abs(middle), 1e-9)
    row = 0
    for place, value in enumerate(values):
        row = row + 1 if abs(value - middle) > least else 0
        if row >= ROW:
            first = parts[place - row + 1]
            after = median(values[place - row + 1 :])
            if abs(after - middle) <= least / 2:
                # It went back soon; another one may stay.
                continue
            return Shift(component, metric, middle, after, first.when, first.place)
    return None


def _only_grows(values: list[float]) -> bool:
    steps = [after - before for before, after in pairwise(values)]
    return all(each >= 0 for each in steps) and sum(each > 0 for each in steps) > 0.8 * len(steps)
