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
# A square shows at shorter texts, and takes more steps.
SQUARE_LENGTHS = (4, 8, 16)
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
class _Repetition:
    """A repetition without a bound.

    Attributes:
        before: a text of what stands before it.
        tests: tests of one character, of what it repeats.
        bodies: texts of what it repeats, if that is a group.
    """

    before: str
    tests: list[Callable[[str], bool]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@dataclass
class _Found:
    """What the tree of a pattern contains.

    Attributes:
        repetitions: those without a bound.
        literals: characters that they name.
    """

    repetitions: list[_Repetition] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)

    @property
    def tests(self) -> list[Callable[[str], bool]]:
        """All tests of one character."""
        return [test for each in self.repetitions for test in each.tests]


def texts(pattern: re.Pattern[Any]) -> Iterator[Text]:
    """Yield texts for a pattern; none if it repeats nothing without a bound."""
    found = _Found()
    _walk(list(parse(pattern)), pattern.flags, "", found, [])
    if not found.repetitions:
        return
    alphabet = _alphabet(found)
    begun = dict.fromkeys(each.before for each in found.repetitions if each.before)
    bodies = [body for each in found.repetitions for body in each.bodies]
    # A match that begins at many places, and then what each repetition accepts behind its beginning.
    pumps = [*alphabet, *bodies, *begun]
    pumps += [begin + each for begin in list(begun)[:4] for each in alphabet]
    if len(alphabet) <= 6:
        pumps += [one + other for one, other in product(alphabet, repeat=2) if one != other]
    pairs = [("", pump) for pump in pumps]
    for each in found.repetitions:
        accepted = [one for one in alphabet if any(test(one) for test in each.tests)]
        pairs += [(each.before, pump) for pump in [*accepted, *each.bodies]]
    for beginning, pump in dict.fromkeys(pairs):
        for end in _ENDS:
            yield Text(beginning, pump, end)


def slow(pattern: re.Pattern[Any], how: str, *, square: bool = False) -> Text | None:
    """Return a text for which the steps of a pattern grow faster than allowed, or None.

    Args:
        pattern: the pattern.
        how: `match` or `fullmatch`, if the pattern is used only so; `search` otherwise.
        square: whether they may grow as the square of the text's length; otherwise as its length.
    """
    counter = Counter(pattern, MOST)
    return next((text for text in texts(pattern) if _grows(counter, how, text, square)), None)


def _grows(counter: Counter, how: str, text: Text, square: bool) -> bool:
    counts = list[int]()
    try:
        for times in SQUARE_LENGTHS if square else LENGTHS:
            counts.append(_steps(counter, how, text.of(times)))
    except TooManySteps:
        return True
    first, second, third = counts
    # Twice the pumps: twice the steps if they grow as the text does, four times if as its square,
    # eight times if as its cube.
    most = 5.2 if square else 2.6
    return third - second > most * (second - first) + 20


def _steps(counter: Counter, how: str, text: str) -> int:
    counter.steps = 0
    if how == "search":
        counter.find_all(text, limit=_LIMIT)
    else:
        counter.match(text, full=how == "fullmatch", limit=_LIMIT)
    return counter.steps


def _walk(
    items: list[Any], flags: int, before: str, found: _Found, within: list[_Repetition]
) -> None:
    """Collect what a sequence contains.

    Args:
        items: the sequence.
        flags: those that hold there.
        before: a text of what stands before it.
        found: is completed.
        within: the repetitions around it.
    """
    for item in items:
        kind, value = str(item[0]), item[1]
        if kind in CHARACTERS:
            for each in within:
                each.tests.append(accepts(item, flags))
            if within:
                found.literals += _literals(item)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            body = list(value[2])
            inside = within
            if value[1] == UNBOUNDED or value[1] > MOST:
                new = _Repetition(before)
                found.repetitions.append(new)
                inside = [*within, new]
                if len(body) > 1 or str(body[0][0]) not in CHARACTERS:
                    new.bodies += [each for each in _variants(body, flags) if each]
            _walk(body, flags, before, found, inside)
        elif kind == "SUBPATTERN":
            _walk(list(value[3]), (flags | value[1]) & ~value[2], before, found, within)
        elif kind == "BRANCH":
            for branch in value[1]:
                _walk(list(branch), flags, before, found, within)
        elif kind == "ATOMIC_GROUP":
            _walk(list(value), flags, before, found, within)
        elif kind in ("ASSERT", "ASSERT_NOT") and value[0] > 0:
            _walk(list(value[1]), flags, before, found, within)
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
