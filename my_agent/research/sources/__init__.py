"""Sources of search results behind one function. Each has its own time; a failure is a result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from my_agent.research.model import SearchOutcome, SearchResult, SourceFailure
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources import corpus, feeds, web
from my_agent.web.fetch import SiteError

Search = Callable[[str, ResearchSettings], Awaitable[Sequence[SearchResult]]]


class SourceError(RuntimeError):
    """A source cannot be searched. The message is the reason, as a sentence."""


def configured(settings: ResearchSettings) -> dict[str, Search]:
    """Return the sources that the settings allow, by kind."""
    found: dict[str, Search] = {}
    if settings.research_corpus:
        found["corpus"] = corpus.search
    if settings.research_feeds:
        found["rss"] = feeds.search
    if settings.research_web_search:
        found["web"] = web.search
    return found


async def search(query: str, settings: ResearchSettings) -> SearchOutcome:
    """Search all configured sources at the same time.

    Args:
        query: the query.
        settings: which sources there are, and how long each may take.
    """
    sources = configured(settings)
    if not sources:
        return SearchOutcome((), (SourceFailure("none", "The settings allow no source."),))
    answers = await asyncio.gather(
        *(_bounded(kind, each, query, settings) for kind, each in sources.items())
    )
    return SearchOutcome(
        tuple(result for answer in answers for result in answer.results),
        tuple(failure for answer in answers for failure in answer.failures),
    )


async def _bounded(
    kind: str, source: Search, query: str, settings: ResearchSettings
) -> SearchOutcome:
    seconds = settings.research_search_seconds
    try:
        async with asyncio.timeout(seconds):
            return SearchOutcome(tuple(await source(query, settings)))
    except TimeoutError:
        reason = f"No answer within {seconds:g} seconds."
    except (SourceError, SiteError) as error:
        reason = str(error)
    return SearchOutcome((), (SourceFailure(kind, reason),))
