"""The checker of claims: does a quote say what a claim says? Deterministic, without a model.

A claim may leave out whole clauses of its quote (`clauses`), and replace words by a few synonyms. It must
not add a word, change the order of words, drop a negation or a qualification, or join two halves.
Therefore the checker refuses many true paraphrases; the prompts ask for shortened quotes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from urllib.parse import urlsplit

from my_agent.research import clauses
from my_agent.research.ledger import Ledger
from my_agent.research.model import NOT_SUPPORTED, SUPPORTED, Claim, CrawledPage, LedgerEntry
from my_agent.research.text import (
    CONDITIONS,
    CONJUNCTIONS,
    HEDGES,
    MONTHS,
    QUALIFIERS,
    Token,
    sentences,
    tokens,
)

_PAST, _PRESENT = {"was", "were", "had", "did"}, {"is", "are", "has", "does"}
# An insertion between commas or in brackets, such as "Acme, founded in 1999, makes ...".
_INSERTION = re.compile(r"(?:(?<!\s)\s++)?\([^()]*+\)|,\s[^,.;:]{3,80},(?=\s++(?!and\b|or\b))")
# Halves of a sentence that stand for themselves.
_HALVES = re.compile(r";\s+|,\s+(?:while|whereas)\s+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_URL = re.compile(r"https?://|www\.", re.IGNORECASE)


def check(claim: str, quote: str) -> str | None:
    """Return None if the quote says what the claim says, or the reason why not.

    Args:
        claim: one or more sentences without markers; each must be in the quote.
        quote: words of a page.
    """
    parts = [each.text for each in sentences(claim)]
    if not parts:
        return "the claim is empty"
    if _URL.search(claim):
        return "the claim names an address"
    return next(filter(None, (_check_sentence(part, quote) for part in parts)), None)


def judge(
    text: str, entries: Sequence[str], ledger: Ledger, pages: Mapping[str, CrawledPage]
) -> Claim:
    """Return a claim with its status: the entries that support it, and their independent origins.

    Args:
        text: the claim without markers.
        entries: ids of the ledger entries that should support it.
        ledger: the ledger.
        pages: the pages that were read, by their address.
    """
    claim = Claim(text=" ".join(text.split()), status=NOT_SUPPORTED)
    if not entries:
        return replace(claim, reason="it names no source")
    supporting, reasons = [], []
    for entry_id in dict.fromkeys(entries):
        entry = ledger.find(entry_id)
        reason = "the marker resolves to nothing" if entry is None else _problem(entry, pages)
        if entry is not None and reason is None:
            reason = check(claim.text, entry.quote)
        if reason is None:
            supporting.append(entry_id)
        else:
            reasons.append(f"[{entry_id}] {reason}")
    if not supporting:
        return replace(claim, entries=tuple(dict.fromkeys(entries)), reason="; ".join(reasons))
    found = [entry for each in supporting if (entry := ledger.find(each)) is not None]
    return replace(
        claim, entries=tuple(supporting), origins=origins(found, pages), status=SUPPORTED
    )


def origins(entries: Iterable[LedgerEntry], pages: Mapping[str, CrawledPage]) -> int:
    """Return the number of independent origins: near-duplicates and pages of one host are one."""
    groups: list[set[str]] = []
    for entry in entries:
        page = pages.get(entry.url)
        names = {f"host:{urlsplit(entry.url).netloc or entry.url}"}
        if page is not None and page.origin:
            names.add(f"origin:{page.origin}")
        touching = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names]
        groups.append(names.union(*touching))
    return len(groups)


def _problem(entry: LedgerEntry, pages: Mapping[str, CrawledPage]) -> str | None:
    page = pages.get(entry.url)
    if page is None:
        return "the page was not read"
    if page.sha256 != entry.sha256:
        return "the page has changed since"
    if page.text[entry.start : entry.end] != entry.quote:
        return "the quote is not on the page"
    return None


def _check_sentence(claim: str, quote: str) -> str | None:
    if " ".join(claim.split()).rstrip(".") == " ".join(quote.split()).rstrip("."):
        return None
    reasons: list[str] = []
    for sentence in dict.fromkeys(
        variant
        for each in sentences(quote)
        for variant in (each.text, _INSERTION.sub("", each.text), *_HALVES.split(each.text))
    ):
        said = tokens(claim)
        reason = _compare(said, tokens(sentence))
        if reason is None and not clauses.is_whole(said, sentence):
            reason = _RANKS.PART
        if reason is None:
            return None
        reasons.append(reason)
    return min(reasons, key=_RANKS.index_of) if reasons else "the quote is empty"


def _compare(claim: Sequence[Token], quote: Sequence[Token]) -> str | None:
    """Return why a sentence of the quote does not say what a sentence of the claim says."""
    for token in claim:
        if token.kind in ("number", "name", "word", "symbol") and not _in(token, quote):
            return _RANKS.missing(token)
    if _count(claim, "not") != _count(quote, "not"):
        return _RANKS.NEGATION
    if missing := (_raws(quote) & HEDGES) - _raws(claim):
        return f"{_RANKS.HEDGE} “{min(missing)}”"
    if _tense(claim) == "present" and _tense(quote) == "past":
        return _RANKS.TENSE
    places = _aligned(claim, quote)
    if places is None:
        return _RANKS.ORDER
    if _joins(quote, places):
        return _RANKS.JOINED
    if (condition := _condition(quote, places)) is not None:
        return f"{_RANKS.HEDGE} “{condition}”"
    return _qualified(claim, quote, places)


def _in(token: Token, quote: Sequence[Token]) -> bool:
    # Marks such as ":" are not needed; units are.
    if token.kind == "symbol" and token.form in ";:":
        return True
    return any(_same(token, each) for each in quote)


def _same(one: Token, other: Token) -> bool:
    return one.form == other.form and (one.kind == "number") == (other.kind == "number")


def _count(found: Sequence[Token], form: str) -> int:
    return sum(each.form == form for each in found)


def _raws(found: Sequence[Token]) -> set[str]:
    return {each.raw.lower() for each in found}


def _tense(found: Sequence[Token]) -> str:
    raws = _raws(found)
    if raws & _PRESENT:
        return "present"
    return "past" if raws & _PAST else ""


def _aligned(claim: Sequence[Token], quote: Sequence[Token]) -> list[int] | None:
    """Return the places of the claim's tokens in the quote, in order; None if there are none."""
    wanted = [each for each in claim if _counts(each)]
    # Each start is tried: the first word may occur several times.
    best: list[int] | None = None
    for start, first in enumerate(quote):
        if not wanted or not _same(wanted[0], first):
            continue
        places, at = [start], start
        for token in wanted[1:]:
            at = next((n for n in range(at + 1, len(quote)) if _same(token, quote[n])), len(quote))
            if at == len(quote):
                break
            places.append(at)
        if len(places) == len(wanted) and (best is None or _span(places) < _span(best)):
            best = places
    return best


