"""SSIC: map names of industries to codes of the Singapore Standard Industrial Classification.

SSIC follows ISIC Rev. 4: a section is a letter, a division two digits, and each further digit
narrows it; a company has five digits. `reference/ssic.csv` contains every section and division and
the common groups and classes, each with synonyms. A short code covers all codes that begin with it.
Pure functions.
"""

import csv
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

# Scores of the ways of matching. A score below MINIMUM is a coincidence.
WHOLE, PHRASE, WORD, PART = 1.0, 0.72, 0.58, 0.75
MINIMUM = 0.4
# What the covered share of a text adds, and what an industry of the named trade gets.
COVERED, TRADE = 0.25, 0.1
# Likeness of two phrases from which they are the same words in another order.
SAME = 0.95
# Sections are so wide that one of their words says little about a longer text.
WIDE = 0.8
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
_GENERIC = frozenset(
    (
        "compan",
        "firm",
        "provid",
        "busines",
        "group",
        "operat",
        "startup",
        "brand",
        "chain",
        "centr",
        "center",
        "servic",
        "practic",
        "professional",
        "specialist",
        "vendor",
        "leading",
        "their",
        "own",
        "that",
        "mak",
        "maker",
        "factor",
        "supplier",
        "suppl",
        "house",
        "solution",
        "product",
        "local",
        "small",
        "large",
    )
)
# Words that name a trade, as stems, and the codes of that trade: who makes a thing is in another
# industry than who sells it.
_TRADES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (
        frozenset(("manufactur", "maker", "mak", "produc", "factor", "plant", "mill", "fabricat")),
        tuple(f"{each:02}" for each in (1, 3, *range(10, 34))),
    ),
    (frozenset(("distribut", "wholesal", "import", "export", "trad")), ("46",)),
    (
        frozenset(("retail", "shop", "stor", "dealer", "dealership", "boutiqu", "sell")),
        ("45", "47"),
    ),
    (frozenset(("repair", "maintenanc", "mro")), ("33", "45", "95")),
    (frozenset(("software", "softwar", "app", "platform")), ("582", "62")),
    (frozenset(("trucking", "truck", "haul", "transport", "carrier")), ("49", "50", "51")),
    (frozenset(("hir", "rental", "leas")), ("77",)),
    (frozenset(("contract", "install")), ("43",)),
    (frozenset(("clinic", "doctor", "therap")), ("86",)),
    (frozenset(("farm", "grow", "breed")), ("01", "03")),
    (frozenset(("adviser", "advisor", "consult")), ("69", "70", "71", "74", "62", "66")),
)
# Words that stand before the customers or the place of a business.
_BEHIND = frozenset(("for", "in", "to", "under", "near", "from", "that", "with"))
_ENDINGS = re.compile(
    r"(?:ations?|ators?|ating|ancy|ants?|ments?|ings?|(?<!tt)ers?|ors?|ies|ed|es|[ey]|s)$"
)
# Shorter stems are too ambiguous.
STEM = 3
_CODE = re.compile(r"[A-U]|[0-9]{2,5}")
_SECTIONS = (
    *((range(1, 4), "A"), (range(5, 10), "B"), (range(10, 34), "C"), (range(35, 36), "D")),
    *((range(36, 40), "E"), (range(41, 44), "F"), (range(45, 48), "G"), (range(49, 54), "H")),
    *((range(55, 57), "I"), (range(58, 64), "J"), (range(64, 67), "K"), (range(68, 69), "L")),
    *((range(69, 76), "M"), (range(77, 83), "N"), (range(84, 85), "O"), (range(85, 86), "P")),
    *((range(86, 89), "Q"), (range(90, 94), "R"), (range(94, 97), "S"), (range(97, 99), "T")),
    (range(99, 100), "U"),
)

Words = tuple[str, ...]


@dataclass(frozen=True)
class Industry:
    """An entry of the classification.

    Attributes:
        code: a section's letter, or two to five digits.
        title: its name.
        phrases: title and synonyms, each normalized for comparison and as written.
        stems: the phrases as stems, in the same order.
    """

    code: str
    title: str
    phrases: tuple[tuple[Words, str], ...]
    stems: tuple[Words, ...]


@dataclass(frozen=True)
class Match:
    """An industry that a text may mean.

    Attributes:
        code: its code; covers every code that begins with it.
        title: its name.
        score: confidence, up to 1.
        because: the matching phrase.
    """

    code: str
    title: str
    score: float
    because: str


def find(text: str, limit: int = 3) -> list[Match]:
    """Return the industries that a text may mean, best first; none if no word is known.

    A text equal to a phrase scores highest. A text that contains a phrase scores higher the more of
    the text the phrase covers. A text that only shares words with a phrase scores lowest. Rare words
    count more than common ones, words behind `for` or `in` count less, and an industry of the trade
    that the text names is preferred. Of two equal scores, the narrower industry comes first.

    Args:
        text: such as `SaaS for restaurants`, or a code.
        limit: maximum number of matches.
    """
    code = text.strip().upper()
    if _CODE.fullmatch(code):
        return [Match(code, title(code), WHOLE, code)] if title(code) else []
    return list(_found(_words(text))[:limit])


