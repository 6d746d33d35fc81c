"""Dates: the times of log lines in the ways in which programs write them."""

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache

SECOND, DAY = 1_000_000, 86_400_000_000
# What a date can be: later ones are a mistake of the clock or of the reader.
LATEST = 4_102_444_800 * SECOND
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d:\d\d:\d\d"
_PART = r"(?:[.,:]\d{1,9})?+"
_NAMED = "(?:UTC|GMT|MSK|CEST|[A-Z]{1,3}[SD]T|[CEMW]ET)"
_ZONE = rf"(?:\ ?(?:Z(?!\w)|[+-]\d\d:?\d\d(?!\d)(?:\ {_NAMED}(?!\w))?+|{_NAMED}(?!\w)))?+"
_STYLES = {
    "iso": rf"\d{{4}}[-/.]\d\d[-/.]\d\d(?:[T_ -]|\ -\ |,\ )\d\d[:.]\d\d[:.]\d\d{_PART}{_ZONE}",
    "ctime": rf"(?:{_DAY},?\ )?{_MONTH}\ {{1,2}}\d{{1,2}}\ {_CLOCK}{_PART}{_ZONE}\ \d{{4}}(?!\d)",
    "month": rf"(?:{_DAY},?\ )?{_MONTH}\ {{1,2}}\d{{1,2}},?(?:\ \d{{4}},?)?\ \d{{1,2}}:\d\d:\d\d{_PART}(?:\ [AP]M)?+",
    "day": rf"(?:{_DAY},\ )?\d{{1,2}}[-/\ ]{_MONTH}[-/\ ]\d{{4}}[,: ]\ ?{_CLOCK}{_PART}{_ZONE}",
    "us": rf"\d{{1,2}}/\d{{1,2}}/\d{{4}},?\ \d{{1,2}}:\d\d:\d\d{_PART}(?:\ [AP]M)?+",
    "short": rf"\d\d/\d\d/\d\d\ {_CLOCK}{_PART}",
    "hdfs": r"\d{6}\ \d{6}(?=\ )",
    "mysql": r"\d{6}\ {1,2}\d{1,2}:\d\d:\d\d(?!\d)",
    "packed": rf"\d{{8}}(?:[-T ]\d\d?:?\d\d?:?\d\d?){_PART}{_ZONE}",
    "android": rf"\d\d[-.]\d\d\ {_CLOCK}{_PART}",
    "epoch": r"(?:\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})(?=[\ \t\]|,;]|\Z)",
    "clock": rf"{_CLOCK}{_PART}(?=[\ \t\]|,;)]|\Z)",
}
DATE = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _STYLES.items())
"""A pattern of a date, for `re.VERBOSE`; the name of its group is its style."""
_NUMBERS = re.compile(r"\d+")
_WORD = re.compile(r"[A-Za-z]{3}")
_OFFSET = re.compile(r"(?<=\d)\ ?(?:(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)(?!\d)|Z)")
_WHOLE = re.compile(DATE, re.VERBOSE)
_AGO = re.compile(r"(\d{1,9})(ms|[smhdy])")
_UNITS = {"ms": 1_000, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND, "d": DAY, "y": 365 * DAY}
_PAST_NOON, _HOURS = 12, 24


def parse(text: str, given: int) -> int | None:
    """Return a time in microseconds since 1970; None if it is none.

    Args:
        text: A date of any style.
        given: The time when it was given. A date without a year is in the twelve months before it.
    """
    text = text[:80].strip(" \t[]\"'").partition(" m=")[0]
    found = _WHOLE.match(text)
    if found is None or found.end() != len(text) or found.lastgroup is None:
        return None
    return of(text, found.lastgroup, given)


def of(text: str, style: str, given: int) -> int | None:
    """Return the time of a date whose style is known, or None if there is no such date.

    Args:
        text: The date.
        style: The name of its group in `DATE`.
        given: The time when it was given.
    """
    if style == "epoch":
        return _epoch(text)
    if style == "clock":
        return None
    if style == "iso" and text[10:11] in "T " and len(text) > 19 and text[19] in ".,":
        # Most lines: the second is the same as before, its parts are not.
        part = _NUMBERS.match(text, 20)
        if part is not None:
            second = _second(text[:19] + text[part.end() :], style, given)
            return None if second is None else second + int(part[0][:6].ljust(6, "0"))
    return _second(text, style, given)


@lru_cache(4096)
def _second(text: str, style: str, given: int) -> int | None:
    numbers = _NUMBERS.findall(text)
    words = [each.lower() for each in _WORD.findall(text)]
    month = next((_MONTHS.index(each) + 1 for each in words if each in _MONTHS), 0)
    try:
        found = _FIELDS[style](numbers, month, text, given)
    except (ValueError, IndexError, OverflowError):
        return None
    offset = _OFFSET.search(text, 10)
    if found is not None and offset is not None and offset["sign"]:
        away = (int(offset["hours"]) * 60 + int(offset["minutes"])) * 60 * SECOND
        found += away if offset["sign"] == "-" else -away
    return found if found is not None and 0 <= found < LATEST else None


def _iso(n: list[str], _month: int, text: str, _given: int) -> int:
    part = n[6] if len(n) > 6 and text[19:20] in (".", ",", ":") else "0"
    return _micros(int(n[0]), int(n[1]), int(n[2]), int(n[3]), int(n[4]), int(n[5]), part)


def _ctime(n: list[str], month: int, _text: str, _given: int) -> int:
    part = n[4] if len(n) > 5 and not n[4].startswith("0000") and len(n[4]) > 2 else "0"
    return _micros(int(n[-1]), month, int(n[0]), int(n[1]), int(n[2]), int(n[3]), part)


