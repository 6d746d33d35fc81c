"""Sources: search engines, feeds and the corpus, which answer a query, each within its own time."""

import asyncio
import logging
from collections.abc import Awaitable

from my_agent.research.model import SearchOutcome, SearchResult, SourceFailure
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources import corpus, feeds, web

logger = logging.getLogger(__name__)


async def search(query: str, settings: ResearchSettings) -> SearchOutcome:
    """Ask all sources at once. A source that fails does not fail the others.

    The bundled pages describe a market that does not exist. So they are asked only if no other
    source has a result.

    Args:
        query: words to search for.
        settings: which sources to ask, and their time.
    """
    asked = [
        _asked("rss", feeds.search(query, feed, settings), settings)
        for feed in settings.research_feeds
    ]
    asked += [_asked("web", engine.search(query), settings) for engine in web.engines(settings)]
    found = await asyncio.gather(*asked)
    results = [each for outcome in found for each in outcome.results]
    if not results and settings.research_corpus:
        results = await asyncio.to_thread(corpus.search, query)
    return SearchOutcome(
        tuple(results), tuple(each for outcome in found for each in outcome.failures)
    )


async def _asked(
    source: str, results: Awaitable[list[SearchResult]], settings: ResearchSettings
) -> SearchOutcome:
    seconds = settings.research_search_seconds
    try:
        async with asyncio.timeout(seconds):
            return SearchOutcome(tuple(await results))
    except TimeoutError:
        reason = f"No answer within {seconds:g} seconds."
    except web.SearchFailed as error:
        reason = str(error)
    logger.warning("The source %s failed: %s", source, reason)
    return SearchOutcome((), (SourceFailure(source, reason),))
