"""Web search, by the package ddgs. Another engine is another function of the same form."""

import asyncio
from typing import Any

from my_agent.research.model import SearchResult
from my_agent.research.settings import ResearchSettings
from my_agent.research.text import cut

RESULTS = 10


async def search(query: str, settings: ResearchSettings) -> list[SearchResult]:
    """Return the first results of the web.

    Raises:
        SourceError: the search engine does not answer.
    """
    from ddgs.exceptions import DDGSException, TimeoutException

    from my_agent.research.sources import SourceError

    try:
        rows = await asyncio.to_thread(_ask, query, settings.research_search_seconds)
    except TimeoutException as error:
        raise SourceError("The web search did not answer in time.") from error
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise SourceError("The web search could not be reached.") from error
    return [
        SearchResult(
            url=str(row.get("href", "")),
            title=cut(str(row.get("title", "")), 300),
            source="web",
            snippet=cut(str(row.get("body", "")), 500),
            quality=round(0.8 - 0.04 * place, 2),
            query=query,
        )
        for place, row in enumerate(rows)
        if str(row.get("href", "")).startswith(("http://", "https://"))
    ]


def _ask(query: str, seconds: float) -> list[dict[str, Any]]:
    from ddgs import DDGS

    return list(DDGS(timeout=max(1, int(seconds))).text(query, max_results=RESULTS))
