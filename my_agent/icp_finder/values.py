"""Values of an ideal customer profile: split, normalize and merge them. Pure functions."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from my_agent.icp_finder.model import SIZES, Icp
from my_agent.understanding import names, ranges
from my_agent.understanding.words import word_set

FIELDS = ("industries", "sizes", "regions", "keywords", "exclusions")
MOST, LENGTH = 12, 80
_LABELS = {
    "industries": "industr(?:y|ies)|sectors?|verticals?|branchen?|setor(?:es)?|indústrias?",
    "sizes": "(?:company )?sizes?|employees|head ?count|größen?|mitarbeiter|tamanhos?|empregados|funcionários",
    "regions": "regions?|countr(?:y|ies)|locations?|markets?|region(?:en)?|länder|regi(?:ão|ões)|país(?:es)?",
    "keywords": "keywords?|stichw(?:ort|orte|örter)|palavras?-chave",
    "exclusions": "exclusions?|exclude|not|ausschlüsse|ohne|exclusões|sem",
}
_ANY_LABEL = "|".join(f"(?P<{name}>{words})" for name, words in _LABELS.items())
_LABEL = re.compile(rf"\s*(?:{_ANY_LABEL})\s*[:=]\s*", re.IGNORECASE)
_FORM = re.compile(r'[A-Z][a-z]+: (?:any|"[^"]{1,200}"(?:, "[^"]{1,200}")*)')
_SEPARATOR = re.compile(r"[,;/|•\n]|\b(?:and|und|e)\b|&", re.IGNORECASE)
# Values in quotes may contain separators.
_QUOTED = re.compile(r'"([^"\n]*)"')
_ANY = word_set("any all none everywhere anything - alle egal qualquer todos todas")


def labelled(text: str) -> dict[str, list[str]] | None:
    """Read a text that is all labels and values, such as `industries: food; regions: Singapore`.

    Returns:
        The fields, an empty list for `any`; None if any part has no label.
    """
    found: dict[str, list[str]] = {}
    for part in re.split(r"[;\n]", text):
        if not part.strip():
            continue
        label = _LABEL.match(part)
        if label is None:
            return None
        name = next(each for each in FIELDS if label[each])
        found[name] = split(name, part[label.end() :])
    return found or None


def is_form(text: str) -> bool:
    """Return whether a text is a form that a page has filled in: labels, with every value in quotes."""
    parts = [part for part in text.split("\n") if part.strip()]
    return bool(parts) and all(_FORM.fullmatch(part.strip()) for part in parts)


def split(field: str, text: str) -> list[str]:
    """Split the value of a field into a list; `any` gives an empty list. A value in quotes stays whole."""
    if text.strip(" .!").lower() in _ANY:
        return []
    quoted = _QUOTED.findall(text)
    rest = (
        _SEPARATOR.split(ranges.THOUSANDS.sub("", _QUOTED.sub(",", text)))
        if field != "sizes"
        else [text]
    )
    return clean(field, [*quoted, *rest])


def clean(field: str, words: Iterable[str]) -> list[str]:
    """Normalize the values of a field, each once, and drop invalid ones."""
    if field == "sizes":
        return _sizes(words)
    tidy = (" ".join(word.split()).strip(" .:!?\"'") for word in words)
    unique = {word.casefold(): word for word in tidy if 1 < len(word) <= LENGTH}
    return list(unique.values())[:MOST]


def merged(icp: Icp | None, given: Mapping[str, list[str]]) -> Icp:
    """Return the ICP with the given fields replaced."""
    old: Any = icp or {"industries": [], "sizes": [], "regions": [], "keywords": []}
    new: Any = {**old, **given}
    if not new.get("exclusions"):
        # Profiles that exclude nothing are as they were before there were exclusions.
        new.pop("exclusions", None)
    return cast("Icp", new)


def of(icp: Icp | None, field: str) -> list[str]:
    """Return the values of a field."""
    every: Mapping[str, Any] = icp or {}
    return list(every.get(field) or [])


def given(icp: Icp) -> dict[str, list[str]]:
    """Return the ICP fields that are not empty, that is, not `any`."""
    return {field: values for field in FIELDS if (values := of(icp, field))}


def _sizes(words: Iterable[str]) -> list[str]:
    """Return the ranges of `SIZES` that overlap the given numbers of employees."""
    given = [each for word in words for each in ranges.found(word)]
    return [size for size in SIZES if any(touches(size, low, high) for low, high in given)]


def touches(size: str, low: int, high: int) -> bool:
    """Return whether one of `SIZES` overlaps a range of numbers, or contains its only one."""
    first, _, last = size.rstrip("+").partition("-")
    top = int(last) if last else ranges.TOP
    return int(first) <= low <= top if low == high else low < top and high > int(first)


def is_same(said: str, stored: str) -> bool:
    """Return whether words name a stored value: `food` means `Food distribution`."""
    mine, own = _significant(said), _significant(stored)
    return bool(mine) and bool(own) and (mine <= own or own <= mine)


def _significant(text: str) -> set[str]:
    left_out = ("of", "and", "the", "in", "und", "e", "de")
    return {word.removesuffix("s") for word in names.fold(text).split() if word not in left_out}
