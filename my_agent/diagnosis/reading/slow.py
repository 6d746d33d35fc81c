"""Slow: the log of slow statements of MySQL, whose records have several lines each."""

import re

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import Line

FORM = "mysql-slow"
"""The form of its records."""
_BEGINS = re.compile(r"# (?:Time: (?P<time>[\d :T.Z-]{10,40})|User@Host: )")
_NO_STATEMENTS = ("#", "SET ", "use ", "USE ", "--")


def read(line: str, given: int) -> Line | None:
    """Read the line that begins a record; None: it begins none."""
    found = _BEGINS.match(line)
    if found is None:
        return None
    when = dates.parse(found["time"], given) if found["time"] else None
    return Line(FORM, when, "mysql", "", line)


def continues(line: str, form: str) -> bool:
    """Return whether a line belongs to a record of a form."""
    return form == FORM and not line.startswith("# Time: ") and not line.startswith("# User@Host: ")


def is_statement(line: str) -> bool:
    """Return whether a line is a part of the statement itself."""
    return not line.startswith(_NO_STATEMENTS)
