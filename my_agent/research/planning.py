"""The plan: queries, target sources and quality thresholds. Without a model, from the words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from my_agent.research.text import STOPWORDS, cut, listed, stem, tokens

MAX_QUERY = 200
SOURCES = ("corpus", "rss", "web")
_ASPECTS = ("features", "competitors alternatives", "pricing", "review problems", "market plans")
# Words of a question that do not name what it is about.
# fmt: off
_GENERIC = frozenset(stem(word) for word in listed(
    "what which how why when where who much many does should please tell about research "
    "product products market analysis analyse analyze report compare comparison versus vs "
    "feature features price prices pricing cost costs competitor competitors alternative "
    "alternatives strength strengths weakness weaknesses opportunity opportunities threat "
    "threats swot review reviews best good better find give show me us know want need "
    "overview summary summarize company difference differences between main key latest new "
    "current make makes use used"
))
# fmt: on


@dataclass(frozen=True)
class Plan:
    """What the searcher, the extractor and the quality checks work by.

    Attributes:
        queries: what to search for.
        sources: kinds of sources that the plan expects results from.
        min_results: number of results below which the search is repeated.
        min_pages: number of readable pages below which the search is repeated.
        min_quality: quality of a result below which it is read last.
    """

    queries: tuple[str, ...]
    sources: tuple[str, ...] = SOURCES
    min_results: int = 3
    min_pages: int = 2
    min_quality: float = 0.3


def subject(question: str) -> list[str]:
    """Return the words that name what a question is about, in its order and spelling."""
    found = [
        token.raw
        for token in tokens(question)
        if token.kind in ("name", "word", "number") and token.form not in _GENERIC
    ]
    return list(dict.fromkeys(found))


def subject_forms(question: str) -> set[str]:
    """Return the forms of the names of a question; without names, of `subject`; or of all words."""
    every = [token for token in tokens(question) if token.kind in ("name", "word", "number")]
    found = [token for token in every if token.form not in _GENERIC]
    # A question that names a product is about the product, whatever else it asks.
    chosen = [token for token in found if token.kind == "name"] or found or every
    return {token.form for token in chosen}


def by_words(question: str, most: int) -> Plan:
    """Return a plan without a model: the question, and its subject with each aspect.

    Args:
        question: the question.
        most: maximum number of queries.
    """
    about = " ".join(subject(question)[:8]) or cut(question, MAX_QUERY)
    return Plan(queries=cleaned([question, *(f"{about} {each}" for each in _ASPECTS)], most))


def wider(question: str, tried: Iterable[str], most: int) -> tuple[str, ...]:
    """Return queries that were not tried yet: the subject alone, its pairs and its words.

    Args:
        question: the question.
        tried: queries so far.
        most: maximum number of queries.
    """
    named = [each for each in subject(question) if each.lower() not in STOPWORDS]
    pairs = [f"{one} {two}" for one, two in pairwise(named)]
    before = {each.lower() for each in tried}
    options = cleaned([" ".join(named), *pairs, *named], most + len(before))
    return tuple(each for each in options if each.lower() not in before)[:most]


def cleaned(queries: Iterable[str], most: int) -> tuple[str, ...]:
    """Return different queries of one line each, without operators of search engines."""
    found: dict[str, str] = {}
    for each in queries:
        line = re.sub(r"[\x00-\x1f\x7f]+|\b\w+:(?=\S)|https?://\S*", " ", each)
        line = cut(line.rstrip(" ?!."), MAX_QUERY)
        if re.search(r"\w", line):
            found.setdefault(line.lower(), line)
    return tuple(found.values())[:most]


def is_about(text: str, wanted: set[str], forms: Sequence[str] | set[str]) -> bool:
    """Return whether a text speaks about the subject: it has at least half of its words."""
    if not wanted:
        return bool(text)
    return 2 * len(wanted & set(forms)) >= len(wanted)


def content_forms(text: str) -> set[str]:
    """Return the forms of the words and numbers of a text."""
    return {token.form for token in tokens(text) if token.kind in ("name", "word", "number")}
