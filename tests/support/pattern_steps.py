"""Steps: count what a backtracking engine does for a pattern, instead of taking the time.

`Counter` walks the tree that Python's own parser makes of a pattern, in the order in which `re` does,
and counts each attempt. Times differ from machine to machine; steps do not.
"""

import re
import sys
from collections.abc import Callable, Sequence
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

Continuation = Callable[[int], bool]
Matcher = Callable[[int, Continuation], bool]

CHARACTERS = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "RANGE", "CATEGORY")
UNBOUNDED = int(_parser.MAXREPEAT)


class TooManySteps(Exception):
    """Raised when a match takes more steps than allowed."""


def parse(pattern: re.Pattern[Any]) -> Any:
    """Return the tree of a compiled pattern."""
    return _parser.parse(pattern.pattern, pattern.flags)


def accepts(item: Any, flags: int) -> Callable[[str], bool]:
    """Return a function that says whether a tree's item for one character matches a character."""
    single = _compile([item], flags)
    known: dict[str, bool] = {}

    def accepted(character: str) -> bool:
        found = known.get(character)
        if found is None:
            found = known[character] = single.match(character) is not None
        return found

    return accepted


def _compile(items: list[Any], flags: int) -> re.Pattern[str]:
    state = _parser.State()
    state.flags, state.str = flags, ""
    return _compiler.compile(_parser.SubPattern(state, items), flags)  # type: ignore[no-any-return]


