"""Search: the passages that a question is about, found by words and by meaning."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sqlalchemy import Connection

from my_agent.chat.documents import embedding, index, keywords, vectors
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.vectors import VectorCache
from my_agent.chat.settings import ChatSettings
from my_agent.database import database

# How far down a list still counts: what is first in one of two lists is above what is
# far down in both.
SMOOTHING = 5
# A place in the list by words counts half: they are seldom those of the text. Both figures are
# those with which `python -m bench.retrieval` finds most.
WORDS = 0.5
# Of each list, so that a passage that is good in both shows.
DEPTH = 30


def fuse(by_words: Sequence[int], by_meaning: Sequence[int]) -> list[int]:
    """One list of two, by the sum of what each place in them is worth; equals in their order."""
    worth: dict[int, float] = {}
    for ids, weight in ((by_meaning, 1.0), (by_words, WORDS)):
        for place, each in enumerate(ids, 1):
            worth[each] = worth.get(each, 0.0) + weight / (SMOOTHING + place)
    return sorted(worth, key=lambda each: -worth[each])


def has_documents(tenant: str) -> bool:
    """Whether a tenant may read any document. Blocks."""
    with database().read(tenant) as connection:
        return not index.is_empty(connection, tenant)


def search(question: str, tenant: str) -> list[Passage]:
    """The passages that say most about a question, the best first. Blocks.

    Args:
        question: any text; without one nothing is found.
        tenant: whose documents are searched, beside the shared ones.
    """
    settings = ChatSettings.from_environment()
    if not question.strip() or not has_documents(tenant):
        return []
    # Before the transaction: it takes longer than all the rest.
    vector = embedding.of_question(question)
    cache = _cache(settings.vector_cache_bytes)
    with database().read(tenant) as connection:
        near = vectors.nearest(connection, cache, vector, tenant, DEPTH)
        named = keywords.find(connection, question, tenant, DEPTH)
        return _passages(connection, tenant, fuse(named, near), settings.passages)


def _passages(connection: Connection, tenant: str, ids: Sequence[int], most: int) -> list[Passage]:
    found = index.fetch(connection, tenant, ids)
    return _different(found[each] for each in ids if each in found)[:most]


def _different(passages: Iterable[Passage]) -> list[Passage]:
    """Each text once: a tenant may have a document that is shared, too."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())


@lru_cache(maxsize=1)
def _cache(most_bytes: int) -> VectorCache:
    return VectorCache(most_bytes)
