"""SSIC: from what people call an industry to codes of the Singapore Standard Industrial Classification.

It follows ISIC Rev. 4: a section is a letter, a division two digits, then each further digit narrows
it; a company has five. `reference/ssic.csv` has every section and division and the common groups and
classes, each with other words for it. A shorter code covers all that begin with it. Pure.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

# How sure a way of matching is. What is below MINIMUM is a coincidence of words.
WHOLE, PHRASE, WORD, PART = 1.0, 0.9, 0.8, 0.7
MINIMUM = 0.4
# What is less sure than a text's surest by more than this is not what the text means.
CLOSE = 0.15
# A site is about an industry whose words it says so often, and no less than half as often as others'.
MENTIONS = 3.0
# Saying one phrase again and again proves little.
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
        title: what it is.
        phrases: words for it, the title first: as they are compared, and as they are written.
    """

    code: str
    title: str
    phrases: tuple[tuple[Words, str], ...]


@dataclass(frozen=True)
class Match:
    """An industry that a text may mean.

    Attributes:
        code: its code; covers every code that begins with it.
        title: what it is.
        score: how sure that is, up to 1.
        because: the words that it was found by.
    """

    code: str
    title: str
    score: float
    because: str


def find(text: str, limit: int = 3) -> list[Match]:
    """The industries that a text may mean, surest first; none where no word is known.

    A text that is a phrase of an entry counts more than one that has it inside, more so the more of
    the text it is; sharing some words with a phrase counts least. Of two that are equally sure, the
    narrower comes first.

    Args:
        text: such as `SaaS for restaurants`, or a code.
        limit: how many at most.
    """
    code = text.strip().upper()
    if _CODE.fullmatch(code):
        return [Match(code, title(code), WHOLE, code)] if title(code) else []
    return list(_found(_words(text))[:limit])


def codes(texts: Sequence[str], limit: int = 8) -> list[str]:
    """Codes of the industries that several texts mean, each once, surest first; none if none fits.

    Args:
        texts: industries as people call them.
        limit: how many at most.
    """
    best: dict[str, float] = {}
    for found in map(find, texts):
        for match in found:
            if match.score >= found[0].score - CLOSE:
                best[match.code] = max(match.score, best.get(match.code, 0.0))
    return sorted(best, key=lambda code: -best[code])[:limit]


def industries_in(text: str, *, limit: int = 3) -> list[str]:
    """Titles of the divisions that a longer text, such as a website's, is about; none if unclear.

    Args:
        text: in plain words.
        limit: how many at most.
    """
    said = _phrases_of(_words(text))
    points: Counter[str] = Counter()
    for entry in industries():
        for phrase, _ in set(entry.phrases) if not entry.code.isalpha() else ():
            points[entry.code[:2]] += len(phrase) * min(said[phrase], REPETITIONS)
    enough = max(MENTIONS, max(points.values(), default=0) / 2)
    ranked = sorted(points, key=lambda code: (-points[code], code))
    return [title(code) for code in ranked if points[code] >= enough][:limit]


def prefixes(code: str) -> tuple[str, ...]:
    """What a company's five digits begin with if it is of this industry."""
    if not code.isalpha():
        return (code,)
    return tuple(f"{each:02}" for span, letter in _SECTIONS if letter == code for each in span)


def covers(code: str, ssic: Iterable[str]) -> bool:
    """Whether one of a company's codes is within an industry."""
    return any(each.startswith(prefixes(code)) for each in ssic)


def lineage(code: str) -> list[Industry]:
    """The entries that a code is within, the section first. Empty if it is no code."""
    table = _by_code()
    if not _CODE.fullmatch(code) or code.isalpha():
        return [table[code]] if code in table else []
    section = [letter for span, letter in _SECTIONS if int(code[:2]) in span]
    digits = [code[:length] for length in range(2, len(code) + 1)]
    return [table[each] for each in (*section, *digits) if each in table]


def title(code: str) -> str:
    """What a code is, by the narrowest entry known; empty if it is no code."""
    entries = lineage(code)
    return entries[-1].title if entries else ""


def normal(code: str) -> str:
    """A code of the register's files with all its five digits; empty if it is none.

    Spreadsheets take leading zeros off, and put decimals on.
    """
    digits = code.strip().removesuffix(".0")
    full = digits.zfill(5)
    return full if digits.isascii() and digits.isdigit() and len(full) == 5 and title(full) else ""


@cache
def industries() -> tuple[Industry, ...]:
    """The whole table."""
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
    said = _phrases_of(words)
    found = [match for entry in industries() if (match := _match(entry, words, said))]
    return tuple(sorted(found, key=lambda match: (-match.score, -len(match.code), match.code)))


def _match(entry: Industry, words: Words, said: Counter[Words]) -> Match | None:
    score, because = max((_score(phrase, words, said), as_is) for phrase, as_is in entry.phrases)
    return Match(entry.code, entry.title, score, because) if score >= MINIMUM else None


def _score(phrase: Words, words: Words, said: Counter[Words]) -> float:
    if phrase == words:
        return WHOLE
    telling, asked = _telling(phrase), _telling(words)
    if not telling or not asked:
        return 0.0
    if said[phrase]:
        surety = PHRASE if len(telling) > 1 else WORD
        return round(surety + 0.05 * len(telling) / len(asked), 3)
    return round(PART * len(telling & asked) / max(len(telling), len(asked)), 3)


def _telling(words: Words) -> set[str]:
    return set(words) - _FILLERS


def _phrases_of(words: Words) -> Counter[Words]:
    """How often each sequence of up to six words is in a text."""
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
