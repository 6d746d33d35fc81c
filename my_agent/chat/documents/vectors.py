"""Vectors: find the passages nearest in meaning to a question, even if they share no word.

Memory holds one bit for each dimension of a vector: the sign of its distance from the mean. The
passages with the most equal bits are compared again by their exact vectors from the database. The
bits are read once, and then only those of new passages.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection

from my_agent import embedding
from my_agent.chat.documents import index
from my_agent.chat.documents.index import Block
from my_agent.embedding import Vectors
from threadhold.tables import SHARED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Bits: TypeAlias = "NDArray[np.uint64]"

# Words of 64 bits for each vector.
_LANES = embedding.DIMENSIONS // 64
BYTES = _LANES * 8 + 8
"""Memory of a passage: its bits and its id."""
RESCORED = 500
"""Number of passages whose exact vectors are compared."""
# Share of deleted passages among those in memory after which all are read again.
_STALE = 0.1


@dataclass(frozen=True)
class Held:
    """The bits of a tenant's own passages. It never changes: updates make a new one.

    Attributes:
        version: version of the tenant's index.
        ids: ids of the passages, ascending.
        lanes: bits, an array for each 64 dimensions.
        mean: the vector that the signs are relative to.
    """

    version: str
    ids: Ints
    lanes: tuple[Bits, ...]
    mean: Vectors

    @property
    def bytes(self) -> int:
        """Return the memory of the bits and ids in bytes."""
        return len(self.ids) * BYTES

    def alike(self, question: Vectors, most: int) -> Sequence[int]:
        """Return the ids of the passages with the most bits of the question, in any order."""
        import numpy as np

        if len(self.ids) <= most:
            return [int(each) for each in self.ids]
        asked = _bits(question[None, :], self.mean)
        different = np.zeros(len(self.ids), np.uint16)
        for lane, bits in zip(self.lanes, asked, strict=True):
            different += np.bitwise_count(lane ^ bits[0])
        return [int(each) for each in self.ids[np.argpartition(different, most)[:most]]]


class VectorCache:
    """Cache of the bits of the tenants that asked most recently.

    Args:
        max_bytes: total size. The vectors of a tenant with more passages than that are read for
            each question.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._reading: dict[str, Lock] = {}
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Return the size of the cache in bytes."""
        return sum(held.bytes for held in self._held.values())

    def find(self, connection: Connection, tenant: str) -> Held | None:
        """Return the bits of a tenant's passages, up to date; None if they do not fit."""
        version = index.version(connection, tenant)
        if version is None:
            return _empty()
        with self._lock:
            reading = self._reading.setdefault(tenant, Lock())
        # Concurrent questions of a tenant share one read. Other tenants do not wait for it.
        with reading:
            with self._lock:
                held = self._held.get(tenant)
            if held is None or held.version != version:
                held = self._read(connection, tenant, version, held)
            with self._lock:
                self._held.pop(tenant, None)
                if held is not None:
                    self._held[tenant] = held
                while self.bytes > self.max_bytes:
                    self._held.popitem(last=False)
            return held

    def _read(
        self, connection: Connection, tenant: str, version: str, held: Held | None
    ) -> Held | None:
        """Return the bits with those of new passages. Deleted ones stay until there are many."""
        size = index.size(connection, tenant)
        if size * BYTES > self.max_bytes:
            return None
        held = _grown(connection, tenant, version, held or _empty())
        if len(held.ids) - size > _STALE * size:
            held = _grown(connection, tenant, version, _empty())
        return held


def nearest(
    connection: Connection, cache: VectorCache, question: Vectors, tenant: str, most: int
) -> list[int]:
    """Return ids of the passages nearest to a question's vector, nearest first.

    Args:
        connection: in a transaction of the tenant.
        cache: the vectors of recent tenants.
        question: the vector of the question.
        tenant: the tenant whose passages are searched, besides the shared ones.
        most: maximum number of ids.
    """
    best: list[tuple[float, int]] = []
    for each in dict.fromkeys((tenant, SHARED)):
        held = cache.find(connection, each)
        blocks: Iterable[Block]
        if held is None:
            blocks = index.blocks(connection, each)
        else:
            alike = held.alike(question, max(most, RESCORED))
            blocks = index.exact(connection, each, alike)
        for ids, vectors in blocks:
            best = sorted([*best, *_best(ids, vectors @ question, most)], reverse=True)[:most]
    return [passage for _, passage in best]


def _grown(connection: Connection, tenant: str, version: str, held: Held) -> Held:
    """Return the bits with those of the passages behind the last id.

    Later changes of a tenant have higher ids, because they wait for each other.
    """
    import numpy as np

    ids, lanes = [held.ids], [[lane] for lane in held.lanes]
    mean = held.mean
    last = int(held.ids[-1]) if len(held.ids) else 0
    for new, vectors in index.blocks(connection, tenant, after=last):
        if not len(held.ids) and len(ids) == 1:
            mean = vectors.mean(axis=0)
        ids.append(np.array(new, np.int64))
        for lane, bits in zip(lanes, _bits(vectors, mean), strict=True):
            lane.append(bits)
    return Held(version, np.concatenate(ids), tuple(map(np.concatenate, lanes)), mean)


def _empty() -> Held:
    import numpy as np

    none = np.zeros(0, np.uint64)
    return Held("", np.zeros(0, np.int64), (none,) * _LANES, np.zeros(embedding.DIMENSIONS, "f4"))


def _bits(vectors: Vectors, mean: Vectors) -> list[Any]:
    """Return the signs of vectors, an array of 64-bit words for each 64 dimensions."""
    import numpy as np

    packed = np.packbits(vectors > mean, axis=1).view(np.uint64)
    return [np.ascontiguousarray(packed[:, lane]) for lane in range(_LANES)]


def _best(ids: Sequence[int], scores: Vectors, most: int) -> list[tuple[float, int]]:
    import numpy as np

    count = min(most, len(ids))
    chosen = np.argpartition(scores, -count)[-count:]
    return [(float(scores[place]), ids[place]) for place in chosen]
