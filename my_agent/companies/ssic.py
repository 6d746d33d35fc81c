"""SSIC: map names of industries to codes of the Singapore Standard Industrial Classification.

SSIC follows ISIC Rev. 4: a section is a letter, a division two digits, and each further digit
narrows it; a company has five digits. `reference/ssic.csv` contains every section and division and
the common groups and classes, each with synonyms. A short code covers all codes that begin with it.
Pure functions.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from my_agent.reference import table

# Scores of the ways of matching. A score below MINIMUM is a coincidence.
WHOLE, PHRASE, WORD, PART = 1.0, 0.72, 0.58, 0.75
MINIMUM = 0.4
# What the covered share of a text adds, and what an industry of the named trade gets.
COVERED, TRADE = 0.25, 0.1
# Likeness of two phrases from which they are the same words in another order.
SAME = 0.95
# Sections are so wide that one of their words says little about a longer text.
WIDE = 0.168
# Weight of the words behind `for` or `in`: they name the customers or the place.
BEHIND = 0.3
# Matches whose score is further than this below the best one are ignored.
MAX_GAP = 0.15
# A text is about an industry if the industry has this many points, and at least half as many as the
# best one.
MIN_POINTS = 3.0
# Repetitions of one phrase beyond this number are ignored.
REPETITIONS = 3

_FILLERS = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "in", "it", "of", "on", "or", "other", "the", "to")
)
# Words that say nothing about an industry, as stems.
# fmt: off
_GENERIC = frozenset((
    "compan", "firm", "provid", "busines", "group", "operat", "startup", "brand", "chain", "centr",
    "center", "servic", "practic", "professional", "specialist", "vendor", "leading", "their",
    "own", "that", "mak", "maker", "factor", "supplier", "suppl", "house", "solution", "product",
    "local", "small", "large",
))
# fmt: on
# Words that name a trade, as stems, and the codes of that trade: who makes a thing is in another
# industry than who sells it.
_TRADES = tuple(
    (frozenset(stems.split()), tuple(codes.split()))
    for stems, codes in (
        (
            "manufactur maker mak produc factor plant mill fabricat",
            "01 03 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33",
        ),
        ("distribut wholesal import export trad", "46"),
        ("retail shop stor dealer dealership boutiqu sell", "45 47"),
        ("repair maintenanc mro", "33 45 95"),
        ("software softwar app platform", "582 62"),
        ("trucking truck haul transport carrier", "49 50 51"),
        ("hir rental leas", "77"),
        ("contract install", "43"),
        ("clinic doctor therap", "86"),
        ("farm grow breed", "01 03"),
        ("adviser advisor consult", "69 70 71 74 62 66"),
    )
)
# Words that stand before the customers or the place of a business.
_BEHIND = frozenset(("for", "in", "to", "under", "near", "from", "that", "with"))
_ENDINGS = re.compile(
    r"(?:ations?|ators?|ating|ancy|ants?|ments?|ings?|(?<!tt)ers?|ors?|ies|ed|es|[ey]|s)$"
)
# Shorter stems are too ambiguous.
STEM = 3
_CODE = re.compile(r"[A-U]|[0-9]{2,5}")
# First and last division of each section.
_RANGES = """A 1 3, B 5 9, C 10 33, D 35 35, E 36 39, F 41 43, G 45 47, H 49 53, I 55 56,
    J 58 63, K 64 66, L 68 68, M 69 75, N 77 82, O 84 84, P 85 85, Q 86 88, R 90 93, S 94 96,
    T 97 98, U 99 99"""
_DIVISIONS = {
    letter: tuple(f"{each:02}" for each in range(int(first), int(last) + 1))
    for letter, first, last in map(str.split, _RANGES.split(","))
}

Words = tuple[str, ...]


class Phrase(NamedTuple):
    """A title or a synonym: its words, normalized for comparison, their stems, and as written."""

    words: Words
    stems: Words
    written: str


class Industry(NamedTuple):
    """An entry of the classification."""

    code: str  # a section's letter, or two to five digits
    title: str
    phrases: tuple[Phrase, ...]  # title and synonyms


class Match(NamedTuple):
    """An industry that a text may mean."""

    code: str  # covers every code that begins with it
    title: str
    score: float  # confidence, up to 1
    because: str  # the matching phrase


def find(text: str, limit: int = 3) -> list[Match]:
    """Return the industries that a text may mean, best first; none if no word is known.

    A text equal to a phrase scores highest. A text that contains a phrase scores higher the more of
    the text the phrase covers. A text that only shares words with a phrase scores lowest. Rare words
    count more than common ones, words behind `for` or `in` count less, and an industry of the trade
    that the text names is preferred. Of two equal scores, the narrower industry comes first. The
    text may also be a code.
    """
    code = text.strip().upper()
    if _CODE.fullmatch(code):
        return [Match(code, title(code), WHOLE, code)] if title(code) else []
    return list(_found(_words(text))[:limit])


def codes(texts: Sequence[str], limit: int = 8) -> list[str]:
    """Return the codes of the industries that several names mean, each once, best first."""
    best: dict[str, float] = {}
    for found in map(find, texts):
        for match in found:
            if match.score >= found[0].score - MAX_GAP:
                best[match.code] = max(match.score, best.get(match.code, 0.0))
    return sorted(best, key=lambda code: -best[code])[:limit]


def industries_in(text: str, *, limit: int = 3) -> list[str]:
    """Return the titles of the divisions that a text such as a website is about; none if unclear."""
    counts = _phrases_of(_words(text))
    points: Counter[str] = Counter()
    for entry in industries():
        for phrase in set(entry.phrases) if not entry.code.isalpha() else ():
            points[entry.code[:2]] += len(phrase.words) * min(counts[phrase.words], REPETITIONS)
    threshold = max(MIN_POINTS, max(points.values(), default=0) / 2)
    ranked = sorted(points, key=lambda code: (-points[code], code))
    return [title(code) for code in ranked if points[code] >= threshold][:limit]


def prefixes(code: str) -> tuple[str, ...]:
    """Return the first digits of the codes of companies in this industry."""
    return _DIVISIONS.get(code, ()) if code.isalpha() else (code,)


def covers(code: str, ssic: Iterable[str]) -> bool:
    """Return whether one of a company's codes belongs to an industry."""
    return any(each.startswith(prefixes(code)) for each in ssic)


