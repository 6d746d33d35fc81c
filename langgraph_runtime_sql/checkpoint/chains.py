"""Chains: each version of a state is stored once, as a patch against one of its ancestors.

The version at position i in a line of ancestors is patched against position i - 16**k, where 16**k is
the largest power of 16 that divides i. So no stored row changes when another one is added, a read
decodes at most 15 patches for each power, and the base is always in the chain of the parent, which
whoever writes has just read. The idea is Subversion's, which takes 2 instead of 16.
"""

from collections.abc import Iterable
from typing import NamedTuple

from langgraph_runtime_sql import patches

RADIX = 16
# Bytes that a read decodes beside the value itself. A version behind more is stored whole.
MOST_DECODED = 64 * 2**20
# Bytes of a line in memory, beside its newest version.
MOST_KEPT = 16 * 2**20
# Shorter values are stored as they are. Compressing one would let another thread of the process run,
# and the event loop would wait for it.
LONG = 2048
# The level of position 0, which every power divides.
TOP = 64
# A patch of this part of the bytes or less is surely smaller than the bytes alone.
_SURELY = 1 / 4


class Version(NamedTuple):
    """A version of a state.

    Attributes:
        id: Its checkpoint.
        position: The number of its ancestors.
        plain: Its bytes.
        behind: The bytes of the versions that are decoded before it.
    """

    id: str
    position: int
    plain: bytes
    behind: int


Line = tuple[Version, ...]
"""The versions of a line that the next ones may be patched against, the newest first."""


class Packed(NamedTuple):
    """A version as it is stored: the id of its base, the ending of its type, and its bytes."""

    base: str | None
    suffix: str
    data: bytes


def line_of(chain: Iterable[Version]) -> Line:
    """Return what later versions need of a chain, which is given with the newest first.

    Of long versions that is less: then later ones are patched against the oldest one that is left.
    """
    found: list[Version] = []
    level, size = -1, 0
    for each in chain:
        if (its := _level(each.position)) > level:
            if found and (size := size + len(each.plain)) > MOST_KEPT:
                break
            found.append(each)
            level = its
    return tuple(found)


def extended(line: Line, version: Version) -> Line:
    """Return the line after a further version of it."""
    return line_of((version, *line))


def add(line: Line, checkpoint_id: str, plain: bytes) -> tuple[Version, Packed]:
    """Return the next version of a line, and how it is stored.

    Args:
        line: The line of its parent; empty without one.
        checkpoint_id: Its checkpoint.
        plain: Its bytes.
    """
    position = line[0].position + 1 if line else 0
    base, packed = pack(plain, _base(line, position))
    behind = 0 if base is None else base.behind + len(base.plain)
    return Version(checkpoint_id, position, plain, behind), packed


def pack(plain: bytes, base: Version | None) -> tuple[Version | None, Packed]:
    """Return how bytes are stored, and the base if it is used."""
    if len(plain) < LONG:
        return None, Packed(None, "", plain)
    if base is None or base.behind + len(base.plain) > MOST_DECODED:
        return None, Packed(None, patches.WHOLE, patches.whole(plain))
    patch = patches.patch(plain, base.plain)
    if len(patch) > len(plain) * _SURELY and len(alone := patches.whole(plain)) <= len(patch):
        return None, Packed(None, patches.WHOLE, alone)
    return base, Packed(base.id, patches.PATCH, patch)


def _base(line: Line, position: int) -> Version | None:
    """Return the version that a position is patched against.

    If deletions have left none at its place, that is the oldest one.
    """
    before = position - RADIX ** _level(position)
    return next((each for each in line if each.position <= before), line[-1] if line else None)


def _level(position: int) -> int:
    """Return the largest k so that 16**k divides a position."""
    if position == 0:
        return TOP
    level = 0
    while position % RADIX == 0:
        position //= RADIX
        level += 1
    return level
