"""Machines: lines of syslog, journald, klog and of the logs of supercomputers and phones."""

import re

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import LEVELS, Line

# The severities of syslog, from 0: up to 3 are errors, 4 is a warning.
_ERROR, _WARNING = 3, 4
REST = re.compile(
    r"(?<![ \t])[ \t]++(?P<host>[^\s\[\]]{1,255}) (?:(?P<tag>[^\[\]:\"=]{1,80})\[(?P<pid>\d+)\](?: ?\(\[\d+\]\))?:?"
    r"|(?P<word>[^\s:\"=]{1,80})(?: [\d.]{1,20})?:)(?:\s|\Z)(?P<text>.*)",
    re.DOTALL,
)
"""What follows the date of a line of syslog."""
_REPEATED = re.compile(
    r"[ \t]+(?P<host>\S{1,255}) (?P<text>--- last message repeated.*|last message repeated.*)"
)
_PRIORITY = re.compile(r"<(?P<priority>\d{1,3})>")
_NEW = re.compile(
    r"(?:<(?P<priority>\d{1,3})>)?\d{1,2} (?P<time>\S{1,40}) (?P<host>\S{1,255}) (?P<tag>\S{1,80}) \S{1,128} \S{1,64} "
    r"(?:-|(?:\[(?:[^\]\"\\]++|\"(?:[^\"\\]++|\\.)*+\"|\\.)*+\])++)(?: (?P<text>.*))?\Z",
    re.DOTALL,
)
_KLOG = re.compile(
    r"(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d+)?)\s+\d+ "
    r"(?P<file>[\w./-]{1,200}):\d+\] ?(?P<text>.*)",
    re.DOTALL,
)
_BLUE_GENE = re.compile(
    r"\S{1,40} (?P<time>\d{10}) \d{4}\.\d\d\.\d\d \S{1,60} \d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.\d+ \S{1,60} "
    r"\S{1,40} (?P<name>\S{1,40}) (?P<level>\S{1,20}) ?(?P<text>.*)"
)
_CLUSTER = re.compile(
    r"\S{1,40} (?P<time>\d{10}) \d{4}\.\d\d\.\d\d \S{1,60} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d (?P<rest>.*)"
)
_STATES = re.compile(
    r"\d{1,12} (?P<node>\S{1,80}) (?P<name>\S{1,40}) (?P<state>\S{1,60}) (?P<time>\d{10}) -?\d{1,3} (?P<text>.*)"
)
_CONSOLE = re.compile(
    r"\[ {0,8}\d{1,8}\.\d{4,9}\](?:\[ {0,8}[CT]\d{1,8}\])? ?(?P<text>.*)", re.DOTALL
)
_KERNEL_ERRORS = ("BUG:", "Oops", "Kernel panic", "general protection fault", "watchdog: BUG")
_SINCE = re.compile(r"\d{1,10}\.\d{3}: (?P<text>\S.*)", re.DOTALL)
_PIPED = re.compile(r"\|(?P<name>[A-Za-z_]\w{0,80})\|\d+\|(?P<text>.*)")
_REDIS = re.compile(
    r"\d{1,10}:[MSCX] (?P<time>[^*#.-]{10,40}(?:\.\d{1,6})?) (?P<mark>[.*#-]) (?P<text>.*)"
)


def severity(text: str) -> tuple[str, int]:
    """Return the level that `<12>` at the beginning of a line says, and the length of it."""
    found = _PRIORITY.match(text)
    return ("", 0) if found is None else (_level(int(found["priority"])), found.end())


def _level(priority: int) -> str:
    urgency = priority % 8
    if urgency <= _ERROR:
        return "error"
    return "warning" if urgency == _WARNING else "info"


def syslog(line: str, start: int, form: str, when: int | None, level: str) -> Line | None:
    """Read what stands behind the date of a line of syslog, or return None.

    Args:
        line: The line.
        start: The offset behind the date.
        form: The format to name.
        when: The time of the line.
        level: The level that its priority says, or an empty text.
    """
    found = REST.match(line, start)
    if found is None or found["host"].strip("[]:").lower() in LEVELS:
        repeated = _REPEATED.match(line, start)
        return None if repeated is None else Line(form, when, "", level, repeated["text"])
    tag = found["tag"] or found["word"]
    if tag.lower() in LEVELS or (found["tag"] and "  " in tag):
        return None
    return Line(form, when, tag.strip(), level, found["text"])


def _new(line: str, given: int) -> Line | None:
    found = _NEW.match(line)
    if found is None:
        return None
    when = dates.parse(found["time"], given)
    if found["priority"] is None and when is None:
        return None
    text = (found["text"] or "").lstrip("\ufeff")
    tag = "" if found["tag"] == "-" else found["tag"]
    level = _level(int(found["priority"])) if found["priority"] else ""
    return Line("syslog", when, tag, level, text)


def _klog(line: str, given: int) -> Line | None:
    found = _KLOG.match(line)
    if found is None:
        return None
    when = dates.parse(f"{found['month']}-{found['day']} {found['clock']}", given)
    return Line("klog", when, found["file"], LEVELS[found["level"].lower()], found["text"], True)


def _blue_gene(line: str, given: int) -> Line | None:
    found = _BLUE_GENE.match(line)
    if found is None:
        return None
    level = LEVELS.get(found["level"].lower(), "")
    return Line("bgl", dates.parse(found["time"], given), found["name"], level, found["text"])


def _cluster(line: str, given: int) -> Line | None:
    found = _CLUSTER.match(line)
    if found is None:
        return None
    when = dates.parse(found["time"], given)
    rest = syslog(line, found.start("rest") - 1, "cluster", when, "")
    return rest or Line("cluster", when, "", "", found["rest"])


def _states(line: str, given: int) -> Line | None:
    found = _STATES.match(line)
    if found is None:
        return None
    text = f"{found['state']} {found['text']}"
    return Line("hpc", dates.parse(found["time"], given), found["name"], "", text)


def _redis(line: str, given: int) -> Line | None:
    found = _REDIS.match(line)
    if found is None:
        return None
    level = "warning" if found["mark"] == "#" else "info"
    return Line("redis", dates.parse(found["time"], given), "redis", level, found["text"])


def special(line: str, given: int) -> Line | None:
    """Read a line of one of the formats whose date is not at its beginning, or return None."""
    first = line[0]
    if first == "<":
        return _new(line, given)
    if first in "IWEF" and line[1:5].isdigit():
        return _klog(line, given)
    if first.isdigit():
        if line[1:2] == " " and (found := _new(line, given)) is not None:
            return found
        return _redis(line, given) or _states(line, given) or _uptime(line)
    if first == "[":
        return _kernel(line)
    return _blue_gene(line, given) or _cluster(line, given)


def _kernel(line: str) -> Line | None:
    found = _CONSOLE.match(line)
    if found is None:
        return None
    text = found["text"]
    level = "error" if text.startswith(_KERNEL_ERRORS) else ""
    level = "warning" if text.startswith("WARNING") else level
    return Line("kernel", None, "kernel", level, text)


def _uptime(line: str) -> Line | None:
    """Read a line that tells the seconds since the start of a program, as those of a JVM do."""
    found = _SINCE.match(line)
    return None if found is None else Line("uptime", None, "", "", found["text"])


def piped(line: str, start: int, when: int | None) -> Line | None:
    """Read what stands behind the date of a line whose fields have bars between them."""
    found = _PIPED.match(line, start)
    return None if found is None else Line("piped", when, found["name"], "", found["text"])
