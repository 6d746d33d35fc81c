"""Names: resolve what a person calls a listed item. Pure functions.

A name counts exactly, then by its words, then by its spelling if no other is nearly as close. Two
candidates are none: the person is asked.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rapidfuzz import fuzz

from my_agent.understanding.words import ORDINALS, word_set

# Likeness of spelling, from 0 to 100, at which two names may be the same, and its lead over the next.
ALIKE, MARGIN = 84, 8
# `1,000` is neither 1 nor a list.
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")
# Legal forms and words that name no company on their own.
_FORMS = word_set(
    "gmbh kg ag ug ohg ltd limited llc inc co corp corporation pte sdn bhd plc sa lda ltda eireli me sarl srl bv nv"
    " the die der das den dem a o os as la le el and und e of company firma empresa companhia"
)


@dataclass(frozen=True)
class Listed:
    """An item that a person can name.

    Attributes:
        key: identifies the item.
        name: its name as shown.
        number: its number as shown; 0: it was not shown with one.
        domain: its domain; empty if it has none.
        about: what else a reader sees, such as its industry, or that it is hidden.
    """

    key: str
    name: str
    number: int = 0
    domain: str = ""
    about: str = ""


@dataclass(frozen=True)
class Resolved:
    """What some targets resolve to.

    Attributes:
        keys: the items, in the order of the targets.
        unknown: the targets that name no item.
        unclear: the targets that name several, with their names.
        unsaid: the items that a reader named and the quote does not: `the last one`.
    """

    keys: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unclear: dict[str, list[str]] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Return whether every target names one item."""
        return not (self.unknown or self.unclear)


def resolve(targets: Sequence[int | str], quote: str, listed: Sequence[Listed]) -> Resolved:
    """Resolve targets against what is on the table.

    Args:
        targets: numbers and names, as a reader gave them.
        quote: the words that say them. An item that they do not contain is `unsaid`.
        listed: what can be named.
    """
    found = Resolved()
    said = numbers(quote, [each.name for each in listed])
    for target in targets:
        number = _number(target)
        if number is not None and (number in said or isinstance(target, int)):
            # What was shown without a number has 0.
            keys = [each.key for each in listed if number and each.number == number]
            if number not in said:
                found.unsaid.extend(keys)
        else:
            keys = _named(str(target), quote, listed)
            found.unsaid.extend(
                key for key in keys[:1] if not _is_only(key, str(target), quote, listed)
            )
        if not keys:
            # A reader may know which one `the last` is; the person is asked.
            keys = [each.key for each in listed if fold(each.name) == fold(str(target))]
            found.unsaid.extend(keys)
        if len(keys) == 1:
            found.keys.append(keys[0])
        elif keys:
            by_key = {each.key: each.name for each in listed}
            found.unclear[str(target)] = [by_key[key] for key in keys]
        else:
            found.unknown.append(str(target))
    keys = list(dict.fromkeys(found.keys))
    return Resolved(keys, found.unknown, found.unclear, found.unsaid)


def named_in(text: str, listed: Sequence[Listed]) -> list[str]:
    """Return the keys of the items whose number, name without legal form, or domain a text contains."""
    said, around = numbers(text, [each.name for each in listed]), fold(text)
    return [
        each.key
        for each in listed
        if (each.number and each.number in said)
        or (_bare(each.name) and set(_bare(each.name)) <= set(around.split()))
        or (each.domain and fold(each.domain) in around)
    ]


def hinted(text: str, listed: Sequence[Listed]) -> set[str]:
    """Return the keys of the items whose number, or any word of whose name, a text contains."""
    said, around = numbers(text, [each.name for each in listed]), fold(text)
    return {each.key for each in listed if each.number in said or _evidence(each, around)}


def numbers(text: str, names: Sequence[str] = ()) -> list[int]:
    """Return the numbers in a text, with ranges and ordinals, but without those inside names.

    Args:
        text: such as `1, 3 and 5-7` or `the second`.
        names: names that may contain numbers, such as `Studio 54`.
    """
    text = _THOUSANDS.sub(" ", _without_names(text, names))
    found: list[int] = []
    spans = r"(?<![\w.])#?(\d{1,4})(?:\.|st|nd|rd|th|º|ª|o|a)?(?:\s*(?:-|\u2013|\bto\b|\bbis\b|\ba\b|\bat[ée]\b|\bthrough\b)\s*#?(\d{1,4}))?(?![\w%])(?!\.\d)"
    for match in re.finditer(spans, text, re.IGNORECASE):
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        found += range(first, last + 1) if first <= last <= first + 1000 else [first, last]
    folded = fold(text).split()
    if len(folded) > 1 and folded[-2].isdigit() and ORDINALS.get(folded[-1]) == 1:
        # `3 first` says when, not which.
        folded.pop()
    found += [ORDINALS[word] for word in folded if word in ORDINALS]
    if first_of := re.search(
        r"\b(?:first|top|best|ersten|besten|primeir[ao]s|melhores) (\w+)", fold(text)
    ):
        count = ORDINALS.get(f"{first_of[1]} of", _count(first_of[1]))
        if count:
            found = [each for each in found if each not in (1, count)]
            found += range(1, count + 1)
    return list(dict.fromkeys(each for each in found if each > 0))


