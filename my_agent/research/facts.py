"""Facts on which sources differ: which are about the same thing, and which edition is newer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from my_agent.research.extraction import Statement
from my_agent.research.model import CrawledPage
from my_agent.research.text import Token, cut, listed, stem, tokens, words

# Share of equal words from which two statements speak about the same thing.
_SAME = 0.7
# Share of an older page's words that its newer edition has.
_EDITION_SHARE = 0.6
# Relations that have one answer at a time; names may differ there only by mistake or by age.
_SINGLE = frozenset(
    stem(word)
    for word in listed(
        "based headquartered headquarters ceo chief owner owned capital located licence license licensed written chairman director president headquarter successor"
    )
)
_EDITION = re.compile(r"(?:19|20)\d\d|\bedition\b|\b(?:v|version)\s?\d[\d.]*|\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Conflict:
    """Statements of different pages that cannot all hold.

    Attributes:
        subject: what they are about.
        statements: the newest first.
        settled: whether the first one is newer than all others.
    """

    subject: str
    statements: tuple[Statement, ...]
    settled: bool


def resolve(statements: Sequence[Statement]) -> tuple[list[Statement], list[Conflict]]:
    """Return the statements that hold, and the conflicts between them.

    The newest statement of a conflict holds. If the dates do not tell which one that is, none does.
    Nothing of an older edition of a page holds: what the newer one leaves out may have changed.

    Args:
        statements: statements of all pages.
    """
    kept, conflicts = list(statements), []
    for group in _groups(statements):
        ordered = sorted(group, key=lambda each: each.page.published or "", reverse=True)
        values = _distinct(ordered)
        dates = [each.page.published or "" for each in values]
        settled = bool(dates[0]) and dates[0] > dates[1]
        conflicts.append(Conflict(_subject(ordered[0]), tuple(values), settled))
        current = tuple(sorted(_values(ordered[0])))
        kept = [
            each
            for each in kept
            if each not in group or (settled and tuple(sorted(_values(each))) == current)
        ]
    old = _older_editions(statements)
    kept = [each for each in kept if each.page.url not in old]
    return kept, conflicts


def differ(one: Statement, other: Statement) -> bool:
    """Return whether two statements speak about the same thing and give different values."""
    if one.page.url == other.page.url:
        return False
    mine, theirs = tokens(one.text), tokens(other.text)
    if _forms(mine, "number") != _forms(theirs, "number"):
        same_names = _names(mine) == _names(theirs)
        same_units = _forms(mine, "symbol") == _forms(theirs, "symbol")
        both = bool(_forms(mine, "number")) and bool(_forms(theirs, "number"))
        return both and same_names and same_units and _overlap(mine, theirs, ("word",)) >= _SAME
    return _differ_in_name(mine, theirs)


def _differ_in_name(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    one, other = _names(mine), _names(theirs)
    if one == other or not one & other:
        return False
    single = {each.form for each in mine} & {each.form for each in theirs} & _SINGLE
    return bool(single) and _overlap(mine, theirs, ("word",)) >= 0.99 and len(one) == len(other)


def _groups(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Return groups of statements of which each differs from another one of the group."""
    groups: list[list[Statement]] = []
    for each in statements:
        touching = [group for group in groups if any(differ(each, other) for other in group)]
        same = [
            group
            for group in groups
            if group not in touching and any(_alike(each, other) for other in group)
        ]
        merged = [*(other for group in (*touching, *same) for other in group), each]
        groups = [group for group in groups if group not in touching and group not in same]
        groups.append(merged)
    return [group for group in groups if len(_distinct(group)) > 1]


def _alike(one: Statement, other: Statement) -> bool:
    mine, theirs = tokens(one.text), tokens(other.text)
    return (
        _forms(mine, "number") == _forms(theirs, "number") != ()
        and _names(mine) == _names(theirs)
        and _overlap(mine, theirs, ("word",)) >= _SAME
    )


def _distinct(group: Sequence[Statement]) -> list[Statement]:
    """Return one statement for each value, in the order of the group."""
    found: dict[tuple[str, ...], Statement] = {}
    for each in group:
        found.setdefault(tuple(sorted(_values(each))), each)
    return list(found.values())


def _values(statement: Statement) -> set[str]:
    found = tokens(statement.text)
    numbers = set(_forms(found, "number"))
    single = {each.form for each in found} & _SINGLE
    return numbers | (_names(found) if single else set())


def value_of(statement: Statement) -> str:
    """Return the value of a statement, for people: the statement itself."""
    return cut(statement.text, 200)


def _subject(statement: Statement) -> str:
    found = [each.raw for each in tokens(statement.text) if each.kind in ("name", "word")]
    return " ".join(found[:8])


def _older_editions(statements: Sequence[Statement]) -> set[str]:
    """Return the addresses of pages of which there is a newer edition.

    That is a page of the same site with the same title, but for numbers, which has most of the
    older one's words.
    """
    dated = {each.page.url: each.page for each in statements if each.page.published}
    series: dict[tuple[str, str], list[CrawledPage]] = {}
    for page in dated.values():
        series.setdefault(_series(page.title, page.url), []).append(page)
    return {
        old.url
        for pages in series.values()
        for old in pages
        if any(_replaces(new, old) for new in pages)
    }


def _replaces(new: CrawledPage, old: CrawledPage) -> bool:
    if (new.published or "") <= (old.published or ""):
        return False
    before = words(old.text)
    return len(before & words(new.text)) >= _EDITION_SHARE * len(before)


def _series(title: str, url: str) -> tuple[str, str]:
    """Return what the editions of a page share."""
    plain = " ".join(_EDITION.sub(" ", title.lower()).split())
    return urlsplit(url).hostname or "", plain


def _forms(found: Sequence[Token], kind: str) -> tuple[str, ...]:
    wanted = (each.form for each in found if each.kind == kind and each.form not in ";:")
    return tuple(sorted(wanted))


def _names(found: Sequence[Token]) -> set[str]:
    # At the beginning of a sentence a name looks like a word: each capital counts.
    return {
        each.form
        for each in found
        if each.kind in ("name", "word") and any(letter.isupper() for letter in each.raw)
    }


def _overlap(mine: Sequence[Token], theirs: Sequence[Token], kinds: tuple[str, ...]) -> float:
    one = {each.form for each in mine if each.kind in kinds} - _names(mine)
    other = {each.form for each in theirs if each.kind in kinds} - _names(theirs)
    return len(one & other) / len(one | other) if one | other else 0.0
