"""Access: lines about requests that servers and proxies have answered."""

import re

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import Line

SERVER_ERROR, CLIENT_ERROR = 500, 400
_REQUEST = re.compile(
    r'"(?P<request>(?:GET|POST|PUT|HEAD|DELETE|PATCH|OPTIONS|CONNECT|TRACE|PROPFIND|PRI) [^"]*+)"'
    r"(?:[ ,]{0,3}(?:status|code)?[:= ]{0,3}| -> )(?P<status>[1-5]\d\d)(?!\d)"
)
_COMMON = re.compile(
    r"(?P<before>[^\[\"]{1,300}?)\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}[:\ ][^\]]{8,20})\]\ "
    r'(?:[\w.:-]{0,80}\ )?"(?P<request>(?:[^"\\]++|\\.)*+)"\ (?P<status>\d{3}|-)(?P<rest>.*)',
    re.VERBOSE | re.DOTALL,
)
_WORKER = re.compile(
    r"\[pid: \d+\|.{0,200}? \[(?P<time>[^\]]{8,40})\] (?P<request>[A-Z]+ \S+) => .*"
    r"\(HTTP/[\d.]+ (?P<status>\d{3})\)"
)


def level(status: int) -> str:
    """Return the level of a status of HTTP."""
    if status >= SERVER_ERROR:
        return "error"
    return "warning" if status >= CLIENT_ERROR else "info"


def common(line: str, given: int) -> Line | None:
    """Read a line in the common log format or one that extends it, or of uWSGI."""
    found = _COMMON.match(line) or (_WORKER.match(line) if line.startswith("[pid: ") else None)
    if found is None:
        return None
    request, status = found["request"], found["status"]
    when = dates.parse(found["time"].replace("/", "-").replace(":", " ", 1), given)
    when = when or dates.parse(found["time"], given)
    code = int(status) if status != "-" else 0
    # Sizes and agents would make every line a template of its own.
    return Line("access", when, "", level(code), f"{_shown(request)} {status}")


def request(text: str) -> tuple[str, str] | None:
    """Return what a message tells about a request, and its level; None if it tells of none."""
    if "HTTP/" not in text:
        return None
    found = _REQUEST.search(text[:4_000])
    if found is None:
        return None
    return f"{_shown(found['request'])} {found['status']}", level(int(found["status"]))


def _shown(request: str) -> str:
    """Return a request without its query, which differs each time."""
    method, _, rest = request[:500].partition(" ")
    path, _, protocol = rest.partition(" ")
    return " ".join(filter(None, (method, path.partition("?")[0], protocol)))
