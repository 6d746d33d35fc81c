"""Formats: what one line of a log says, whatever wrote it."""

import re

from my_agent.diagnosis.reading import access, dates, fields, heads, machines, prefixes
from my_agent.diagnosis.reading.record import LEVELS, LONGEST, Line

_DATED = re.compile(rf"[\[(<\"']?(?:{dates.DATE})[\])>\"']?", re.VERBOSE)
# A level before the date.
_LEVEL_FIRST = re.compile(
    r"[\[<(]?(?P<level>[A-Za-z]{1,11})[\])>]?[:,]?[ \t]*[\[(]?(?=[ \t\[(]|\d{4}-|\d\d[/:])[ \t\[(]*"
)
_STREAM = re.compile(r"[ \t]+(?P<stream>stdout|stderr) (?P<part>[FP])(?: |\Z)")
# Lines without a date whose level stands first, as programs print them to a terminal.
_BARE = re.compile(
    r"(?:\[(?P<boxed>[A-Za-z]{3,11})[ ]{0,3}\]:?|<(?P<angle>[A-Z]{3,11})>"
    r"|(?P<upper>FATAL|CRITICAL|SEVERE|ERROR|WARNING|WARN|INFO|DEBUG|PANIC|NOTICE|TRACE)(?=[:\s\[(|]|\Z)"
    r"|(?P<word>(?i:fatal|critical|error|warning|warn|panic|info|debug|npm (?:ERR!|error|WARN)|err))(?=:\s|\[E\d|!\s))"
)
_BASIC = re.compile(r":(?P<logger>[A-Za-z_][\w.$-]{0,100}):(?P<text>.*)", re.DOTALL)
# A level that stands behind the name of a program: `curl: error: x`, `10-listen.sh: info: x`.
_NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9/][\w./-]{0,100})(?:\[\d+\])?: (?P<level>(?i:fatal|error|warning|info|debug|panic|notice))(?: error)?: "
)
_NESTED = ("{", "time=", "level=", "ts=", "t=", "msg=", "I", "W", "E", "F", "logger=")
_DIGITS = frozenset("0123456789")
# A message with a date of its own is not read twice more.
_DEEPEST = 3


def parse(line: str, given: int, depth: int = 0) -> Line | None:
    """Return what a line says. None: it is of no format.

    Args:
        line: A line without colours and spaces around it.
        given: The time of its source, for dates without a year.
        depth: How many prefixes were taken off.
    """
    if not line:
        return None
    first = line[0]
    if first == "{":
        return fields.json(line, given)
    found = _dated(line, given, depth)
    if found is None and depth < _DEEPEST:
        found = _prefixed(line, given, depth)
    return found or _undated(line, given)


def _prefixed(line: str, given: int, depth: int) -> Line | None:
    prefix = prefixes.read(line)
    if prefix is None:
        return None
    rest = line[prefix.length :].strip()
    inside = parse(rest, given, depth + 1)
    if inside is None:
        return Line("prefixed", None, prefix.component, "", rest)
    if inside.component and not inside.by_logger:
        return inside
    return inside._replace(component=prefix.component, by_logger=False)


def _dated(line: str, given: int, depth: int) -> Line | None:
    level, start = "", 0
    if line[0] == "<":
        level, start = machines.severity(line)
    found = _DATED.match(line, start)
    if found is None:
        return _late(line, given)
    style = found.lastgroup or ""
    when = dates.of(found[style], style, given)
    place = found.end()
    if style == "epoch" and not line[place:].strip():
        return None
    if style in ("hdfs", "epoch", "clock") and when is None and style != "clock":
        return None
    rest = line[place:]
    if depth < _DEEPEST and (nested := _nested(rest, when, given, depth)) is not None:
        return nested
    if style == "packed" and (piped := machines.piped(line, place, when)) is not None:
        return piped
    if style == "month" or (style == "iso" and line[10] == "T" and rest[:1] == " "):
        said = _syslog(line, place, style, when, level, given)
        if said is not None:
            return said
    return _headed(line, place, when, level)


