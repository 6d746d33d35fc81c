"""Crawling: one page, over checked addresses, as its robots.txt and its size allow."""

import asyncio
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from protego import Protego

from my_agent.research.dedupe import canonical
from my_agent.research.model import CrawledPage, CrawlFailure
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources import corpus
from my_agent.web.fetch import HEADERS, READABLE, SiteError, shown_host
from my_agent.web.polite import answer_of

AGENT = "Threadhold"
MAX_PAGE = 4 * 2**20
MAX_REDIRECTS = 5
# Seconds that a robots.txt is kept, and the longest delay that it may ask for.
_ROBOTS_SECONDS, _LONGEST_DELAY = 600.0, 10.0
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass
class _Host:
    """What is known about a host: its rules, and when it was asked last."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    robots: Protego | None = None
    robots_at: float = -_ROBOTS_SECONDS
    asked_at: float = -_LONGEST_DELAY


_hosts: dict[tuple[int, str], _Host] = {}


async def crawl(
    url: str, settings: ResearchSettings, *, bytes_left: int
) -> CrawledPage | CrawlFailure:
    """Read a page.

    Args:
        url: the address; one of the bundled corpus needs no network.
        settings: networks, times and delays.
        bytes_left: size of the answer that the budget allows.
    """
    if url.startswith(corpus.SCHEME):
        return corpus.read(url)
    try:
        async with asyncio.timeout(settings.research_crawl_seconds):
            return await _crawl(url, settings, min(bytes_left, MAX_PAGE))
    except TimeoutError:
        seconds = settings.research_crawl_seconds
        return CrawlFailure(url, f"No answer within {seconds:g} seconds.", retryable=True)
    except SiteError as error:
        return CrawlFailure(url, str(error), retryable=bool(error.__cause__ and _may_pass(error)))


def _may_pass(error: SiteError) -> bool:
    return isinstance(error.__cause__, httpx.TransportError) and not isinstance(
        error.__cause__, httpx.UnsupportedProtocol
    )


async def _crawl(url: str, settings: ResearchSettings, limit: int) -> CrawledPage | CrawlFailure:
    at = url
    for _ in range(1 + MAX_REDIRECTS):
        if not await _may_read(at, settings):
            return CrawlFailure(url, f"{shown_host(at)} does not allow robots to read this page.")
        await _wait(at, settings)
        answer = await answer_of(at, settings.research_private_networks, limit, HEADERS)
        if answer.location is not None:
            target = urljoin(at, answer.location)
            if urlsplit(at).scheme == "https" and urlsplit(target).scheme == "http":
                return CrawlFailure(url, f"{shown_host(at)} redirects to an unencrypted page.")
            at = target
            continue
        if answer.status >= 300:
            reason = f"{shown_host(at)} answered with an error ({answer.status})."
            return CrawlFailure(url, reason, retryable=answer.status in _RETRYABLE)
        if answer.kind not in READABLE:
            return CrawlFailure(url, f"{shown_host(at)} is not a page with text.")
        if answer.is_cut and limit < MAX_PAGE:
            return CrawlFailure(url, "The budget did not allow to read the whole page.")
        return await asyncio.to_thread(_page, url, at, answer.content, answer.charset)
    return CrawlFailure(url, f"{shown_host(url)} redirects again and again.")


def _page(url: str, at: str, content: bytes, charset: str | None) -> CrawledPage | CrawlFailure:
    # Imported late: it takes a third of a second.
    import trafilatura

    html: Any = content
    if charset is not None:
        try:
            html = content.decode(charset, "replace")
        except LookupError:
            html = content
    found: Any = trafilatura.bare_extraction(
        html, url=at, with_metadata=True, include_comments=False, include_tables=True
    )
    text = _clean(found.text or "") if found is not None else ""
    if found is None or not text:
        return CrawlFailure(url, f"{shown_host(at)} has no text.")
    return CrawledPage(
        url=canonical(at),
        requested_url=url,
        title=_clean(found.title or "").replace("\n", " ")[:300],
        text=text,
        sha256=sha256(text.encode()).hexdigest(),
        published=found.date if re.fullmatch(r"\d{4}-\d\d-\d\d", found.date or "") else None,
        site_name=_clean(found.sitename or "")[:100] or shown_host(at),
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        bytes=len(content),
    )


def _clean(text: str) -> str:
    """Return a text without control characters, which neither a report nor Postgres can hold."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", "", text).strip()


async def _may_read(url: str, settings: ResearchSettings) -> bool:
    host = _host(url)
    async with host.lock:
        if time.monotonic() - host.robots_at >= _ROBOTS_SECONDS:
            rules = urljoin(url, "/robots.txt")
            try:
                answer = await answer_of(rules, settings.research_private_networks, 2**19, HEADERS)
            except SiteError:
                # A host without rules, or one that the page itself cannot be read from either.
                host.robots = None
            else:
                is_there = answer.status == 200
                host.robots = (
                    Protego.parse(answer.content.decode("utf-8", "replace")) if is_there else None
                )
            host.robots_at = time.monotonic()
        return host.robots is None or bool(host.robots.can_fetch(url, AGENT))


async def _wait(url: str, settings: ResearchSettings) -> None:
    """Wait until the host may be asked again."""
    host = _host(url)
    async with host.lock:
        asked = host.robots.crawl_delay(AGENT) if host.robots is not None else None
        delay = max(settings.research_host_delay_seconds, min(asked or 0.0, _LONGEST_DELAY))
        left = host.asked_at + delay - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)
        host.asked_at = time.monotonic()


def _host(url: str) -> _Host:
    # A lock belongs to an event loop.
    key = (id(asyncio.get_running_loop()), urlsplit(url).netloc)
    if len(_hosts) > 1000:
        _hosts.clear()
    return _hosts.setdefault(key, _Host())