def lineage(code: str) -> list[Industry]:
    """Return the entries that contain a code, the section first; empty for an invalid code."""
    table = _by_code()
    if not _CODE.fullmatch(code) or code.isalpha():
        return [table[code]] if code in table else []
    section = [letter for letter, divisions in _DIVISIONS.items() if code[:2] in divisions]
    digits = [code[:length] for length in range(2, len(code) + 1)]
    return [table[each] for each in (*section, *digits) if each in table]


def title(code: str) -> str:
    """Return the title of the narrowest known entry for a code; empty for an invalid code."""
    entries = lineage(code)
    return entries[-1].title if entries else ""


def normal(code: str) -> str:
    """Return a code of a register file with all five digits; empty for an invalid code.

    Spreadsheets strip leading zeros and append decimals.
    """
    digits = code.strip().removesuffix(".0")
    full = digits.zfill(5)
    return full if digits.isascii() and digits.isdigit() and len(full) == 5 and title(full) else ""


@cache
def industries() -> tuple[Industry, ...]:
    """Return the whole table."""
    return tuple(
        Industry(
            row["code"],
            row["title"],
            tuple(
                Phrase(words, _stems(words), each)
                for each in (row["title"], *row["synonyms"].split("|"))
                for words in [_words(each)]
            ),
        )
        for row in table("my_agent.companies", "ssic.csv")
    )


@cache
def _by_code() -> dict[str, Industry]:
    return {entry.code: entry for entry in industries()}