def codes(texts: Sequence[str], limit: int = 8) -> list[str]:
    """Return the codes of the industries that several texts mean, each once, best first.

    Args:
        texts: names of industries.
        limit: maximum number of codes.
    """
    best: dict[str, float] = {}
    for found in map(find, texts):
        for match in found:
            if match.score >= found[0].score - MAX_GAP:
                best[match.code] = max(match.score, best.get(match.code, 0.0))
    return sorted(best, key=lambda code: -best[code])[:limit]


def industries_in(text: str, *, limit: int = 3) -> list[str]:
    """Return the titles of the divisions that a longer text is about; none if unclear.

    Args:
        text: such as the text of a website.
        limit: maximum number of titles.
    """
    phrase_counts = _phrases_of(_words(text))
    points: Counter[str] = Counter()
    for entry in industries():
        for phrase, _ in set(entry.phrases) if not entry.code.isalpha() else ():
            points[entry.code[:2]] += len(phrase) * min(phrase_counts[phrase], REPETITIONS)
    threshold = max(MIN_POINTS, max(points.values(), default=0) / 2)
    ranked = sorted(points, key=lambda code: (-points[code], code))
    return [title(code) for code in ranked if points[code] >= threshold][:limit]


def prefixes(code: str) -> tuple[str, ...]:
    """Return the first digits of the codes of companies in this industry."""
    if not code.isalpha():
        return (code,)
    return tuple(f"{each:02}" for span, letter in _SECTIONS if letter == code for each in span)


def covers(code: str, ssic: Iterable[str]) -> bool:
    """Return whether one of a company's codes belongs to an industry."""
    return any(each.startswith(prefixes(code)) for each in ssic)


def lineage(code: str) -> list[Industry]:
    """Return the entries that contain a code, the section first; empty for an invalid code."""
    table = _by_code()
    if not _CODE.fullmatch(code) or code.isalpha():
        return [table[code]] if code in table else []
    section = [letter for span, letter in _SECTIONS if int(code[:2]) in span]
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
    path = files("my_agent.icp_finder.search").joinpath("reference/ssic.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return tuple(
        Industry(
            row["code"],
            row["title"],
            tuple((_words(each), each) for each in phrases),
            tuple(_stems(_words(each)) for each in phrases),
        )
        for row in rows
        for phrases in [(row["title"], *row["synonyms"].split("|"))]
    )


@cache
def _by_code() -> dict[str, Industry]:
    return {entry.code: entry for entry in industries()}


@lru_cache(maxsize=1024)
def _found(words: Words) -> tuple[Match, ...]:
    asked = _Asked(words)
    found = [match for entry in industries() if (match := _match(entry, asked))]
    return tuple(sorted(found, key=lambda match: (-match.score, -len(match.code), match.code)))


class _Asked:
    """A text that is looked up.

    Attributes:
        words: its words, as written.
        stems: its stems.
        counts: the number of each sequence of stems.
        weights: the weight of each significant stem.
        trades: codes of the trades that it names.
    """

    def __init__(self, words: Words) -> None:
        head = next((at for at, word in enumerate(words) if at and word in _BEHIND), len(words))
        self.words = words
        self.stems = _stems(words)
        self.counts = _phrases_of(self.stems)
        self.weights: dict[str, float] = {}
        for at, (word, stem) in enumerate(zip(words, self.stems, strict=True)):
            if word in _FILLERS or word in _BEHIND:
                continue
            weight = _weight(stem) * (1.0 if at < head else BEHIND)
            self.weights[stem] = max(weight, self.weights.get(stem, 0.0))
        named = set(self.stems[:head])
        self.trades = tuple(code for stems, codes in _TRADES if named & stems for code in codes)

    @property
    def total(self) -> float:
        """Return the weight of all words."""
        return sum(self.weights.values())


def _match(entry: Industry, asked: _Asked) -> Match | None:
    score, because = max(
        (_score(words, stems, asked), as_is)
        for (words, as_is), stems in zip(entry.phrases, entry.stems, strict=True)
    )
    if score < MINIMUM:
        return None
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.isalpha():
        score = round(score * WIDE, 3)
    if score < WHOLE and entry.code.startswith(asked.trades or ("-",)):
        score = min(round(score + TRADE, 3), 0.99)
    return Match(entry.code, entry.title, score, because)


def _score(words: Words, phrase: Words, asked: _Asked) -> float:
    if words == asked.words:
        return WHOLE
    weights = {stem: _weight(stem) for stem in phrase if stem not in _FILLERS}
    total, of_phrase = asked.total, sum(weights.values())
    if of_phrase < MINIMUM or not total:
        # Generic words only.
        return 0.0
    shared = sum(min(weight, asked.weights.get(stem, 0.0)) for stem, weight in weights.items())
    if asked.counts[phrase]:
        certainty = PHRASE if len(weights) > 1 else WORD
        return round(certainty + COVERED * min(shared / total, 1.0), 3)
    alike = 2 * shared / (of_phrase + total)
    # The same words in another order.
    return round((PHRASE + COVERED if alike > SAME else PART) * alike, 3)


@cache
def _frequencies() -> Counter[str]:
    """Return the number of divisions that use each stem."""
    used = {
        (stem, entry.code[:2])
        for entry in industries()
        for phrase in entry.stems
        for stem in phrase
    }
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
