"""Engines that search the web. Another engine is one more class."""

import asyncio
from typing import Protocol

import orjson

from my_agent.research.model import SearchResult
from my_agent.research.settings import ResearchSettings
from my_agent.storable import one_line, storable
from my_agent.web.fetch import SiteError, get
from my_agent.web.search import ask

RESULTS = 10
MAX_BYTES = 2**20
# Address, title, text and date of a result.
Row = tuple[str, str | None, str | None, str | None]
# The quality of the first result and of the last one.
_BEST, _WORST = 0.8, 0.4


class SearchFailed(RuntimeError):
    """A source could not be asked. The message is a sentence for the user."""


class Engine(Protocol):
    """An engine that searches the web."""

    async def search(self, query: str) -> list[SearchResult]:
        """Return the best results for words.

        Raises:
            SearchFailed: the engine could not be asked.
        """
        ...


class Duck:
    """Several public engines, through `ddgs`. They have no contract and may refuse at any time.

    Args:
        seconds: the time of a search.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = max(1, int(seconds))

    async def search(self, query: str) -> list[SearchResult]:
        """Return the best results. Raises SearchFailed."""
        try:
            found = await asyncio.to_thread(ask, query, seconds=self._seconds, most=RESULTS)
        except ConnectionError as error:
            raise SearchFailed("The web could not be searched.") from error
        rows: list[Row] = [
            (str(each.get("href", "")), each.get("title"), each.get("body"), None) for each in found
        ]
        return ranked(rows, query)


class Searxng:
    """A SearXNG server, which answers in JSON.

    Args:
        settings: the server's address, and the private networks that it may be in.
    """

    def __init__(self, settings: ResearchSettings) -> None:
        self._settings = settings

    async def search(self, query: str) -> list[SearchResult]:
        """Return the best results. Raises SearchFailed."""
        import httpx

        base = self._settings.research_searxng_url.rstrip("/")
        url = str(httpx.URL(f"{base}/search", params={"q": query, "format": "json"}))
        allowed = self._settings.research_private_networks
        try:
            answer = await get(url, allowed, kinds=("application/json",), max_bytes=MAX_BYTES)
            found = orjson.loads(answer.body)["results"]
            rows: list[Row] = [
                (
                    str(each["url"]),
                    each.get("title"),
                    each.get("content"),
                    each.get("publishedDate"),
                )
                for each in found[:RESULTS]
            ]
        except SiteError as error:
            raise SearchFailed(str(error)) from error
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise SearchFailed("The search server's answer is not that of SearXNG.") from error
        return ranked(rows, query)


def engines(settings: ResearchSettings) -> list[Engine]:
    """Return the engines that the settings choose."""
    if not settings.research_web_search:
        return []
    if settings.research_searxng_url:
        return [Searxng(settings)]
    return [Duck(settings.research_search_seconds)]


def ranked(rows: list[Row], query: str) -> list[SearchResult]:
    """Return results of an engine: rows of address, title, text and date, the best first."""
    step = (_BEST - _WORST) / max(1, len(rows) - 1)
    return [
        SearchResult(
            url=storable(url),
            title=one_line(title or url),
            source="web",
            snippet=one_line(text or ""),
            published=one_line(published or "")[:10] or None,
            quality=round(_BEST - step * number, 2),
            query=query,
        )
        for number, (url, title, text, published) in enumerate(rows)
        if url.startswith(("http://", "https://"))
    ]
