"""Heads: what stands between the date and the message of a line: level, process, thread, logger."""

import re
from typing import NamedTuple

from my_agent.diagnosis.reading.record import LEVELS, words

MOST = 9
"""Tokens of a head."""
_UPPER = (
    "FATAL|CRITICAL|CRIT|SEVERE|ERROR|ERR|WARNING|WARN|INFORMATION|INFO|NOTICE|DEBUG|TRACE|LOG|PANIC"
    "|EMERG|ALERT|VERBOSE|FAILURE|FINEST|FINER|FINE|CONFIG|DBG|INF|WRN"
)
# A word with small letters, such as `Error connecting`, is a level only if something ends it.
_LEVEL = (
    rf"(?:(?:{_UPPER})(?=[\]\s:|,)>/-]|\Z)|(?i:{_UPPER})(?=:\s|\s*\]|\s*\||\t|\ {{2,}}|\ -\ |\Z)):?"
)
_NAME = r"[A-Za-z_][\w.$/@-]{0,150}(?:::[\w$.-]{1,80})*+"
_TOKEN = re.compile(
    rf"""
    [\ \t]*+(?:
      (?P<box>\[(?P<inside>(?:[^\[\]]++|\[[^\[\]]*+\])*+)\]:?)
    | (?P<level>{_LEVEL})
    | (?P<letter>[VDIWEFC](?=\ {1, 2}(?:[A-Z][A-Z0-9_]+|-)\ ))
    | (?P<short>(?<=\d\ )[VDIWEF](?=\ [\w.]))
    | (?P<number>\#?\d+(?:\#\d+:?)?(?=[\ \t\]]))
    | (?P<mark>(?:---?|-|\||,|;|:|=>|--\ :)(?=[\ \t\[]))
    | (?P<user>[\w-]{{1,60}}@[\w-]{{1,60}}(?=\ (?:{_UPPER}|LOG|PANIC):))
    | (?P<name>{_NAME})(?:\[[\w.-]*\]|\([\w.]++:?\d*+\)|:\d++|\ \*64)?+
        (?:(?::|[ \t]+:)(?=[\ \t]|\Z)|(?=[ \t]+-[ \t]|\ {{3,}}|\t|\ {{1,2}}\[))
    )""",
    re.VERBOSE,
)
# What is in brackets: a level, also behind a module; a program; the class of a thread; or noise.
_BOX_LEVEL = re.compile(
    rf"(?:(?P<module>\w{{1,40}}):)?(?P<level>{_UPPER}|[DIWEF])\s*", re.IGNORECASE
)
_BOX_NAME = re.compile(r"[A-Za-z][\w.$/@-]*+(?:::[\w$.-]{1,80})*+")
_BOX_CLASS = re.compile(r"(?:.*:)?(?P<name>[A-Za-z][\w$]*)@\d+")
_THREAD = re.compile(r"(?:[Tt]hread|pool|exec|worker|listener|preinit|nio|conn)\b|-\d++\Z")
_MAIN = re.compile(r"main|conn\d+|MY-\d+")
_NOISE = re.compile(r"(?:req|trace|pid|tid|client|id)\b[ =:_-]|(?:[0-9a-f-]{12,}|\d+|UTC|-)?\Z")
# The number of a message.
_CODE = re.compile(r"[A-Z]{1,6}-?\d{2,10}[A-Z]?")
# Words that begin a message with a colon, and name nothing.
_NO_NAMES = words(
    "error failed failure exception timeout warning note message reason cause caused fatal panic"
    " info http https status result details detail hint statement context query"
)
_LOGGER = re.compile(
    r"[a-z_][\w$]*+(?:\.[\w$]++)++|[\w$]++(?:::[\w$]++)++|[A-Z][a-z0-9]++[A-Z]\w*+"
)
_LAST = re.compile(r"\((?P<name>[a-z][\w]*(?:\.[\w$]+)*\.[A-Z][\w$]*)\)\Z")


class Head(NamedTuple):
    """What the head of a line says; `rest` is the offset of the message."""

    component: str
    level: str
    rest: int
    by_logger: bool


def read(line: str, start: int) -> Head:
    """Return what the head of a line says.

    Args:
        line: The line.
        start: The offset behind its date.
    """
    level, name, box, rest, place = "", "", "", -1, start
    for _ in range(MOST):
        found = _TOKEN.match(line, place)
        if found is None:
            break
        kind = found.lastgroup if found.lastgroup != "inside" else "box"
        if kind in ("level", "letter", "short"):
            if level:
                break
            level = LEVELS[found[kind].rstrip(":").lower()]
            rest = -1
        elif kind == "name":
            said = found["name"]
            unlike = rest >= 0 and level and _LOGGER.fullmatch(said) is None
            if name or unlike or said.lower() in _NO_NAMES or _CODE.fullmatch(said):
                break
            name = said
            rest = -1 if level else rest
        elif kind == "box":
            inside = found["inside"].strip()
            if (as_level := _BOX_LEVEL.fullmatch(inside)) and not level:
                level = LEVELS[as_level["level"].lower()]
                box = box or as_level["module"] or ""
                rest = -1
            elif (as_class := _BOX_CLASS.fullmatch(inside[:200])) is not None:
                box = as_class["name"]
            elif _BOX_NAME.fullmatch(inside) and not (box and level and not _is_thread(box)):
                box = inside if not box or _is_thread(box) else box
            elif not _NOISE.match(inside):
                # It may belong to the message, unless a level or a logger follows.
                rest = place if rest < 0 else rest
        place = found.end()
    place = rest if rest >= 0 else place
    if not name and box and not _is_thread(box):
        name = box
    if not name and line.endswith(")") and (last := _LAST.search(line, max(0, len(line) - 150))):
        name = last["name"]
    return Head(name, level, place, _LOGGER.fullmatch(name) is not None)


def _is_thread(name: str) -> bool:
    return _MAIN.fullmatch(name) is not None or _THREAD.search(name) is not None
