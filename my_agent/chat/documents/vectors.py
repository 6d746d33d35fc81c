"""Vectors: find the passages nearest in meaning to a question, even if they share no word."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from sqlalchemy import Connection

from my_agent import embedding
from my_agent.chat.documents import index
from my_agent.chat.documents.index import Block
from my_agent.chat.tables import SHARED
from my_agent.embedding import Vectors

BYTES = embedding.DIMENSIONS * 4


class VectorCache:
    """Cache of the vectors of the tenants that asked most recently.

    An entry is dropped when the version of the tenant's index changes.

    Args:
        max_bytes: total size of the cached vectors. A tenant with more vectors than that is never
            cached: its vectors are read for each question.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held: OrderedDict[str, tuple[str, list[Block]]] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Return the size of the cached vectors in bytes."""
        return sum(_bytes(held) for _, held in self._held.values())

    def blocks(self, connection: Connection, tenant: str) -> Iterable[Block]:
        """Return ids and vectors of a tenant's own passages, from the cache if possible."""
        version = index.version(connection, tenant)
        if version is None:
            return []
        # The lock is held during the read, so that concurrent questions share one read.
        with self._lock:
            found = self._held.get(tenant)
            if found is not None and found[0] == version:
                self._held.move_to_end(tenant)
                return found[1]
            self._held.pop(tenant, None)
            if index.size(connection, tenant) * BYTES > self.max_bytes:
                return index.blocks(connection, tenant)
            read = list(index.blocks(connection, tenant))
            self._held[tenant] = version, read
            while self.bytes > self.max_bytes:
                self._held.popitem(last=False)
            return read


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
        for ids, vectors in cache.blocks(connection, each):
            best = sorted([*best, *_best(ids, vectors @ question, most)], reverse=True)[:most]
    return [passage for _, passage in best]


def _best(ids: Sequence[int], scores: Vectors, most: int) -> list[tuple[float, int]]:
    import numpy as np

    count = min(most, len(ids))
    chosen = np.argpartition(scores, -count)[-count:]
    return [(float(scores[place]), ids[place]) for place in chosen]


def _bytes(held: Sequence[Block]) -> int:
    return sum(vectors.nbytes for _, vectors in held)