def _span(places: Sequence[int]) -> int:
    return places[-1] - places[0]


def _counts(token: Token) -> bool:
    return token.kind != "function" and not (token.kind == "symbol" and token.form in ";:")


def _joins(quote: Sequence[Token], places: Sequence[int]) -> bool:
    """Return whether the claim leaves out what stands between its words and changes their relation.

    That is a name or a number, or words together with a conjunction.
    """
    for before, after in pairwise(places):
        gap = quote[before + 1 : after]
        if any(each.kind in ("name", "number") and not _is_date(each) for each in gap):
            return True
        words = any(each.kind == "word" for each in gap)
        # "Refused to comment on a merger" is no refused merger.
        if words and any(each.raw.lower() == "to" for each in gap):
            return True
        if words and any(each.form in CONJUNCTIONS for each in gap):
            return True
    return False


def _condition(quote: Sequence[Token], places: Sequence[int]) -> str | None:
    """Return the first word of a condition that the claim leaves out behind its last word."""
    following = quote[places[-1] + 1 : places[-1] + 2]
    if following and following[0].raw.lower() in CONDITIONS:
        return following[0].raw
    return None


def _is_date(token: Token) -> bool:
    return token.form in MONTHS or _YEAR.fullmatch(token.raw) is not None


def _qualified(claim: Sequence[Token], quote: Sequence[Token], places: Sequence[int]) -> str | None:
    """Return why a number lacks a qualification of the quote, such as "up to", or its unit."""
    wanted = [each for each in claim if _counts(each)]
    for token, at in zip(wanted, places, strict=True):
        if token.kind != "number" or _is_date(token):
            continue
        here = next(n for n, each in enumerate(claim) if each is token)
        if _before(claim, here) != _before(quote, at):
            return f"{_RANKS.QUALIFIER} “{token.raw}”"
        if _unit(quote, at) not in ("", _unit(claim, here)):
            return f"{_RANKS.UNIT} “{token.raw}”"
    return None


def _before(found: Sequence[Token], at: int) -> set[str]:
    return {each.raw.lower() for each in found[max(0, at - 3) : at]} & QUALIFIERS


def _unit(found: Sequence[Token], at: int) -> str:
    """Return the unit of a number: a symbol beside it, or the word after it."""
    around = [each for each in (*found[at - 1 : at], *found[at + 1 : at + 2])]
    for each in around:
        if each.kind == "symbol" and each.form not in ";:":
            return each.form
    following = found[at + 1 : at + 2]
    return following[0].form if following and following[0].kind in ("word", "name") else ""


class _Ranks:
    """The reasons of a refusal, the most telling one first."""

    NUMBER, NAME = "a number is not in the quote:", "a name is not in the quote:"
    UNIT, QUALIFIER = "the unit differs at", "a qualification is missing at"
    NEGATION, HEDGE = "the negation differs", "the claim leaves out"
    TENSE = "the quote is about the past"
    JOINED = "the claim joins parts that belong to different things"
    ORDER, WORD = "the words stand in another order", "a word is not in the quote:"
    PART = "the claim ends inside of a clause of the quote"
    SYMBOL = "a unit is not in the quote:"

    def missing(self, token: Token) -> str:
        """Return the reason for a missing token."""
        kinds = {"number": self.NUMBER, "name": self.NAME, "symbol": self.SYMBOL}
        return f"{kinds.get(token.kind, self.WORD)} “{token.raw}”"

    def index_of(self, reason: str) -> int:
        """Return the rank of a reason: the later a comparison fails, the more telling it is."""
        order = (
            *(
                self.PART,
                self.UNIT,
                self.QUALIFIER,
                self.JOINED,
                self.ORDER,
                self.TENSE,
                self.HEDGE,
            ),
            *(self.NEGATION, self.SYMBOL, self.NUMBER, self.NAME, self.WORD),
        )
        return next(n for n, start in enumerate(order) if reason.startswith(start))


_RANKS = _Ranks()
