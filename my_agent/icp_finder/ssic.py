"""SSIC: map names of industries to codes of the Singapore Standard Industrial Classification.

SSIC follows ISIC Rev. 4: a section is a letter, a division two digits, and each further digit
narrows it; a company has five digits. `reference/ssic.csv` contains every section and division and
the common groups and classes, each with synonyms. A short code covers all codes that begin with it.
Pure functions.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

# Scores of the ways of matching. A score below MINIMUM is a coincidence.
WHOLE, PHRASE, WORD, PART = 1.0, 0.9, 0.8, 0.7
MINIMUM = 0.4
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
    """

    code: str
    title: str
    phrases: tuple[tuple[Words, str], ...]


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
    the text the phrase covers. A text that only shares words with a phrase scores lowest. Of two
    equal scores, the narrower industry comes first.

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
    path = files("my_agent.icp_finder").joinpath("reference/ssic.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return tuple(
        Industry(
            row["code"],
            row["title"],
            tuple((_words(each), each) for each in (row["title"], *row["synonyms"].split("|"))),
        )
        for row in rows
    )


@cache
def _by_code() -> dict[str, Industry]:
    return {entry.code: entry for entry in industries()}


@lru_cache(maxsize=1024)
def _found(words: Words) -> tuple[Match, ...]:
    phrase_counts = _phrases_of(words)
    found = [match for entry in industries() if (match := _match(entry, words, phrase_counts))]
    return tuple(sorted(found, key=lambda match: (-match.score, -len(match.code), match.code)))


def _match(entry: Industry, words: Words, phrase_counts: Counter[Words]) -> Match | None:
    score, because = max(
        (_score(phrase, words, phrase_counts), as_is) for phrase, as_is in entry.phrases
    )
    return Match(entry.code, entry.title, score, because) if score >= MINIMUM else None


def _score(phrase: Words, words: Words, phrase_counts: Counter[Words]) -> float:
    if phrase == words:
        return WHOLE
    significant, asked = _significant(phrase), _significant(words)
    if not significant or not asked:
        return 0.0
    if phrase_counts[phrase]:
        certainty = PHRASE if len(significant) > 1 else WORD
        return round(certainty + 0.05 * len(significant) / len(asked), 3)
    return round(PART * len(significant & asked) / max(len(significant), len(asked)), 3)


def _significant(words: Words) -> set[str]:
    return set(words) - _FILLERS


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