COUNTS = {
    **{str(number): number for number in range(1, 101)},
    **dict(
        zip(
            ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
            range(2, 11),
            strict=True,
        )
    ),
    **dict(
        zip(
            ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"],
            range(2, 11),
            strict=True,
        )
    ),
    **dict(
        zip(
            ["dois", "tres", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez"],
            range(2, 11),
            strict=True,
        )
    ),
    "duas": 2,
    "couple": 2,
}


def is_number(word: str) -> bool:
    """Return whether a word is a number, an ordinal, or a range such as `2-4`."""
    plain = fold(word)
    is_digits = re.fullmatch(r"[#\d\s-]*\d(?:st|nd|rd|th|[ºªoa])?[-]?", word) is not None
    return is_digits or plain in ORDINALS or plain in COUNTS or plain in ("first", "top", "last")


def _count(word: str) -> int:
    return COUNTS.get(word, 0)


def _number(target: int | str) -> int | None:
    if isinstance(target, int):
        return target
    bare = target.strip(" #.")
    return int(bare) if bare.isascii() and bare.isdigit() and len(bare) <= 4 else None


@lru_cache(maxsize=4096)
def fold(text: str) -> str:
    """Return a text in lower case without accents and signs, its words apart by single spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(each for each in plain if not unicodedata.combining(each))
    return " ".join(re.findall(r"[^\W_]+", plain))


def _without_names(text: str, names: Sequence[str]) -> str:
    """Return a text without the names, or beginnings of names, that contain a number."""
    for name in sorted(names, key=len, reverse=True):
        parts = name.split()
        for size in range(len(parts), 0, -1):
            head = " ".join(parts[:size])
            # `7th` or `3` alone may be a number of the list; `Studio 54` and `3M` may not.
            is_number = re.fullmatch(r"#?\d+(?:st|nd|rd|th|\.)?", head) is not None
            digits = re.search(r"\d+", head)
            if digits and digits[0] in text and not is_number:
                pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, head.split())) + r"(?!\w)"
                text = re.sub(pattern, " ", text, flags=re.IGNORECASE)
    return text


def _named(said: str, quote: str, listed: Sequence[Listed]) -> list[str]:
    """Return the keys of the items that a name can mean, as far as the quote contains it."""
    wanted, around = fold(said), fold(quote)
    if not wanted:
        return []
    # A register's number is the end of a key.
    exact = [
        each
        for each in listed
        if wanted in (fold(each.name), fold(each.domain), fold(each.key.partition(":")[2]))
    ]
    if exact and _stands(exact[0], wanted, around):
        return [each.key for each in exact]
    own = [each for each in listed if _bare(each.name) == _bare(said)]
    if own and _stands(own[0], wanted, around):
        return [each.key for each in own]
    part = [each for each in listed if _is_part(_bare(said), each)]
    if part:
        return [each.key for each in part] if _stands(part[0], wanted, around) else []
    rated = sorted(((_likeness(wanted, each), each) for each in listed), key=lambda one: -one[0])
    if not rated or rated[0][0] < ALIKE or not _stands(rated[0][1], wanted, around):
        return []
    return [each.key for rate, each in rated if rate > rated[0][0] - MARGIN]


def _bare(name: str) -> tuple[str, ...]:
    return tuple(word for word in fold(name).split() if word not in _FORMS)


def _is_part(said: tuple[str, ...], item: Listed) -> bool:
    """Return whether words are whole words of a name, such as `Vogel` of `Vogel & Partner`."""
    own = set(_bare(item.name)) | {fold(item.domain).partition(" ")[0]}
    return bool(said) and all(word in own for word in said)


def _likeness(wanted: str, item: Listed) -> float:
    return max(
        fuzz.ratio(wanted, fold(item.name)),
        fuzz.ratio(" ".join(_bare(wanted)), " ".join(_bare(item.name))),
    )


def _stands(item: Listed, wanted: str, around: str) -> bool:
    """Return whether a quote contains a name, a word of it, or its spelling."""
    # Scripts without spaces have no ends of words.
    whole = rf"(?<![0-9a-z]){re.escape(wanted)}(?![0-9a-z])"
    return re.search(whole, around) is not None or bool(_evidence(item, around))


def _evidence(item: Listed, around: str) -> set[str]:
    """Return the words of a quote that may be words of a name."""
    return {
        word
        for word in set(around.split()) - _FORMS
        if any(
            fuzz.ratio(mine, word) >= ALIKE or (len(word) > 3 and mine.startswith(word))
            for mine in _own(item)
        )
    }


def _own(item: Listed) -> list[str]:
    return [word for word in (*_bare(item.name), fold(item.domain).partition(" ")[0]) if word]


def _is_only(key: str, said: str, quote: str, listed: Sequence[Listed]) -> bool:
    """Return whether no other item has the words by which a quote names this one.

    A reader that completes a name, such as `Vogel` of two, has chosen for the person.
    """
    around = fold(quote)
    if set(_bare(said)) <= set(around.split()):
        return True
    evidence = next(_evidence(each, around) for each in listed if each.key == key)
    others = [set(_own(each)) for each in listed if each.key != key]
    return not evidence or not any(evidence <= own for own in others)
