"""Search: find the passages that answer a question, by words and by meaning."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection

from my_agent import embedding
from my_agent.chat.documents import background, index, keywords, ranking, vectors
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.vectors import VectorCache
from my_agent.chat.documents.words import FUNCTION_WORDS, content_words, fold, words
from my_agent.chat.settings import ChatSettings
from my_agent.tables import tables
from my_agent.turns import TenantThreads

# Length of each list, so that a passage that is good in both can win.
DEPTH = 30
# Seconds that a question waits for its vector, with its wait for other tenants.
SECONDS = 20.0

logger = logging.getLogger(__name__)
# The model computes one question at a time. Short questions do not wait for a row of long ones.
SHORT = 150
_short, _long = TenantThreads("embedding-short"), TenantThreads("embedding-long")


@dataclass(frozen=True)
class Results:
    """What a search found.

    Attributes:
        passages: the passages that may answer, best first; none if none is relevant.
        sure: whether they surely answer.
    """

    passages: list[Passage]
    sure: bool


NOTHING = Results([], sure=False)


def has_documents(tenant: str) -> bool:
    """Return whether a tenant can read any document. Blocks."""
    return not tables.read(lambda connection: index.is_empty(connection, tenant), tenant)


def search(question: str, tenant: str) -> Results:
    """Return the passages that may answer a question. Blocks.

    Args:
        question: any text; an empty one finds nothing.
        tenant: the tenant whose documents are searched, besides the shared ones.
    """
    settings = ChatSettings.from_environment()
    if not question.strip() or not has_documents(tenant):
        return NOTHING
    # Outside the transaction: embedding takes longer than all the rest.
    vector = _embedded(question, tenant)
    cache = _cache(settings.vector_cache_bytes)
    found, held = tables.read(
        lambda connection: candidates(connection, cache, question, vector, tenant), tenant
    )
    # Outside too: the first question of a process waits here for all ordinary questions.
    nearness = {} if vector is None else background.nearness(vector, held)
    ranked = ranking.rank(question, found, nearness, settings.passages)
    if not ranked.words and embedding.is_gibberish(question) and not _has_function_word(question):
        # Keys hit at random are near to something too.
        return NOTHING
    return Results([found[each] for each in ranked.ids], ranked.sure)


def _has_function_word(text: str) -> bool:
    return any(fold(word) in FUNCTION_WORDS for word in words(text))


def _embedded(question: str, tenant: str) -> "embedding.Vectors | None":
    """Return the vector of a question; None if it was not the tenant's turn within `SECONDS`."""
    turns = _short if len(question) <= SHORT else _long
    future = turns.submit(tenant, lambda: embedding.of_question(question))
    try:
        return future.result(SECONDS)
    except TimeoutError:
        # A long backlog must not delay the answer for ever.
        future.cancel()
        logger.warning("Embedding a question took too long; searched by words only")
        return None


def candidates(
    connection: Connection,
    cache: VectorCache,
    question: str,
    vector: "embedding.Vectors | None",
    tenant: str,
) -> tuple[dict[int, Passage], dict[int, "embedding.Vectors"]]:
    """Return the passages that may answer a question, and the vectors of those that have one.

    Names and identifiers are also searched alone: in a long question their passage may come after
    many that share ordinary words.
    """
    ids = dict.fromkeys(keywords.find(connection, question, tenant, DEPTH))
    exact = ranking.exact_words(question)
    if exact and set(exact.split()) != set(content_words(question)):
        ids |= dict.fromkeys(keywords.find(connection, exact, tenant, DEPTH))
    if vector is not None:
        ids |= dict.fromkeys(vectors.nearest(connection, cache, vector, tenant, DEPTH))
    found = _different(index.fetch(connection, tenant, list(ids)))
    held = {} if vector is None else index.vectors_of(connection, tenant, list(found))
    return found, held


def _different(found: Mapping[int, Passage]) -> dict[int, Passage]:
    """Drop copies: a tenant may own a copy of a shared document.

    Equal sentences in two documents both stay.
    """
    first: dict[tuple[str, str, str, int], int] = {}
    for each in sorted(found):
        passage = found[each]
        first.setdefault((passage.title, passage.section, passage.text, passage.number), each)
    return {each: found[each] for each in first.values()}


@lru_cache(maxsize=1)
def _cache(max_bytes: int) -> VectorCache:
    return VectorCache(max_bytes)
