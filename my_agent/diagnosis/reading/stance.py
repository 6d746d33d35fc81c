"""Stance: whether a line says that something goes wrong, that it goes well, or neither.

A word alone says nothing: `0 errors`, `error_log=/var/log/x`, `deadlock detector enabled` and `no OOM
kills` hold words of trouble and tell of none. Level, negation, value and what follows decide.
"""

import re
from itertools import chain

from my_agent.diagnosis.reading import wording
from my_agent.diagnosis.reading.summary import Stance

LONGEST = 2_000
"""Characters of a line that are read."""
# Words before a statement that can turn it around, words behind it, and characters they take.
BEFORE, BEHIND, SPAN = 4, 3, 80
_WORD = re.compile(r"[\w'%/+-]+|[,;:()\[\]{}|!?]|\.(?=\s)")
_ENDS = frozenset(" \t\n\"'`,(){}[]<>|;")
_UP_TO_WORD = re.compile(r"\W")
_BREAKS = frozenset(",;:()[]{}|!?.")
_LEVELS = frozenset(("error", "fatal", "panic", "critical"))


def of(text: str, level: str = "") -> Stance:
    """Return what a line says about its component.

    Args:
        text: The message, with or without its date and level.
        level: `error`, `warning`, `info`, or empty.
    """
    text = text[:LONGEST]
    low = lower(text)
    if wording.LOGIN.search(low):
        return "neutral"
    last = _trouble(text, low, level)
    bad = wording.BAD_VALUE.search(low)
    if bad is not None:
        return "trouble"
    if last is not None:
        return "fine" if level != "error" and _ends_well(text, low, last) else "trouble"
    if level == "error" or wording.MARKED.search(text):
        # A tool that writes everything as errors says it plainly when all is well.
        plain = wording.GOOD_VALUE.search(low) or _ends_well(text, low, 0)
        return "fine" if plain else "trouble"
    said = any(says(text, each) for each in wording.FINE.finditer(low))
    return "fine" if said or wording.GOOD_VALUE.search(low) else "neutral"


def is_login(text: str) -> bool:
    """Return whether a line tells of somebody who was not let in."""
    return wording.LOGIN.search(lower(text[:LONGEST])) is not None


def lower(text: str) -> str:
    """Return a text in lower case, with each character at its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(each.lower()[:1] or each for each in text)


def _trouble(text: str, low: str, level: str) -> int | None:
    """Return where the last statement of trouble ends, or None."""
    found = [each.end() for each in wording.PLAIN.finditer(low) if says(text, each)]
    found += [
        each.end()
        for each in chain(wording.NOUN.finditer(low), wording.CAMEL.finditer(text))
        if says(text, each) and not _is_part(text, each)
    ]
    if level == "warning":
        found += [each.end() for each in wording.WEAK.finditer(low) if says(text, each)]
    return max(found, default=None)


def _ends_well(text: str, low: str, last: int) -> bool:
    return any(says(text, each) for each in wording.ENDS_WELL.finditer(low, last))


def says(text: str, match: re.Match[str]) -> bool:
    """Return whether a phrase is said, rather than negated, asked for, or a part of a name."""
    start, end = match.span()
    if _is_name(text, start, end) or wording.NOTHING.match(text, end):
        return False
    before = _before(text, start)
    if before and before[0] in ("max", "maximum"):
        return False
    if wording.CONDITIONS.intersection(before):
        return False
    asked = wording.CHECKED.search(lower(text[max(0, start - SPAN) : start]))
    return asked is None and not _is_negated(before)


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
            # A number of a row of numbers, or the name of a task, counts nothing.
            owner = before[place + 1] if place + 1 < len(before) else ""
            between = before[:place]
            is_row = not all(map(str.isalpha, between)) and between[-1] not in ("of", "out")
            is_row = is_row or any(map(str.isdigit, owner))
            return owner not in wording.NUMBERED and not is_row
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
    left, right = start, end
    while left > max(0, start - SPAN) and text[left - 1] not in _ENDS:
        left -= 1
    while right < min(len(text), end + SPAN) and text[right] not in _ENDS:
        right += 1
    head, tail, after = text[left:start], text[end:right], text[end : end + 1]
    if head[:1] == "-" and len(head) > 1:
        return True
    if "://" in head or head.startswith(("/", "./", "@")) or head.count("/") > 1 or "=/" in head:
        return True
    if head[-1:] in ("/", "#") or (head[-1:] == "." and after == "("):
        return True
    if tail[:1] in ("_", ".", "-", "/") and tail[1:2].isalnum():
        return True
    if (head[-1:] == "-" and head[-2:-1].isalnum()) or wording.FILE.search(text[left:right]):
        return True
    word = _UP_TO_WORD.split(head)[-1]
    return (
        bool(wording.ASKED.search(word)) or "On" in word or (word[:1].islower() and word.isalpha())
    )
