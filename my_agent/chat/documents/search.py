"""Search: find the passages that answer a question, by words and by meaning."""

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sqlalchemy import Connection

from my_agent import embedding
from my_agent.chat.documents import index, keywords, vectors
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.vectors import VectorCache
from my_agent.chat.settings import ChatSettings
from my_agent.database import database
from my_agent.turns import Turns

# Reciprocal rank fusion: a passage scores weight / (SMOOTHING + rank) in each list. With a small
# value, the first place in one list beats low places in both.
SMOOTHING = 5
# Weight of the keyword list: questions seldom use the words of the text. Both values score best in
# `python -m bench.retrieval`.
WORDS = 0.5
# Length of each list, so that a passage that is good in both can win.
DEPTH = 30
# Seconds that a question waits for its vector, with its wait for other tenants.
SECONDS = 20.0

logger = logging.getLogger(__name__)
# The model computes one question at a time.
_turns = Turns("embedding")


def fuse(by_words: Sequence[int], by_meaning: Sequence[int]) -> list[int]:
    """Merge two ranked lists of ids by reciprocal rank fusion; ties keep their order.

    Args:
        by_words: ids from the keyword search, best first.
        by_meaning: ids from the vector search, best first.
    """
    worth: dict[int, float] = {}
    for ids, weight in ((by_meaning, 1.0), (by_words, WORDS)):
        for place, each in enumerate(ids, 1):
            worth[each] = worth.get(each, 0.0) + weight / (SMOOTHING + place)
    return sorted(worth, key=lambda each: -worth[each])


def has_documents(tenant: str) -> bool:
    """Return whether a tenant can read any document. Blocks."""
    with database().read(tenant) as connection:
        return not index.is_empty(connection, tenant)


def search(question: str, tenant: str) -> list[Passage]:
    """Return the passages that match a question best, best first. Blocks.

    Args:
        question: any text; an empty one finds nothing.
        tenant: the tenant whose documents are searched, besides the shared ones.
    """
    settings = ChatSettings.from_environment()
    if not question.strip() or not has_documents(tenant):
        return []
    # Outside the transaction: embedding takes longer than all the rest.
    vector = _embedded(question, tenant)
    cache = _cache(settings.vector_cache_bytes)
    with database().read(tenant) as connection:
        near: Sequence[int] = ()
        if vector is not None:
            near = vectors.nearest(connection, cache, vector, tenant, DEPTH)
        named = keywords.find(connection, question, tenant, DEPTH)
        return _passages(connection, tenant, fuse(named, near), settings.passages)


def _embedded(question: str, tenant: str) -> "embedding.Vectors | None":
    """Return the vector of a question; None if it was not the tenant's turn within `SECONDS`."""
    future = _turns.submit(tenant, lambda: embedding.of_question(question))
    try:
        return future.result(SECONDS)
    except TimeoutError:
        # A long backlog must not delay the answer for ever.
        future.cancel()
        logger.warning("Embedding a question took too long; searched by words only")
        return None


def _passages(connection: Connection, tenant: str, ids: Sequence[int], most: int) -> list[Passage]:
    found = index.fetch(connection, tenant, ids)
    return _different(found[each] for each in ids if each in found)[:most]


def _different(passages: Iterable[Passage]) -> list[Passage]:
    """Drop passages with equal text: a tenant may own a copy of a shared document."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())


@lru_cache(maxsize=1)
def _cache(max_bytes: int) -> VectorCache:
    return VectorCache(max_bytes)