@lru_cache(maxsize=1024)
def _found(words: Words) -> tuple[Match, ...]:
    asked = _Asked(words)
    found = [match for entry in industries() if (match := asked.match(entry))]
    return tuple(sorted(found, key=lambda match: (-match.score, -len(match.code), match.code)))


class _Asked:
    """A text that is looked up."""

    def __init__(self, words: Words) -> None:
        head = next((at for at, word in enumerate(words) if at and word in _BEHIND), len(words))
        stems = _stems(words)
        self.words = words
        self.counts = _phrases_of(stems)
        # The weight of each significant stem, and of all of them.
        self.weights: dict[str, float] = {}
        for at, (word, stem) in enumerate(zip(words, stems, strict=True)):
            if word not in _FILLERS and word not in _BEHIND:
                weight = _weight(stem) * (1.0 if at < head else BEHIND)
                self.weights[stem] = max(weight, self.weights.get(stem, 0.0))
        self.total = sum(self.weights.values())
        named = set(stems[:head])
        self.trades = tuple(code for stems, codes in _TRADES if named & stems for code in codes)

    def match(self, entry: Industry) -> Match | None:
        """Return how well an industry matches; None if it does by coincidence only."""
        score, because = max((self._score(each), each.written) for each in entry.phrases)
        if score < MINIMUM:
            return None
        if score < WHOLE and entry.code.isalpha():
            score = round(score * WIDE, 3)
        if score < WHOLE and entry.code.startswith(self.trades):
            score = min(round(score + TRADE, 3), 0.99)
        return Match(entry.code, entry.title, score, because)

    def _score(self, phrase: Phrase) -> float:
        if phrase.words == self.words:
            return WHOLE
        weights = {stem: _weight(stem) for stem in phrase.stems if stem not in _FILLERS}
        of_phrase = sum(weights.values())
        if of_phrase < MINIMUM or not self.total:
            # Generic words only.
            return 0.0
        shared = sum(min(weight, self.weights.get(stem, 0.0)) for stem, weight in weights.items())
        if self.counts[phrase.stems]:
            certainty = PHRASE if len(weights) > 1 else WORD
            return round(certainty + COVERED * min(shared / self.total, 1.0), 3)
        alike = 2 * shared / (of_phrase + self.total)
        # The same words in another order.
        return round((PHRASE + COVERED if alike > SAME else PART) * alike, 3)


@cache
def _frequencies() -> Counter[str]:
    """Return the number of divisions that use each stem."""
    phrases = [(entry.code[:2], phrase) for entry in industries() for phrase in entry.phrases]
    used = {(stem, division) for division, phrase in phrases for stem in phrase.stems}
    return Counter(stem for stem, _ in used)


@lru_cache(maxsize=4096)
def _weight(stem: str) -> float:
    """Return how much a stem says about an industry, from 0 to 1."""
    if stem in _GENERIC:
        return 0.1
    count = _frequencies()[stem]
    # An unknown word may be the one that matters, or any adjective.
    return 1.0 / (1.0 + math.log(count)) if count else 0.5


def _stems(words: Words) -> Words:
    return tuple(map(_stem, words))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """Return a word without its ending: `fabricators` and `fabrication` have the same stem."""
    cut = _ENDINGS.sub("", word)
    cut = cut if len(cut) > STEM else word
    # `shipping` is the same as `ship`.
    return cut[:-1] if len(cut) > STEM + 1 and cut[-1] == cut[-2] and cut[-1] not in "sl" else cut


def _phrases_of(words: Words) -> Counter[Words]:
    """Count each sequence of up to six words in a text."""
    return Counter(
        words[at : at + length] for length in range(1, 7) for at in range(len(words) - length + 1)
    )


def _words(text: str) -> Words:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return tuple(_singular(word) for word in re.findall(r"[^\W_]+(?:&[^\W_]+)*", plain))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and re.search(r"[^aius]s$", word) else word