def _month(n: list[str], month: int, text: str, given: int) -> int | None:
    year = int(n.pop(1)) if len(n[1]) == 4 else 0
    hour = _noon(int(n[1]), text)
    part = n[4] if len(n) > 4 else "0"
    at = (month, int(n[0]), hour, int(n[2]), int(n[3]), part)
    return _micros(year, *at) if year else _in_last_year(*at, given)


def _day(n: list[str], month: int, _text: str, _given: int) -> int:
    part = n[5] if len(n) > 5 and not (len(n) == 6 and re.search(r"[+-]\d{4}$", _text)) else "0"
    return _micros(int(n[1]), month, int(n[0]), int(n[2]), int(n[3]), int(n[4]), part)


def _us(n: list[str], _month: int, text: str, _given: int) -> int:
    month, day = int(n[0]), int(n[1])
    if month > _PAST_NOON:
        month, day = day, month
    part = n[6] if len(n) > 6 else "0"
    return _micros(int(n[2]), month, day, _noon(int(n[3]), text), int(n[4]), int(n[5]), part)


def _short(n: list[str], _month: int, _text: str, _given: int) -> int:
    one, two, three = int(n[0]), int(n[1]), int(n[2])
    # Spark writes the year first; others write it last, the month or the day first.
    year, month, day = (one, two, three) if one > _PAST_NOON or three <= one else (three, one, two)
    if two > _PAST_NOON and one <= _PAST_NOON:
        year, month, day = three, one, two
    part = n[6] if len(n) > 6 else "0"
    return _micros(2000 + year, month, day, int(n[3]), int(n[4]), int(n[5]), part)


def _hdfs(n: list[str], _month: int, _text: str, _given: int) -> int:
    day, clock = n[0], n[1]
    return _micros(
        2000 + int(day[:2]), int(day[2:4]), int(day[4:]),
        int(clock[:2]), int(clock[2:4]), int(clock[4:]), "0",
    )  # fmt: skip


def _mysql(n: list[str], _month: int, _text: str, _given: int) -> int:
    day = n[0]
    return _micros(
        2000 + int(day[:2]), int(day[2:4]), int(day[4:]), int(n[1]), int(n[2]), int(n[3]), "0"
    )


def _packed(n: list[str], _month: int, text: str, _given: int) -> int:
    clock = [n[1][:2], n[1][2:4], n[1][4:6]] if len(n[1]) == 6 else n[1:4]
    part = "0"
    if found := re.match(r"\d{8}.\d\d?:?\d\d?:?\d\d?[.,:](\d{1,9})", text):
        part = found[1]
    return _micros(
        int(n[0][:4]), int(n[0][4:6]), int(n[0][6:]),
        int(clock[0]), int(clock[1]), int(clock[2]), part,
    )  # fmt: skip


def _android(n: list[str], _month: int, _text: str, given: int) -> int | None:
    part = n[5] if len(n) > 5 else "0"
    return _in_last_year(int(n[0]), int(n[1]), int(n[2]), int(n[3]), int(n[4]), part, given)


_FIELDS: dict[str, Callable[[list[str], int, str, int], int | None]] = {
    "iso": _iso,
    "ctime": _ctime,
    "month": _month,
    "day": _day,
    "us": _us,
    "short": _short,
    "hdfs": _hdfs,
    "mysql": _mysql,
    "packed": _packed,
    "android": _android,
}


def _noon(hour: int, text: str) -> int:
    if text.endswith("PM"):
        return hour % _PAST_NOON + _PAST_NOON
    return hour % _PAST_NOON if text.endswith("AM") else hour


def _in_last_year(
    month: int, day: int, hour: int, minute: int, second: int, part: str, given: int
) -> int | None:
    this = 1970 + int(given / DAY / 365.2425)
    for year in (this + 1, this, this - 1):
        try:
            found = _micros(year, month, day, hour, minute, second, part)
        except ValueError:
            # The 29th of February of another year.
            continue
        if found <= given + DAY:
            return found
    return None


def _micros(
    year: int, month: int, day: int, hour: int, minute: int, second: int, part: str = "0"
) -> int:
    """Return a time in microseconds since 1970.

    Args:
        part: The digits of the second behind its point.

    Raises:
        ValueError: there is no such day, or no such time.
    """
    if hour >= _HOURS or minute >= 60 or second > 60:
        raise ValueError("no time of a day")
    days = date(year, month, day).toordinal() - _EPOCH
    whole = days * 86_400 + hour * 3_600 + minute * 60 + second
    return whole * SECOND + int(part[:6].ljust(6, "0"))


def _epoch(text: str) -> int | None:
    whole, _, part = text.partition(".")
    found = int(whole) * SECOND // 10 ** (len(whole) - 10)
    found += int(part[:6].ljust(6, "0")) if part else 0
    return found if found < LATEST else None


def number(value: float, given: int) -> int | None:
    """Return the time of a number of seconds, or parts of them, since 1970; None if it is none."""
    if not 1e8 < value < 1e19:
        return None
    while value > 1e11:
        value /= 1_000
    found = int(value * SECOND)
    return found if found < max(LATEST, given) else None


def ago(text: str, given: int) -> int | None:
    """Return the time that was so long before: `3m19s`, `58m`, `2d4h`; None if it says none."""
    parts = _AGO.findall(text[:40])
    if not parts:
        return None
    found = given - sum(int(count) * _UNITS[unit] for count, unit in parts)
    return found if found >= 0 else None
