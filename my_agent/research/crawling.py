"""Crawling: read one page, within bounds of time and size and by the rules of its website."""

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from my_agent import parsing
from my_agent.research import dedupe
from my_agent.research.model import CrawledPage, CrawlFailure
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources import corpus
from my_agent.storable import storable
from my_agent.web import politeness
from my_agent.web.fetch import FetchedPage, SiteRefused, SiteUnreadable, get, shown_host

MAX_BYTES = 4 * 2**20
MAX_TEXT = 1_000_000
TITLE = 300


@dataclass(frozen=True)
class _Content:
    title: str
    text: str
    published: str | None
    site_name: str


async def crawl(
    url: str, settings: ResearchSettings, *, bytes_left: int
) -> CrawledPage | CrawlFailure:
    """Read a page.

    Args:
        url: its address.
        settings: times and private networks.
        bytes_left: the content is cut here.
    """
    known = corpus.page(url) if settings.research_corpus else None
    if known is not None:
        return known
    if bytes_left <= 0:
        return CrawlFailure(url, "The budget of bytes is spent.")
    try:
        async with asyncio.timeout(settings.research_crawl_seconds):
            return await _crawl(url, settings, min(bytes_left, MAX_BYTES))
    except TimeoutError:
        seconds = settings.research_crawl_seconds
        return CrawlFailure(url, f"{shown_host(url)} took more than {seconds:g} seconds.", True)
    except SiteRefused as error:
        return CrawlFailure(url, str(error))
    except SiteUnreadable as error:
        return CrawlFailure(url, str(error), error.passing)


async def _crawl(
    url: str, settings: ResearchSettings, max_bytes: int
) -> CrawledPage | CrawlFailure:
    allowed = settings.research_private_networks
    if not _is_web(url):
        raise SiteRefused(f"{shown_host(url)} is not an http or https address.")
    rules = await politeness.rules(url, allowed)
    if refusal := _refusal(url, url, rules):
        return refusal
    await politeness.wait_turn(url, max(settings.research_host_delay_seconds, rules.delay))
    answer = await get(url, allowed, max_bytes=max_bytes)
    if answer.url != url:
        rules = await politeness.rules(answer.url, allowed)
    if refusal := _refusal(url, answer.url, rules):
        return refusal
    try:
        content = await parsing.run(_read, answer, seconds=settings.research_crawl_seconds)
    except parsing.Unreadable as error:
        return CrawlFailure(url, f"The page of {shown_host(url)} cannot be read: {error}.")
    if not content.text:
        return CrawlFailure(url, f"{shown_host(url)} has no text that can be read.")
    return CrawledPage(
        url=dedupe.canonical(answer.url),
        requested_url=url,
        title=content.title or shown_host(answer.url),
        text=content.text,
        sha256=hashlib.sha256(content.text.encode()).hexdigest(),
        published=content.published,
        site_name=content.site_name or shown_host(answer.url),
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        bytes=answer.size,
    )


def _is_web(url: str) -> bool:
    try:
        return httpx.URL(url).scheme in ("http", "https") and bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def _refusal(asked: str, url: str, rules: politeness.Rules) -> CrawlFailure | None:
    if rules.allow:
        return None
    host = shown_host(url)
    if not rules.is_reachable:
        return CrawlFailure(asked, f"{host} could not be reached.", retryable=True)
    return CrawlFailure(asked, f"The robots.txt of {host} does not allow to read this page.")


def _read(answer: FetchedPage) -> _Content:
    """Extract the main text of a page; for a worker process."""
    if answer.kind == "text/plain":
        return _Content("", _clean(answer.body.decode("utf-8", "replace")), None, "")
    # Imported late: the import is slow and would delay every start.
    from trafilatura import bare_extraction, load_html

    # Parsed here: a page without a document is no error of the extraction.
    tree = load_html(answer.body)
    if tree is None or not len(tree):
        return _Content("", "", None, "")
    found = bare_extraction(
        tree, url=answer.url, with_metadata=True, include_comments=False, favor_recall=True
    )
    if found is None or isinstance(found, dict):
        return _Content("", "", None, "")
    return _Content(
        title=_clean(found.title or "")[:TITLE],
        text=_clean(found.text or ""),
        published=_date(found.date),
        site_name=_clean(found.sitename or "")[:TITLE],
    )


def _clean(text: str) -> str:
    return storable(text)[:MAX_TEXT].strip()


def _date(text: str | None) -> str | None:
    """Return an ISO date that is not in the future, or None."""
    try:
        found = datetime.fromisoformat(text or "").date()
    except ValueError:
        return None
    return found.isoformat() if found <= datetime.now(UTC).date() else None
