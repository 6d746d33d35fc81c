"""RSS and Atom feeds: the entries that have words of a query."""

import threading
import time
from collections import OrderedDict
from datetime import date
from html.parser import HTMLParser

import feedparser

from my_agent import parsing
from my_agent.research.model import SearchResult
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources.web import SearchFailed
from my_agent.research.text import content
from my_agent.storable import one_line, storable
from my_agent.web.fetch import SiteError, get

KINDS = (
    *("application/rss+xml", "application/atom+xml", "application/rdf+xml"),
    *("application/xml", "text/xml", "text/plain", "text/html"),
)
MAX_BYTES = 4 * 2**20
KEPT_FEEDS = 20
RESULTS = 20
SNIPPET = 1000
_APART = ("p", "br", "div", "li", "td", "th", "tr", "h1", "h2", "h3", "h4")

_lock = threading.Lock()
_kept: OrderedDict[str, tuple[float, list[SearchResult]]] = OrderedDict()


async def search(query: str, feed: str, settings: ResearchSettings) -> list[SearchResult]:
    """Return the entries of a feed that have words of a query, the best first.

    Args:
        query: the words.
        feed: address of the feed.
        settings: the private networks that it may be in.

    Raises:
        SearchFailed: the feed could not be read.
    """
    wanted = set(content(query))
    found = []
    for entry in await _entries(feed, settings):
        shared = wanted & set(content(f"{entry.title} {entry.snippet}"))
        if shared:
            quality = round(0.4 + 0.5 * len(shared) / len(wanted), 2)
            found.append(
                SearchResult(
                    entry.url, entry.title, "rss", entry.snippet, entry.published, quality, query
                )
            )
    return sorted(found, key=lambda each: -each.quality)[:RESULTS]


async def _entries(feed: str, settings: ResearchSettings) -> list[SearchResult]:
    with _lock:
        # The queries of a plan come together and ask the same feeds.
        moment, known = _kept.get(feed, (0.0, []))
        if known and time.monotonic() - moment < settings.research_feed_seconds:
            return known
    try:
        # feedparser would fetch by itself, from any address.
        answer = await get(
            feed, settings.research_private_networks, kinds=KINDS, max_bytes=MAX_BYTES
        )
    except SiteError as error:
        raise SearchFailed(str(error)) from error
    try:
        found = await parsing.run(parse, answer.body, seconds=settings.research_search_seconds)
    except parsing.Unreadable as error:
        raise SearchFailed(f"The feed cannot be read: {error}.") from error
    with _lock:
        _kept[feed] = (time.monotonic(), found)
        _kept.move_to_end(feed)
        while len(_kept) > KEPT_FEEDS:
            _kept.popitem(last=False)
    return found


def parse(body: bytes) -> list[SearchResult]:
    """Return the entries of a feed; for a worker process.

    Raises:
        Unreadable: it is not a feed.
    """
    feed = feedparser.parse(body, sanitize_html=True)
    if not feed.version:
        raise parsing.Unreadable("it is something else than a feed")
    return [
        SearchResult(
            url=storable(each.link),
            title=one_line(each.get("title", each.link)),
            source="rss",
            snippet=_text(each.get("summary", ""))[:SNIPPET],
            # Without the class's own `get`, which replaces one date by the other and warns.
            published=_date(dict.get(each, "published_parsed") or dict.get(each, "updated_parsed")),
        )
        for each in feed.entries
        if str(each.get("link", "")).startswith(("http://", "https://"))
    ]


def _text(html: str) -> str:
    """Return the text of a summary, which may be HTML."""
    reader = _Words()
    reader.feed(html)
    reader.close()
    return one_line("".join(reader.found))


class _Words(HTMLParser):
    """Collects the text between tags."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        # The words of two paragraphs or cells are no single word.
        if tag in _APART:
            self.found.append(" ")


def _date(parsed: time.struct_time | None) -> str | None:
    if parsed is None:
        return None
    try:
        return date(parsed.tm_year, parsed.tm_mon, parsed.tm_mday).isoformat()
    except ValueError:
        return None
