"""Staff: how many people work for a company, as its website says. Pure functions."""

import re
from collections.abc import Iterator

_EMPLOYEES = re.compile(
    r"(?:(?:team|staff|workforce) of (?:over |about |more than |some )?(\d[\d,]{0,6}))"
    r"|(?:(\d[\d,]{0,6})\+? (?:employees|staff|people|professionals|team members|colleagues))",
    re.IGNORECASE,
)
# Words in front of a year, as in `Since 2019 employees enjoy`.
_BEFORE_YEAR = re.compile(
    r"(?:\b(?:since|in|from|until|till|by|of|year|est\.?|founded|established)|[\u00a9-])\s*$",
    re.IGNORECASE,
)
_YEARS = range(1800, 2101)


def numbers(text: str) -> Iterator[int]:
    """Yield the stated numbers of employees, in order, without those that are years."""
    for found in _EMPLOYEES.finditer(text):
        number = found[1] or found[2]
        people = int(number.replace(",", ""))
        is_year = found[2] and number == str(people) and people in _YEARS
        if not (is_year and _BEFORE_YEAR.search(text[: found.start(2)])):
            yield people
