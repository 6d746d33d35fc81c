"""Extended: logs that name their fields in a line, as those of IIS and Zeek do."""

from my_agent.diagnosis.reading import access, dates
from my_agent.diagnosis.reading.record import Line

HEADERS = ("#Fields:", "#fields\t")
"""How the line begins that names the fields."""
_SHOWN = (
    "cs-method",
    "cs-uri-stem",
    "method",
    "uri",
    "sc-status",
    "sc-win32-status",
    "status_code",
    "conn_state",
)
_HOSTS = ("s-sitename", "s-computername", "host", "cs-host")


class Extended:
    """A log that is being read.

    Attributes:
        form: `w3c`.
    """

    form = "w3c"

    def __init__(self, header: str, component: str, given: int) -> None:
        self._mark = "\t" if header.startswith("#fields") else None
        self._fields = header.partition(":" if self._mark is None else "\t")[2].split(self._mark)
        self._component = component
        self._given = given

    def line(self, line: str) -> Line | None:
        """Return what a line says; None: the log has ended, or names other fields."""
        if line.startswith("#"):
            return None if line.lower().startswith("#fields") else Line("w3c", None, "", "", line)
        cells = line.split(self._mark)
        if len(cells) != len(self._fields):
            return None
        row = dict(zip(self._fields, cells, strict=True))
        when = dates.parse(f"{row.get('date', '')} {row.get('time', '')}", self._given)
        when = when or dates.parse(row.get("ts", ""), self._given)
        status = row.get("sc-status", row.get("status_code", ""))
        level = access.level(int(status)) if status.isdigit() and len(status) <= 3 else ""
        shown = " ".join(row[each] for each in _SHOWN if row.get(each, "-") not in ("-", ""))
        component = next(
            (row[each] for each in _HOSTS if row.get(each, "-") != "-"), self._component
        )
        return Line("w3c", when, component, level, shown or line[:400])
