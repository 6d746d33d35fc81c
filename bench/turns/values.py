"""Values: compare what a turn gives with what is stored. Pure functions."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from my_agent.icp_finder.model import SIZES
from my_agent.understanding.places import in_english
from my_agent.web.sites import domain

_RANGE = re.compile(r"(\d+)\s*(?:-|\u2013|to|bis|a|até)\s*(\d+)|(\d+)\s*(\+?)")
# More people than any company has.
_MANY = 10**9
FURTHER_WORDS = 1


def folded(text: str) -> str:
    """Return the words of a text, without case, accents and signs. Countries are in English."""
    plain = unicodedata.normalize("NFKD", in_english(text).casefold())
    kept = "".join(each for each in plain if not unicodedata.combining(each))
    return " ".join(re.findall(r"\w+", kept))


def alike(stored: str, wanted: str) -> bool:
    """Return whether a stored value is a wanted one: they are equal, or one contains the other.

    A stored value that has several words more is a piece of the message rather than a value.
    """
    got, asked = folded(stored), folded(wanted)
    if not got or not asked:
        return False
    is_within = asked in got and len(got.split()) <= len(asked.split()) + FURTHER_WORDS
    return is_within or got in asked


def has(stored: Iterable[str], wanted: str) -> bool:
    """Return whether a value is among stored ones."""
    return any(alike(value, wanted) for value in stored)


def site(text: str) -> str:
    """Return the domain in a text, or else its words."""
    try:
        return domain(text)
    except ValueError:
        return folded(text)


def has_site(domains: Collection[str], wanted: str) -> bool:
    """Return whether a company is among websites, by its domain or by a name in one."""
    name = site(wanted)
    if "." in name:
        return name in domains
    return any(name.replace(" ", "") in each.replace("-", "") for each in domains)


def touched(size: str) -> frozenset[str]:
    """Return the stored ranges that a size overlaps."""
    low, high = _bounds(size)
    return frozenset(each for each in SIZES if _bounds(each)[0] <= high and low <= _bounds(each)[1])


def covered(size: str) -> frozenset[str]:
    """Return the stored ranges that lie within a size."""
    low, high = _bounds(size)
    return frozenset(each for each in SIZES if low <= _bounds(each)[0] and _bounds(each)[1] <= high)


def ranges(sizes: Iterable[str]) -> frozenset[str]:
    """Return the stored ranges that any of several sizes overlaps."""
    return frozenset[str]().union(*map(touched, sizes))


def same_sizes(stored: Iterable[str], wanted: Sequence[str]) -> bool:
    """Return whether stored sizes are those that a person wants.

    A range that the wanted one merely overlaps may be stored or not.
    """
    got, most = ranges(stored), ranges(wanted)
    if not most:
        # In words, such as `small`.
        return bool(got)
    least = frozenset[str]().union(*map(covered, wanted)) or most
    return least <= got <= most


def as_stored(sizes: Iterable[str]) -> list[str]:
    """Return sizes as ranges that are stored."""
    found = {each for size in sizes for each in covered(size) or touched(size)}
    return [each for each in SIZES if each in found]


def _bounds(size: str) -> tuple[int, int]:
    found = _RANGE.search(size)
    if found is None:
        return _MANY + 1, 0
    if found[1]:
        return int(found[1]), int(found[2])
    return int(found[3]), _MANY if found[4] else int(found[3])
