"""Vectors: passages that mean what a question means, whatever words they use."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from sqlalchemy import Connection

from my_agent.chat.documents import embedding, index
from my_agent.chat.documents.embedding import Vectors
from my_agent.chat.documents.index import Block
from my_agent.chat.tables import SHARED

BYTES = embedding.DIMENSIONS * 4


class VectorCache:
    """The vectors of the tenants who asked last, as long as their indexes stay as they are.

    Args:
        most_bytes: what they take together; a tenant's that are more are read for each question.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[str, tuple[str, list[Block]]] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """What is held."""
        return sum(_bytes(held) for _, held in self._held.values())

    def blocks(self, connection: Connection, tenant: str) -> Iterable[Block]:
        """Ids and vectors of a tenant's own passages."""
        version = index.version(connection, tenant)
        if version is None:
            return []
        # One reads while others wait for what is read.
        with self._lock:
            found = self._held.get(tenant)
            if found is not None and found[0] == version:
                self._held.move_to_end(tenant)
                return found[1]
            self._held.pop(tenant, None)
            if index.size(connection, tenant) * BYTES > self.most_bytes:
                return index.blocks(connection, tenant)
            read = list(index.blocks(connection, tenant))
            self._held[tenant] = version, read
            while self.bytes > self.most_bytes:
                self._held.popitem(last=False)
            return read


def nearest(
    connection: Connection, cache: VectorCache, question: Vectors, tenant: str, most: int
) -> list[int]:
    """Ids of the passages nearest to a question's vector, the nearest first.

    Args:
        tenant: whose passages count, beside the shared ones.
        most: so many at most.
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
