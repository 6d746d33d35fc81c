"""Prefixes: what tools that show several logs write in front of each line."""

import re
from typing import NamedTuple

from my_agent.diagnosis.reading.record import LEVELS, workload

_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]{0,300}\x07|[=>])")
# `docker compose logs`, foreman and pm2: `web-1  | `.
_PIPE = re.compile(
    r"(?P<name>[A-Za-z0-9][\w./-]{0,120}?)(?P<number>[-_.]\d{1,3})?[ \t]*+\|(?:[ \t]|\Z)"
)
_POD = re.compile(r"\[?pod/(?P<pod>[\w.-]{1,253})/(?P<container>[\w.-]{1,253})\]?[: ] ?")
# stern: a pod, a container, and a line that says what it is.
_STERN = re.compile(
    r"(?P<pod>[a-z][a-z0-9.-]{1,230}-[a-z0-9]{5}) (?P<container>[a-z][a-z0-9-]{0,62}) [\u203a\u2502]?\s*(?=[\d\[{(<A-Z])"
)
_FILE = re.compile(r"(?P<file>[\w./-]{1,100}\.(?:log|out|err)[\w.:-]{0,60})[ :][ \t]*(?=[\[\d{(])")


class Prefix(NamedTuple):
    """A prefix: the component that it names, and its length."""

    component: str
    length: int


def plain(line: str) -> str:
    """Return a line without the colours of a terminal."""
    return _COLOURS.sub("", line) if "\x1b" in line else line


def read(line: str) -> Prefix | None:
    """Return the prefix of a line without colours, or None."""
    if "|" in line[:140] and (found := _PIPE.match(line)) is not None:
        name = found["name"]
        if name.lower() not in LEVELS and not name.isdigit():
            return Prefix(name, found.end())
    if line.startswith(("pod/", "[pod/")) and (found := _POD.match(line)) is not None:
        return Prefix(workload(found["pod"]), found.end())
    if (found := _STERN.match(line)) is not None:
        return Prefix(workload(found["pod"]), found.end())
    if ".log" in line[:120] and (found := _FILE.match(line)) is not None:
        name = found["file"].rpartition("/")[2].partition(".")[0]
        return Prefix(name, found.end())
    return None
