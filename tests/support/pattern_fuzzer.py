"""Fuzzer of patterns: texts on which a pattern may backtrack, from the pattern's own tree.

A text is a beginning, a pump that is repeated, and an end. The beginning is a shortest text of what
stands before one of the pattern's repetitions. The pump is a character of each class that the
repetitions distinguish, or the text of a repeated group. The end lets the match fail.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tests.support.pattern_steps import (
    CHARACTERS,
    UNBOUNDED,
    Counter,
    TooManySteps,
    accepts,
    parse,
)

# Bounded repetitions are shortened to this, so that their bounds do not look like growth.
MOST = 4
LENGTHS = (15, 30, 60)
_LIMIT = 500_000
_POOL = " \n\ta0Z_.,-#'\"()[]{}|:;`*/\\<>=@$&+!?~%^\u00e9\u2019\u3002\x01"
_ENDS = ("", "\x01", "\n\x01")


@dataclass(frozen=True)
class Text:
    """A text: `beginning`, then `pump` as often as wanted, then `end`."""

    beginning: str
    pump: str
    end: str

    def of(self, times: int) -> str:
        """Return the text with a number of pumps."""
        return self.beginning + self.pump * times + self.end


@dataclass
class _Found:
    """What the tree of a pattern contains.

    Attributes:
        beginnings: texts before each repetition.
        bodies: texts of each repeated group.
        tests: tests of one character, of the repeated ones.
        literals: characters that the repetitions name.
    """

    beginnings: list[str] = field(default_factory=lambda: [""])
    bodies: list[str] = field(default_factory=list)
    tests: list[Callable[[str], bool]] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)


def texts(pattern: re.Pattern[Any]) -> Iterator[Text]:
    """Yield texts for a pattern; none if it repeats nothing without a bound."""
    found = _Found()
    _walk(list(parse(pattern)), pattern.flags, "", found, repeated=False)
    if not found.tests:
        return
    beginnings = list(dict.fromkeys(found.beginnings))
    alphabet = _alphabet(found)
    pumps = [*alphabet, *found.bodies]
    pumps += [beginning for beginning in beginnings if beginning]
    if len(alphabet) <= 6:
        pumps += [one + other for one, other in product(alphabet, repeat=2) if one != other]
    pumps += [begin + each for begin in beginnings[:4] if begin for each in alphabet]
    for pump, beginning in product(dict.fromkeys(pumps), beginnings):
        for end in _ENDS:
            yield Text(beginning, pump, end)


def slow(pattern: re.Pattern[Any], how: str) -> Text | None:
    """Return a text for which the steps of a pattern grow faster than its length, or None.

    Args:
        pattern: the pattern.
        how: `match` or `fullmatch`, if the pattern is used only so; `search` otherwise.
    """
    counter = Counter(pattern, MOST)
    return next((text for text in texts(pattern) if _grows(counter, how, text)), None)


def _grows(counter: Counter, how: str, text: Text) -> bool:
    counts = list[int]()
    try:
        for times in LENGTHS:
            counts.append(_steps(counter, how, text.of(times)))
    except TooManySteps:
        return True
    first, second, third = counts
    # Twice the pumps: twice the steps if they grow as the text does, four times if quadratically.
    return third - second > 2.6 * (second - first) + 20


def _steps(counter: Counter, how: str, text: str) -> int:
    counter.steps = 0
    if how == "search":
        counter.find_all(text, limit=_LIMIT)
    else:
        counter.match(text, full=how == "fullmatch", limit=_LIMIT)
    return counter.steps


def _walk(items: list[Any], flags: int, before: str, found: _Found, *, repeated: bool) -> None:
    """Collect what a sequence contains; `before` is a text of what stands before it."""
    for item in items:
        kind, value = str(item[0]), item[1]
        if kind in CHARACTERS:
            if repeated:
                found.tests.append(accepts(item, flags))
                found.literals += _literals(item)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            unbounded = value[1] == UNBOUNDED or value[1] > MOST
            if unbounded:
                found.beginnings.append(before)
                body = list(value[2])
                if len(body) > 1 or str(body[0][0]) not in CHARACTERS:
                    found.bodies += [each for each in _variants(body, flags) if each]
            _walk(list(value[2]), flags, before, found, repeated=repeated or unbounded)
        elif kind == "SUBPATTERN":
            inner = (flags | value[1]) & ~value[2]
            _walk(list(value[3]), inner, before, found, repeated=repeated)
        elif kind == "BRANCH":
            for branch in value[1]:
                _walk(list(branch), flags, before, found, repeated=repeated)
        elif kind == "ATOMIC_GROUP":
            _walk(list(value), flags, before, found, repeated=repeated)
        elif kind in ("ASSERT", "ASSERT_NOT") and value[0] > 0:
            _walk(list(value[1]), flags, before, found, repeated=repeated)
        before += _shortest([item], flags)


def _variants(items: list[Any], flags: int) -> list[str]:
    """Return texts of a sequence: of each of its first branches, with empty parts and without."""
    texts = [_shortest(items, flags), _shortest(items, flags, optional=True)]
    for number, item in enumerate(items):
        inner = item
        while str(inner[0]) == "SUBPATTERN" and len(inner[1][3]) == 1:
            inner = inner[1][3][0]
        if str(inner[0]) == "BRANCH":
            for branch in inner[1][1][:4]:
                rest = [*items[:number], *branch, *items[number + 1 :]]
                texts.append(_shortest(rest, flags, optional=True))
    return list(dict.fromkeys(texts))


def _shortest(items: list[Any], flags: int, *, optional: bool = False) -> str:
    """Return a short text of a sequence; `optional`: with one of each optional part."""
    said = ""
    for item in items:
        kind, value = str(item[0]), item[1]
        if kind in CHARACTERS:
            said += _example(item, flags)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            times = max(int(value[0]), 1 if optional else 0)
            said += _shortest(list(value[2]), flags, optional=optional) * min(times, 20)
        elif kind == "SUBPATTERN":
            inner = (flags | value[1]) & ~value[2]
            said += _shortest(list(value[3]), inner, optional=optional)
        elif kind == "BRANCH":
            said += min((_shortest(list(each), flags) for each in value[1]), key=len)
        elif kind == "ATOMIC_GROUP":
            said += _shortest(list(value), flags, optional=optional)
    return said


def _example(item: Any, flags: int) -> str:
    accepted = accepts(item, flags)
    return next((each for each in [*_literals(item), *_POOL] if accepted(each)), "")


def _literals(item: Any) -> list[str]:
    kind, value = str(item[0]), item[1]
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "RANGE":
        return [chr(value[0])]
    if kind == "IN":
        return [each for part in value for each in _literals(part)]
    return []


def _alphabet(found: _Found) -> list[str]:
    """Return a character for each class that the repetitions distinguish."""
    kinds: dict[tuple[bool, ...], str] = {}
    for each in dict.fromkeys([*_POOL, *found.literals]):
        sign = tuple(test(each) for test in found.tests)
        kinds.setdefault((*sign, each.isalnum() or each == "_", each == "\n"), each)
    return [each for sign, each in kinds.items() if any(sign[:-2])]
