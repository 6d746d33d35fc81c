"""Tables: rows under a header, as `kubectl get`, `df`, `free`, `top`, `ps` and `netstat` print them."""

import re

from my_agent.diagnosis.reading import dates, states
from my_agent.diagnosis.reading.record import Record, words, workload
from my_agent.diagnosis.reading.spot import Spot
from my_agent.diagnosis.reading.summary import Stance

_COLUMNS = re.compile(r"[ \t]{2,}|\t")
_CAPITALS = re.compile(r"[A-Z%][A-Z0-9%_()/:.+#-]*+(?: [A-Z(][A-Z0-9%_()/:.-]*+)*+")
_KNOWN = (
    ("df", re.compile(r"Filesystem\s.{0,200}(?:Use%|Capacity|IUse%|Mounted)")),
    ("free", re.compile(r"total\s++used\s++free\b")),
    (
        "events",
        re.compile(
            r"Type\s++Reason\s++Age\s++From\s++Message\b"
            r"|LAST SEEN\s++(?:FIRST SEEN\s++)?(?:COUNT\s++)?(?:NAME\s++)?(?:KIND\s++)?TYPE\s++REASON"
        ),
    ),
    ("conditions", re.compile(r"Type\s++Status(?:\s|\Z)")),
    ("netstat", re.compile(r"(?:Proto|State)\s++Recv-Q|Netid\s++State|Proto\s++RefCnt")),
    ("top", re.compile(r"PID\s++USER\s|USER\s++PID\s++%CPU|PID\s++TTY\s|UID\s++PID\s")),
    ("resources", re.compile(r"Resource\s++Requests\s++Limits|Namespace\s++Name\s++CPU Requests")),
    ("disks", re.compile(r"Device:?\s++(?:r/s|rrqm/s|tps)\b|NAME\s++MAJ:MIN|avg-cpu:")),
    ("vmstat", re.compile(r"procs -{3,}|r\s++b\s++(?:swpd|avm)\b")),
)
_RULE = re.compile(r"[\s|+=:-]+")
_TIMES = re.compile(r"\(x(\d{1,9}) over ")
_NAMES = (
    "name",
    "names",
    "node",
    "pod",
    "object",
    "unit",
    "command",
    "mounted on",
    "container id",
    "application",
    "host",
)
_POD = re.compile(
    r"(?:(?P<space>[a-z0-9-]{1,63})\s+)?(?P<name>(?:pod/)?[a-z0-9][a-z0-9.-]{1,250})\s+(?P<ready>\d{1,3}/\d{1,3})\s+"
    r"(?P<status>[A-Z][\w:]{2,40})\s+(?P<restarts>\d{1,6})(?:\s|\Z)"
)
_SOCKETS = words(
    "ESTABLISHED ESTAB LISTEN LISTENING TIME_WAIT TIME-WAIT CLOSE_WAIT CLOSE-WAIT SYN_SENT SYN-SENT SYN_RECV"
    " FIN_WAIT1 FIN_WAIT2 FIN-WAIT-1 FIN-WAIT-2 LAST_ACK LAST-ACK CLOSING UNCONN CONNECTED"
)
_FEWEST = 4
_WIDEST = 2_000
_STARVED = 0.05


