"""RSS and Atom feeds: entries whose title or summary has words of the query."""

import asyncio
import re
from html import unescape
from typing import Any

from my_agent.research.model import SearchResult
from my_agent.research.settings import ResearchSettings
from my_agent.research.text import content, cut
from my_agent.web.fetch import HEADERS, SiteError, SiteUnreadable, shown_host
from my_agent.web.polite import answer_of

MAX_FEED = 2 * 2**20
MAX_ENTRIES = 500
_HEADERS = {**HEADERS, "accept": "application/rss+xml,application/atom+xml,application/xml;q=0.9"}
_TAG = re.compile(r"<[^>]*>")


async def search(query: str, settings: ResearchSettings) -> list[SearchResult]:
    """Return the entries of all feeds that have words of the query.

    Raises:
        SiteError: no feed could be read.
    """
    answers = await asyncio.gather(
        *(_feed(url, query, settings) for url in settings.research_feeds), return_exceptions=True
    )
    found: list[SearchResult] = []
    problems: list[BaseException] = []
    for each in answers:
        if isinstance(each, SiteError):
            problems.append(each)
        elif isinstance(each, BaseException):
            raise each
        else:
            found += each
    if problems and len(problems) == len(answers):
        raise problems[0]
    return found


async def _feed(url: str, query: str, settings: ResearchSettings) -> list[SearchResult]:
    answer = await answer_of(url, settings.research_private_networks, MAX_FEED, _HEADERS)
    if answer.status != 200:
        raise SiteUnreadable(f"{shown_host(url)} answered with an error ({answer.status}).")
    return await asyncio.to_thread(_entries, answer.content, query)


def _entries(feed: bytes, query: str) -> list[SearchResult]:
    # Imported late: few processes read feeds.
    import feedparser

    wanted = set(content(query))
    found = []
    for entry in feedparser.parse(feed).entries[:MAX_ENTRIES]:
        title, summary = _plain(entry.get("title", "")), _plain(entry.get("summary", ""))
        share = len(wanted & set(content(f"{title} {summary}"))) / max(1, len(wanted))
        link = str(entry.get("link", ""))
        if share > 0 and link.startswith(("http://", "https://")):
            found.append(
                SearchResult(
                    url=link,
                    title=cut(title, 300),
                    source="rss",
                    snippet=cut(summary, 500),
                    published=_date(entry.get("published_parsed") or entry.get("updated_parsed")),
                    quality=round(0.4 + 0.5 * share, 2),
                    query=query,
                )
            )
    return found


def _plain(html: Any) -> str:
    return unescape(_TAG.sub(" ", str(html)))


def _date(parsed: Any) -> str | None:
    return f"{parsed[0]:04}-{parsed[1]:02}-{parsed[2]:02}" if parsed else None