class Counter:
    """Matches as `re` does, and counts the steps.

    Args:
        pattern: the pattern; one of bytes is matched against Latin-1 text.
        most: largest bound of a bounded repetition. A longer one counts as this one, because the
            growth of steps matters, and a bound as long as the text would look like growth.
    """

    def __init__(self, pattern: re.Pattern[Any], most: int = UNBOUNDED) -> None:
        self.steps = 0
        self._limit = 0
        self._most = most
        self._text = ""
        self._groups: dict[int, tuple[int, int]] = {}
        self._whole = self._sequence(list(parse(pattern)), pattern.flags)

    def match(self, text: str, start: int = 0, *, full: bool = False, limit: int = 10**7) -> int:
        """Return the end of the match at a position, or -1.

        Args:
            text: the text.
            start: where the match begins.
            full: whether it ends at the end of the text.
            limit: steps in all after which `TooManySteps` is raised.
        """
        self._text, self._limit = text, limit
        self._groups = {}
        end = -1

        def done(at: int) -> bool:
            nonlocal end
            if full and at != len(text):
                return False
            end = at
            return True

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(1_000_000)
        try:
            self._whole(start, done)
        finally:
            sys.setrecursionlimit(before)
        return end

    def find_all(self, text: str, *, limit: int = 10**7) -> list[tuple[int, int]]:
        """Return the spans that `finditer` finds."""
        found: list[tuple[int, int]] = []
        at, last_empty = 0, -1
        while at <= len(text):
            end = self.match(text, at, limit=limit)
            if end < 0 or (end == at and last_empty == at):
                at += 1
                continue
            found.append((at, end))
            # As `re` does, an empty match directly behind a match counts, but not twice.
            last_empty = end
            at = end if end > at else at + 1
        return found

    def _count(self, number: int = 1) -> None:
        self.steps += number
        if self.steps > self._limit:
            raise TooManySteps

    def _sequence(self, items: Sequence[Any], flags: int) -> Matcher:
        parts = [self._item(item, flags) for item in items]
        if len(parts) == 1:
            return parts[0]

        def run(number: int, at: int, then: Continuation) -> bool:
            if number == len(parts):
                return then(at)
            return parts[number](at, lambda end: run(number + 1, end, then))

        return lambda at, then: run(0, at, then)

    def _item(self, item: Any, flags: int) -> Matcher:
        kind, value = str(item[0]), item[1]
        if kind in CHARACTERS:
            return self._character(item, flags)
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeat(kind, value, flags)
        return getattr(self, f"_{kind.lower()}")(value, flags)  # type: ignore[no-any-return]

    def _character(self, item: Any, flags: int) -> Matcher:
        accepted = accepts(item, flags)

        def matched(at: int, then: Continuation) -> bool:
            self._count()
            return at < len(self._text) and accepted(self._text[at]) and then(at + 1)

        return matched

    def _at(self, value: Any, flags: int) -> Matcher:
        place = _compile([(_parser.AT, value)], flags)

        def matched(at: int, then: Continuation) -> bool:
            self._count()
            return place.match(self._text, at) is not None and then(at)

        return matched

    def _branch(self, value: Any, flags: int) -> Matcher:
        branches = [self._sequence(list(each), flags) for each in value[1]]
        return lambda at, then: any(each(at, then) for each in branches)

    def _subpattern(self, value: Any, flags: int) -> Matcher:
        group, added, removed, items = value
        inner = self._sequence(list(items), (flags | added) & ~removed)
        if group is None:
            return inner

        def matched(at: int, then: Continuation) -> bool:
            before = self._groups.get(group)

            def closed(end: int) -> bool:
                outer = self._groups.get(group)
                self._groups[group] = (at, end)
                return then(end) or self._restore(group, outer)

            return inner(at, closed) or self._restore(group, before)

        return matched

    def _restore(self, group: int, span: tuple[int, int] | None) -> bool:
        if span is None:
            self._groups.pop(group, None)
        else:
            self._groups[group] = span
        return False

    def _groupref(self, group: int, flags: int) -> Matcher:
        def matched(at: int, then: Continuation) -> bool:
            if group not in self._groups:
                return False
            start, end = self._groups[group]
            said, there = self._text[start:end], self._text[at : at + end - start]
            self._count(1 + len(said))
            if flags & re.IGNORECASE:
                said, there = said.lower(), there.lower()
            return said == there and then(at + len(said))

        return matched

    def _assert(self, value: Any, flags: int) -> Matcher:
        looked = self._look(value, flags)
        return lambda at, then: looked(at) and then(at)

    def _assert_not(self, value: Any, flags: int) -> Matcher:
        looked = self._look(value, flags)
        return lambda at, then: not looked(at) and then(at)

    def _look(self, value: Any, flags: int) -> Continuation:
        direction, items = value
        inner = self._sequence(list(items), flags)
        back = items.getwidth()[0] if direction < 0 else 0

        def looked(at: int) -> bool:
            self._count()
            return at >= back and inner(at - back, lambda _: True)

        return looked

    def _atomic_group(self, items: Any, flags: int) -> Matcher:
        return self._alone(self._sequence(list(items), flags))

    def _alone(self, inner: Matcher) -> Matcher:
        """Return a matcher that keeps its first match."""

        def matched(at: int, then: Continuation) -> bool:
            end = -1

            def kept(found: int) -> bool:
                nonlocal end
                end = found
                return True

            return inner(at, kept) and then(end)

        return matched

    def _repeat(self, kind: str, value: Any, flags: int) -> Matcher:
        least, most, items = value
        # A bound that the parser knows is clamped; an unbounded repetition stays.
        if most != UNBOUNDED:
            most = min(int(most), self._most)
        least, most = min(int(least), self._most), int(most)
        if len(items) == 1 and str(items[0][0]) in CHARACTERS:
            return self._run(kind, least, most, accepts(items[0], flags))
        inner = self._sequence(list(items), flags)
        if kind == "POSSESSIVE_REPEAT":
            return self._alone(self._greedy(inner, least, most))
        return (self._greedy if kind == "MAX_REPEAT" else self._lazy)(inner, least, most)

    def _run(self, kind: str, least: int, most: int, accepted: Callable[[str], bool]) -> Matcher:
        """Return a matcher of a repeated character."""

        def longest(at: int) -> int:
            text, end = self._text, at
            stop = min(len(text), at + most)
            while end < stop and accepted(text[end]):
                end += 1
            self._count(end - at + 1)
            return end

        def greedy(at: int, then: Continuation) -> bool:
            for end in range(longest(at), at + least - 1, -1):
                self._count()
                if then(end):
                    return True
            return False

        def lazy(at: int, then: Continuation) -> bool:
            end = at
            while True:
                self._count()
                if end - at >= least and then(end):
                    return True
                if end - at >= most or end >= len(self._text) or not accepted(self._text[end]):
                    return False
                end += 1

        def possessive(at: int, then: Continuation) -> bool:
            end = longest(at)
            return end - at >= least and then(end)

        return {"MAX_REPEAT": greedy, "MIN_REPEAT": lazy, "POSSESSIVE_REPEAT": possessive}[kind]

    def _greedy(self, inner: Matcher, least: int, most: int) -> Matcher:
        def again(number: int, last: int, at: int, then: Continuation) -> bool:
            self._count()
            if number < least:
                return inner(at, lambda end: again(number + 1, at, end, then))
            # An empty round is not repeated.
            more = number < most and at != last
            return (more and inner(at, lambda end: again(number + 1, at, end, then))) or then(at)

        return lambda at, then: again(0, -1, at, then)

    def _lazy(self, inner: Matcher, least: int, most: int) -> Matcher:
        def again(number: int, last: int, at: int, then: Continuation) -> bool:
            self._count()
            if number >= least and then(at):
                return True
            if number >= most or (number > least and at == last):
                return False
            return inner(at, lambda end: again(number + 1, at, end, then))

        return lambda at, then: again(0, -1, at, then)
