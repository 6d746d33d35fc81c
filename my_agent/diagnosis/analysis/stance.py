"""Stance: whether a line says that something goes wrong, that it goes well, or neither.

A word alone says nothing: `0 errors`, `error_log=/var/log/x`, `deadlock detector enabled` and `no OOM
kills` hold words of trouble and tell of none. Level, negation, value and what follows decide.
"""

import re

from my_agent.diagnosis.analysis import wording
from my_agent.diagnosis.reading.summary import Stance

LONGEST = 2_000
"""Characters of a line that are read."""
# Words before a statement that can turn it around, words behind it, and characters they take.
BEFORE, BEHIND, SPAN = 4, 3, 80
_WORD = re.compile(r"[\w'%/+-]+|[,;:()\[\]{}|!?]|\.(?=\s)")
_BREAKS = frozenset(",;:()[]{}|!?.")
_LEVELS = frozenset(("error", "fatal", "panic", "critical"))


def of(text: str, level: str = "") -> Stance:
    """Return what a line says about its component.

    Args:
        text: The message, with or without its date and level.
        level: `error`, `warning`, `info`, or empty.
    """
    text = text[:LONGEST]
    if wording.LOGIN.search(text):
        return "neutral"
    last = _trouble(text, level)
    bad = wording.BAD_VALUE.search(text)
    if bad is not None:
        return "trouble"
    if last is not None:
        return "fine" if level != "error" and _ends_well(text, last) else "trouble"
    if level == "error":
        # A tool that writes everything as errors says it plainly when all is well.
        plain = wording.GOOD_VALUE.search(text) or _ends_well(text, 0)
        return "fine" if plain else "trouble"
    said = any(_holds(text, each) for each in wording.FINE.finditer(text))
    return "fine" if said or wording.GOOD_VALUE.search(text) else "neutral"


def _trouble(text: str, level: str) -> int | None:
    """Return where the last statement of trouble ends, or None."""
    found = [each.end() for each in wording.PLAIN.finditer(text) if _holds(text, each)]
    found += [
        each.end()
        for pattern in (wording.NOUN, wording.CAMEL)
        for each in pattern.finditer(text)
        if _holds(text, each) and not _is_part(text, each)
    ]
    if level == "warning":
        found += [each.end() for each in wording.WEAK.finditer(text) if _holds(text, each)]
    return max(found, default=None)


def _ends_well(text: str, last: int) -> bool:
    return any(_holds(text, each) for each in wording.ENDS_WELL.finditer(text, last))


def _holds(text: str, match: re.Match[str]) -> bool:
    """Return whether a phrase is said, rather than negated, asked for, or a part of a name."""
    start, end = match.span()
    if _is_name(text, start, end) or wording.NOTHING.match(text, end):
        return False
    before = _before(text, start)
    if wording.CONDITIONS.intersection(before) or wording.CHECKED.search(
        text, max(0, start - 40), start
    ):
        return False
    return not _is_negated(before)


def _before(text: str, start: int) -> list[str]:
    """Return the words before a place in its clause, the nearest first."""
    words: list[str] = []
    for word in reversed(_WORD.findall(text, max(0, start - SPAN), start)):
        if word in _BREAKS or len(words) >= BEFORE:
            break
        words.append(word.lower())
    return words


def _is_negated(before: list[str]) -> bool:
    for place, word in enumerate(before):
        if word in wording.NEGATORS:
            return True
        if word == "0":
            owner = before[place + 1] if place + 1 < len(before) else ""
            return owner not in wording.NUMBERED
    return False


def _is_part(text: str, match: re.Match[str]) -> bool:
    """Return whether the words behind a noun make a name of it, or settle it."""
    start, end = match.span()
    word = match[0].lower()
    behind: list[str] = []
    for each in _WORD.findall(text, end, min(len(text), end + SPAN)):
        if each in _BREAKS or len(behind) >= BEHIND:
            break
        behind.append(each.lower())
    if behind and behind[0] in wording.PARTS:
        return True
    if any(each in wording.SETTLED for each in behind):
        return True
    if word.endswith(("timeout", "timeouts", "time-out", "backoff", "back-off")):
        return wording.SETTING.match(text, end) is not None
    before = _before(text, start)
    return (
        bool(before) and before[0] in ("on", "max", "maximum", "per", "of") and word not in _LEVELS
    )


def _is_name(text: str, start: int, end: int) -> bool:
    """Return whether a phrase is a part of an option, an address, a path, a file or an identifier."""
    left = (
        max(
            text.rfind(" ", max(0, start - SPAN), start),
            text.rfind("\t", max(0, start - SPAN), start),
        )
        + 1
    )
    right = end
    while right < len(text) and right < end + SPAN and not text[right].isspace():
        right += 1
    head, tail = text[left:start], text[end:right]
    token = head + text[start:end] + tail
    if head.startswith("-") and len(head) > 1 and head[1] != " ":
        return True
    if "://" in head or head.startswith(("/", "./", "@")) or head.count("/") > 1 or "=/" in head:
        return True
    if wording.FILE.search(token) and " " not in token:
        return True
    if tail[:1] in ("_", ".", "-", "/") and tail[1:2].isalnum():
        return True
    if head[-1:] == "-" and head[-2:-1].isalnum():
        return True
    word = re.split(r"[^\w]", head)[-1]
    return (
        bool(wording.ASKED.search(word)) or "On" in word or (word[:1].islower() and word.isalpha())
    )
