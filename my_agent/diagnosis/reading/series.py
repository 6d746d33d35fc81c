"""Series: metrics as CSV and as the text that Prometheus scrapes."""

import csv
import re
from collections.abc import Iterator

from my_agent.diagnosis.reading import dates, fields, states
from my_agent.diagnosis.reading.record import Line, Point, Record, words, workload
from my_agent.diagnosis.reading.spot import Spot

_DATE_NAMES = words(
    "timestamp time ts date datetime @timestamp _time start_time starttime created_at eventtime time_utc"
)
_TEXT_NAMES = words("message msg level severity log text content description event status_message")
_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]{0,200})(?:\{(?P<labels>(?:[^\"{}]++|\"(?:[^\"\\]++|\\.)*+\")*+)\})?\s+"
    r"(?P<value>[+-]?(?:\d[\d.]{0,40}(?:[eE][+-]?\d{1,4})?|Inf|NaN))(?:\s+(?P<time>\d{10,13}))?\s*\Z"
)
_COMMENT = re.compile(r"# (?:HELP|TYPE|UNIT|EOF)\b")
_LABEL = re.compile(r'([A-Za-z_]\w{0,80})="((?:[^"\\]++|\\.)*+)"')
_OWNERS = (
    "service",
    "service_name",
    "podname",
    "microservice",
    "app",
    "deployment",
    "container",
    "pod",
    "job",
    "instance",
    "node",
    "host",
    "name",
)
# The first cells of headers that stand above each other.
_LEVELS_OF_COLUMNS = frozenset(("microservice", "metric", "statistic", "unix_timestamp", "level_0"))
_HEADERS = 4
_COLUMNS = 2_000
_KEYS = ("metric", "value")
_SPANS = frozenset(("spanid", "span_id"))


class Csv:
    """A table with commas that is being read.

    Attributes:
        form: `csv`.
    """

    form = "csv"

    def __init__(self, header: str, mark: str, name: str, given: int) -> None:
        self._names: list[list[str]] = []
        self._mark = mark
        self._name = name
        self._given = given
        self._columns = [each.strip() for each in _cells(header, mark)]
        self._own = list(self._columns)
        self._lower = [each.lower().strip('"') for each in self._columns]
        self._is_log = bool(_TEXT_NAMES & set(self._lower))
        self.has_spans = bool({"spanid", "span_id"} & set(self._lower))
        if self._lower[0] in _LEVELS_OF_COLUMNS:
            self._lower[0] = "timestamp"
        self._times = [n for n, each in enumerate(self._lower) if each in _DATE_NAMES]
        self._time = self._times[0] if self._times else -1

    def line(self, line: str) -> tuple[list[str], int | None] | None:
        """Return the cells of a row and its time; None: it is no row."""
        cells = _cells(line, self._mark)
        if not len(cells) >= 2 or (len(cells) != len(self._columns) and not self._is_log):
            return None
        return cells, self._when(cells)

    def _when(self, cells: list[str]) -> int | None:
        """Return the time of a row, from the first column that has one."""
        for column in self._times:
            if column < len(cells):
                when = dates.parse(cells[column], self._given) or _number_time(
                    cells[column], self._given
                )
                if when is not None:
                    return when
        return None

    def row(self, cells: list[str]) -> dict[str, str]:
        """Return a row by the names of its columns in small letters."""
        return dict(zip(self._lower, cells, strict=False))

    def said(self, cells: list[str]) -> Line | None:
        """Return what a row of a log says; None: it has numbers only, or nothing to say."""
        if not self._is_log and self._time >= 0:
            return None
        row = dict(zip(self._lower, cells, strict=False))
        found = fields.row(row, self._given)
        if found is not None:
            return found
        return Line("csv", None, "", "", " ".join(filter(None, cells))[:2_000])

    def names(self, line: str) -> bool:
        """Take a row that names the columns further, such as the metric of each service."""
        cells = _cells(line, self._mark)
        if len(cells) != len(self._columns) or self._times != [0] or len(self._names) >= _HEADERS:
            return False
        if self._when(cells) is not None or any(_number(each) is not None for each in cells[1:]):
            return False
        self._names.append(cells)
        # The name of the kind of statistic is no part of the metric.
        metrics = next((each for each in self._names if each[0].strip().lower() == "metric"), cells)
        named = [
            f"{one}.{two}" if two.strip() else one
            for one, two in zip(self._own, metrics, strict=True)
        ]
        self._columns = [self._own[0], *named[1:]]
        return True

    def points(self, cells: list[str], when: int, spot: Spot) -> Iterator[Point]:
        """Yield the values of a row."""
        if set(_KEYS) <= set(self._lower):
            row = dict(zip(self._lower, cells, strict=False))
            owner = next((row[each] for each in _OWNERS if each in row), self._name)
            yield from _point(spot, when, owner, row["metric"], row["value"])
            return
        owners = [n for n, each in enumerate(self._lower) if each in _OWNERS]
        owner = cells[owners[0]] if owners else ""
        for place, cell in enumerate(cells):
            if place in self._times or place in owners:
                continue
            service, _, metric = self._columns[place].rpartition(".")
            if not service and "_" in self._columns[place] and not owner and not self._name:
                service, _, metric = self._columns[place].rpartition("_")
            yield from _point(spot, when, service or owner or self._name, metric, cell)


def csv_header(line: str, following: str, name: str, given: int) -> Csv | None:
    """Return a reader of the table that a line is the header of, or None."""
    line = line[: _COLUMNS * 20].strip()
    mark = max(",;\t", key=line.count)
    if line.count(mark) == 0:
        return None
    table = Csv(line, mark, name, given)
    header = [each.lower().strip('"') for each in _cells(line, mark)]
    if header[0] in _LEVELS_OF_COLUMNS:
        header[0] = "timestamp"
        if mark == "," and following.strip() and table.names(following.strip()):
            return table
    if any(each.replace(".", "", 1).isdigit() for each in header) or len(header) > _COLUMNS:
        return None
    if not set(header) & (_DATE_NAMES | _TEXT_NAMES | _SPANS) or not following.strip():
        return None
    found = table.line(following.strip()[: _COLUMNS * 40])
    if found is None or len(found[0]) != len(header):
        return None
    return (
        table
        if found[1] is not None or {"message", "msg"} & set(header) or table.has_spans
        else None
    )


def _cells(line: str, mark: str) -> list[str]:
    if '"' not in line:
        return line.split(mark)
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return line.split(mark)


def _number_time(cell: str, given: int) -> int | None:
    value = _number(cell)
    return None if value is None else dates.number(value, given)


def _point(spot: Spot, when: int, component: str, metric: str, cell: str) -> Iterator[Point]:
    if (value := _number(cell)) is not None:
        yield Point(
            spot.start,
            spot.end,
            spot.line,
            when,
            workload(component.strip())[:200],
            metric.strip()[:200],
            value,
        )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None


def is_sample(line: str) -> bool:
    """Return whether a line is of the text that Prometheus scrapes."""
    if line[:2] == "# ":
        return _COMMENT.match(line) is not None
    return len(line) < 4_000 and _SAMPLE.match(line) is not None


def sample(line: str, spot: Spot) -> tuple[Record, Point | None] | None:
    """Return the record of a line of Prometheus text, and its value if it has a time.

    None: it is no such line.
    """
    if line.startswith("#"):
        return (
            (spot.record("prometheus", "", "", line, stance="neutral", name="#"), None)
            if _COMMENT.match(line)
            else None
        )
    found = _SAMPLE.match(line[:4_000])
    if found is None:
        return None
    labels = dict(_LABEL.findall(found["labels"] or ""))
    owner = next((labels[each] for each in _OWNERS if labels.get(each)), "")
    value = _number(found["value"])
    stance = states.metric(found["name"], value) if value is not None else None
    when = dates.parse(found["time"], spot.given) if found["time"] else None
    name = f"{found['name']} {stance or ''}"
    record = spot.record(
        "prometheus", owner, "", line, stance=stance or "neutral", name=name, when=when
    )
    if when is None or value is None:
        return record, None
    return record, Point(spot.start, spot.end, spot.line, when, owner, found["name"], value)


def matrix(found: dict[str, object], spot: Spot) -> Iterator[Point]:
    """Yield the values of a series in an answer of Prometheus."""
    labels = found.get("metric")
    named = (
        {str(key): str(each) for key, each in labels.items()} if isinstance(labels, dict) else {}
    )
    owner = next((named[each] for each in _OWNERS if named.get(each)), "")
    metric = named.get("__name__", "value")
    values = found.get("values")
    pairs = values if isinstance(values, list) else [found.get("value")]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != len(_KEYS):
            continue
        moment = pair[0]
        if (
            isinstance(moment, int | float)
            and (when := dates.number(moment, spot.given)) is not None
        ):
            yield from _point(spot, when, owner, metric, str(pair[1]))
