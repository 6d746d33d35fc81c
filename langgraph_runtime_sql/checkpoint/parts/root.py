"""Root: what a checkpoint's row holds instead of a long value."""

from typing import NamedTuple

import ormsgpack
from xxhash import xxh3_128_digest

from langgraph_runtime_sql.checkpoint import compression
from langgraph_runtime_sql.errors import DamagedCheckpoint

KIND_SUFFIX = "+parts"
_FORMAT = 1


class Place(NamedTuple):
    """The checkpoint that stored a value."""

    checkpoint_ns: str
    checkpoint_id: str


class Reference(NamedTuple):
    """A tree of parts, or several of the same depth next to each other.

    Attributes:
        depth: The levels of nodes above the leaves; 0 if the ids are those of leaves.
        ids: The ids of their tops, joined.
    """

    depth: int
    ids: bytes


class Root(NamedTuple):
    """A long value: its hash, the checkpoint that stored it, and its bytes and trees in order."""

    digest: bytes
    place: Place
    items: list[bytes | Reference]

    def packed(self) -> bytes:
        """Return the bytes to store."""
        items = [list(each) if isinstance(each, Reference) else each for each in self.items]
        plain = ormsgpack.packb(items)
        smaller = compression.squeezed(plain)
        rest = (plain, False) if smaller is None else (smaller, True)
        return ormsgpack.packb([_FORMAT, self.digest, list(self.place), *rest])


def unpacked(data: bytes, thread_id: str) -> Root:
    """Return the root in stored bytes.

    Raises:
        DamagedCheckpoint: they are not a root.
    """
    try:
        found, digest, place, packed, is_squeezed = ormsgpack.unpackb(data)
        if found != _FORMAT:
            raise ValueError(f"unknown format {found!r}")
        items = ormsgpack.unpackb(compression.expanded(packed) if is_squeezed else packed)
        return Root(
            digest, Place(*place), [e if isinstance(e, bytes) else Reference(*e) for e in items]
        )
    except (TypeError, ValueError) as error:
        raise DamagedCheckpoint(
            f"A value of a checkpoint of thread {thread_id} is damaged: {error}"
        ) from error


def digest(data: bytes) -> bytes:
    """Return the hash of a whole value, which is compared when it is read.

    It finds damage and collisions among the parts' hashes. Against intent, those are the defence.
    """
    return xxh3_128_digest(data)