def _syslog(
    line: str, place: int, style: str, when: int | None, level: str, given: int
) -> Line | None:
    said = machines.syslog(line, place, "syslog", when, level)
    if said is None or (style == "iso" and not machines.REST.match(line, place)["tag"]):  # type: ignore[index]
        return None
    inside = parse(said.text, given, _DEEPEST) if said.text.startswith(_NESTED) else None
    if inside is not None and inside.form in ("json", "logfmt", "klog"):
        return said._replace(text=inside.text, level=inside.level or said.level)
    return said


def _nested(rest: str, when: int | None, given: int, depth: int) -> Line | None:
    """Read what a container's runtime has dated: `stdout F`, JSON, or a line with a date."""
    stream = _STREAM.match(rest)
    inside = rest[stream.end() :].strip() if stream else rest.lstrip(" \t")
    if (
        not stream
        and not inside.startswith("{")
        and not (inside[:4].isdigit() and _DATED.match(inside) is not None and " " in rest[:1])
    ):
        return None
    found = parse(inside, given, depth + 1)
    if found is None:
        return Line("container", when, "", "", inside) if stream else None
    return found._replace(when=found.when if found.when is not None else when)


def _headed(line: str, place: int, when: int | None, level: str) -> Line:
    head = heads.read(line, place)
    text = line[head.rest :].strip()
    said = access.request(text)
    if said is not None:
        text, of_status = (said[0], said[1]) if text.startswith('"') else (text, said[1])
        level = of_status if of_status != "info" else head.level or of_status
        return Line("access", when, head.component, level, text, head.by_logger)
    form = "log" if head.level or level else "dated"
    return Line(form, when, head.component, head.level or level, text, head.by_logger)


def _late(line: str, given: int) -> Line | None:
    """Read a line whose date is not at its beginning."""
    if (found := machines.special(line, given)) is not None:
        return found
    if "[" in line[:300] and (found := access.common(line, given)) is not None:
        return found
    first = _LEVEL_FIRST.match(line)
    if first is not None and first["level"].lower() in LEVELS:
        date = _DATED.match(line, first.end())
        if date is not None and date.lastgroup not in ("epoch", None):
            style = date.lastgroup or ""
            when = dates.of(date[style], style, given)
            head = heads.read(line, date.end())
            level = head.level or LEVELS[first["level"].lower()]
            return Line(
                "log", when, head.component, level, line[head.rest :].strip(), head.by_logger
            )
    return None


def _undated(line: str, given: int) -> Line | None:
    if "=" in line[:80] and (found := fields.logfmt(line, given)) is not None:
        return found
    found_bare = _BARE.match(line)
    if found_bare is not None:
        return _bare(line, found_bare)
    named = _NAMED.match(line)
    if named is not None:
        name = named["name"].rpartition("/")[2]
        return Line("bare", None, name, LEVELS[named["level"].lower()], line[named.end() :])
    return None


def _bare(line: str, found: re.Match[str]) -> Line | None:
    word = (found[found.lastgroup or 0] or "").lower()
    level = LEVELS.get(
        "warn" if word.endswith("warn") else "error" if word.startswith("npm") else word
    )
    if level is None:
        return None
    basic = _BASIC.match(line, found.end())
    if basic is not None:
        return Line("bare", None, basic["logger"], level, basic["text"].strip(), True)
    rest = line[found.end() :].lstrip(" \t:|!")
    said = access.request(rest)
    if said is not None:
        of_status = said[1] if said[1] != "info" else level
        return Line("access", None, "", of_status, said[0])
    head = heads.read(line, found.end())
    text = line[head.rest :].strip(" \t:|") if head.component else rest
    return Line("bare", None, head.component, level, text, head.by_logger)


def shorten(line: str) -> str:
    """Return the part of a line that is read."""
    return prefixes.plain(line[:LONGEST]).strip()