class Table:
    """A table that is being read.

    Attributes:
        kind: What is shown, such as `df`; `table`: anything.
    """

    def __init__(self, kind: str, header: str, subject: str, given: int) -> None:
        self.kind = kind
        self._subject = subject
        self._given = given
        self._indent = len(header) - len(header.lstrip())
        spread = kind in ("df", "top", "disks", "netstat", "vmstat")
        self._spread = spread or not _COLUMNS.search(header.strip())
        said = (
            header.strip()
            .replace("Mounted on", "Mounted_on")
            .replace("Local Address", "Local_Address")
        )
        said = said.replace("Foreign Address", "Foreign_Address") if spread else header.strip()
        cells = said.split() if self._spread else _COLUMNS.split(said)
        self.columns = [
            each.replace("_", " ").lower() if spread else each.lower() for each in cells
        ]
        if kind == "free":
            self.columns = ["name", *header.split()]

    def take(self, line: str, spot: Spot) -> Record | None:
        """Return the record of a row. None: the line is no row, and the table has ended."""
        line = line[:_WIDEST]
        said = line.strip()
        if len(line) - len(line.lstrip()) < self._indent and self.kind not in ("top", "free"):
            return None
        if _RULE.fullmatch(line):
            return spot.record(self.form, self._subject, "", said, name="rule")
        if self.kind == "events":
            return self._event(said, spot)
        cells = self._cells(said)
        if len(cells) < 2 or (len(cells) > len(self.columns) + 2 and not self._is_counted):
            return None
        if self._is_counted:
            return self._counted(cells, said, spot)
        if self.kind == "conditions":
            return self._condition(cells, said, spot)
        row = dict(zip(self.columns, cells, strict=False))
        return self._row(row, said, spot)

    @property
    def form(self) -> str:
        """The form of its records."""
        return {"events": "kubectl-events", "conditions": "kubectl-describe"}.get(
            self.kind, self.kind
        )

    @property
    def _is_counted(self) -> bool:
        return self.kind in ("netstat", "vmstat")

    def _counted(self, cells: list[str], said: str, spot: Spot) -> Record | None:
        """Return the record of a row that says something by how many there are."""
        if self.kind == "vmstat" and not (said[0].isdigit() or cells[0] == "r"):
            return None
        if self.kind == "netstat" and len(cells) < _FEWEST:
            return None
        state = next((each for each in cells if each in _SOCKETS), "")
        return spot.record(
            self.kind,
            "",
            "",
            " ".join(cells),
            stance="neutral",
            name=f"{cells[0][:4]} {state}" if state else "row",
        )

    def _cells(self, said: str) -> list[str]:
        if self._spread or self.kind == "free":
            return said.split(None, len(self.columns) - 1)
        return _COLUMNS.split(said)

    def _event(self, said: str, spot: Spot) -> Record | None:
        cells = _COLUMNS.split(said)
        place = next((n for n, each in enumerate(cells[:5]) if each in ("Normal", "Warning")), None)
        if place is None or len(cells) < place + 3:
            return None
        kind, reason, message = cells[place], cells[place + 1], cells[-1]
        # `describe` has the age behind the reason, `get events` before the type.
        age = cells[0] if place else cells[place + 2]
        component = self._subject
        if place and len(cells) > place + 3:
            component = workload(cells[place + 2].rpartition("/")[2])
        times = _TIMES.search(age)
        level = "warning" if kind == "Warning" else "info"
        text = f"{reason}: {message}"
        return spot.record(
            "kubectl-events", component, level, text, when=spot.ago(age.partition(" ")[0]),
            count=int(times[1]) if times else 1,
            stance="trouble" if level == "warning" else states.word(reason) or "",
        )  # fmt: skip

    def _condition(self, cells: list[str], said: str, spot: Spot) -> Record:
        stance = states.value(cells[0], cells[1]) or "neutral"
        text = " ".join(cells)
        when = next((w for c in cells[2:] if (w := dates.parse(c, self._given)) is not None), None)
        return spot.record(
            "kubectl-describe", self._subject, "", text, stance=stance, name=cells[0], when=when
        )

    def _row(self, row: dict[str, str], said: str, spot: Spot) -> Record:
        component = next((row[each] for each in _NAMES if row.get(each)), self._subject)
        component = workload(
            component.rpartition("/")[2] if "/" in component and self.kind == "table" else component
        )
        stance = self._starved(row) if self.kind == "free" else _stance(row)
        shown = " ".join(said.split())
        return spot.record(
            self.form, component, "", shown, stance=stance, name=f"{component} {stance}"
        )

    def _starved(self, row: dict[str, str]) -> Stance:
        total, left = (
            _amount(row.get("total", "")),
            _amount(row.get("available", row.get("free", ""))),
        )
        if total and left is not None and row.get("name", "").startswith("Mem"):
            return "trouble" if left / total < _STARVED else "fine"
        return "neutral"


def header(line: str) -> str:
    """Return what a line is the header of: `df`, `events`, `table`...; empty: of nothing."""
    said = line.strip()
    for kind, pattern in _KNOWN:
        if pattern.match(said[:_WIDEST]):
            return kind
    if len(said) > _WIDEST:
        return ""
    cells = _COLUMNS.split(said)
    if len(cells) >= 2 and all(_CAPITALS.fullmatch(each) for each in cells):
        return "table"
    return ""


def pod(line: str, spot: Spot) -> Record | None:
    """Read a row of `kubectl get pods` whose header is missing, or return None."""
    found = _POD.match(line[:_WIDEST].strip())
    if found is None:
        return None
    row = {each: found[each] for each in ("ready", "status", "restarts")}
    component = workload(found["name"].removeprefix("pod/"))
    return spot.record(
        "table", component, "", " ".join(line.split()), stance=_stance(row), name=component
    )


def _stance(row: dict[str, str]) -> Stance:
    """Return what a row says: a bad value counts more than good ones."""
    if row.get("status") == "Completed":
        return "fine"
    found = {states.value(key, said) for key, said in row.items()}
    if "trouble" in found:
        return "trouble"
    if row.get("available") == "0" and row.get("desired", row.get("ready", "0")) not in (
        "0",
        "0/0",
    ):
        return "trouble"
    return "fine" if "fine" in found else "neutral"


def _amount(text: str) -> float | None:
    found = re.match(r"(\d{1,15}(?:\.\d{1,6})?)\s?([KMGT]?)", text)
    if found is None:
        return None
    return float(found[1]) * 1024.0 ** " KMGT".index(found[2] or " ")
