"""Root: what a checkpoint's row holds instead of a long value."""

import zlib
from typing import NamedTuple

import ormsgpack
from xxhash import xxh3_128_digest

from langgraph_runtime_sql.errors import RuntimeSqlError

KIND_SUFFIX = "+parts"
_FORMAT = 1


class DamagedCheckpoint(RuntimeSqlError):
    """A value of a checkpoint cannot be put together from its parts."""


class Place(NamedTuple):
    """The checkpoint that stored a value."""

    checkpoint_ns: str
    checkpoint_id: str


class Reference(NamedTuple):
    """A tree of parts."""

    depth: int
    id: bytes


class Root(NamedTuple):
    """A long value: its hash, the checkpoint that stored it, and its bytes and trees in order."""

    digest: bytes
    place: Place
    items: list[bytes | Reference]

    def packed(self) -> bytes:
        """Return the bytes to store."""
        items = [list(each) if isinstance(each, Reference) else each for each in self.items]
        return ormsgpack.packb(
            [_FORMAT, self.digest, list(self.place), *squeezed(ormsgpack.packb(items))]
        )


def squeezed(data: bytes) -> tuple[bytes, bool]:
    """Return `data` compressed and True, or as it is and False if that is not longer."""
    smaller = zlib.compress(data, 1)
    return (smaller, True) if len(smaller) < len(data) else (data, False)


def unpacked(data: bytes, thread_id: str) -> Root:
    """Return the root in stored bytes.

    Raises:
        DamagedCheckpoint: they are not a root.
    """
    try:
        found, digest, place, packed, is_squeezed = ormsgpack.unpackb(data)
        if found != _FORMAT:
            raise ValueError(f"unknown format {found!r}")
        items = ormsgpack.unpackb(zlib.decompress(packed) if is_squeezed else packed)
        return Root(
            digest, Place(*place), [e if isinstance(e, bytes) else Reference(*e) for e in items]
        )
    except (TypeError, ValueError, zlib.error) as error:
        raise DamagedCheckpoint(
            f"A value of a checkpoint of thread {thread_id} is damaged: {error}"
        ) from error


def digest(data: bytes) -> bytes:
    """Return the hash of a whole value, which is compared when it is read.

    It finds damage and collisions among the parts' hashes. Against intent, those are the defence.
    """
    return xxh3_128_digest(data)
