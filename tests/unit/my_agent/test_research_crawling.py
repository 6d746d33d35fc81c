"""Reading pages for a research project: bounds, robots.txt, redirects, and what stays outside."""

import asyncio
import gzip
import time
from collections.abc import Iterator
from typing import Any

import pytest

from my_agent.research import crawling
from my_agent.research.model import CrawledPage, CrawlFailure
from my_agent.research.settings import ResearchSettings
from my_agent.web import politeness
from tests.support.planted_web import ARTICLES, Planted, planted_web
from tests.support.websites import Page, redirect, websites


@pytest.fixture(scope="module")
def planted() -> Iterator[Planted]:
    with planted_web() as found:
        yield found


@pytest.fixture
def settings(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> ResearchSettings:
    for name, value in planted.environment().items():
        monkeypatch.setenv(name, value)
    return ResearchSettings.from_environment()


async def crawl(planted: Planted, path: str, settings: ResearchSettings, **more: Any) -> Any:
    settings = settings.model_copy(update=more)
    return await crawling.crawl(planted.web.url + path, settings, bytes_left=10**7)


async def test_page_is_read(planted: Planted, settings: ResearchSettings) -> None:
    page = await crawl(planted, "/velora/price", settings)
    title, date, text = ARTICLES["/velora/price"]
    assert (page.title, page.published) == (title, date)
    assert text in page.text
    assert page.bytes > len(text)


async def test_redirect_gives_the_final_address(
    planted: Planted, settings: ResearchSettings
) -> None:
    page = await crawl(planted, "/traps/moved", settings)
    assert page.url == f"{planted.web.url}/velora/company"
    assert page.requested_url == f"{planted.web.url}/traps/moved"


@pytest.mark.parametrize(
    ("path", "reason", "retryable"),
    [
        ("/traps/gone", "answered with an error (404)", False),
        ("/traps/binary", "not a page with text", False),
        ("/traps/inside", "private address", False),
        ("/traps/loop", "redirects again and again", False),
        ("/forbidden/velora", "robots.txt", False),
    ],
)
async def test_page_that_is_not_read(
    planted: Planted, settings: ResearchSettings, path: str, reason: str, retryable: bool
) -> None:
    found = await crawl(planted, path, settings)
    assert isinstance(found, CrawlFailure)
    assert reason in found.reason
    assert found.retryable is retryable


async def test_forbidden_page_is_not_requested(
    planted: Planted, settings: ResearchSettings
) -> None:
    await crawl(planted, "/forbidden/velora", settings)
    assert "/forbidden/velora" not in planted.web.asked


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://10.0.0.1/"),
        *("http://0.0.0.0/", "http://[::ffff:127.0.0.9]/", "http://2130706434/", "http://127.2/"),
        *("ftp://example.com/", "file:///etc/passwd", "gopher://x/", "http://", "http://[::1", "x"),
    ],
)
async def test_address_that_must_not_be_read(settings: ResearchSettings, url: str) -> None:
    found = await crawling.crawl(url, settings, bytes_left=1000)
    assert isinstance(found, CrawlFailure)
    assert "private address" in found.reason or "not an http or https" in found.reason
    assert not found.retryable


@pytest.mark.parametrize("path", ["/traps/deep", "/traps/broken"])
async def test_hostile_page_does_not_stop_the_server(
    planted: Planted, settings: ResearchSettings, path: str
) -> None:
    async def tick() -> int:
        count = 0
        while True:
            count += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.ensure_future(tick())
    found = await crawl(planted, path, settings)
    assert isinstance(found, CrawledPage | CrawlFailure)
    ticking.cancel()


async def test_compressed_bomb_is_cut(settings: ResearchSettings) -> None:
    with websites() as web:
        text = b"<html><body><p>" + b"Velora is red. " * 4_000_000
        web.pages["/bomb"] = Page(
            gzip.compress(text), headers={"content-type": "text/html", "content-encoding": "gzip"}
        )
        page = await crawling.crawl(f"{web.url}/bomb", settings, bytes_left=10**7)
    assert isinstance(page, CrawledPage)
    assert len(page.text) <= crawling.MAX_TEXT
    assert page.bytes < 10**6


async def test_budget_of_bytes_cuts_a_page(planted: Planted, settings: ResearchSettings) -> None:
    url = f"{planted.web.url}/traps/long"
    page = await crawling.crawl(url, settings, bytes_left=5000)
    assert isinstance(page, CrawledPage)
    assert len(page.text) <= 5000
    spent = await crawling.crawl(url, settings, bytes_left=0)
    assert isinstance(spent, CrawlFailure)


async def test_slow_page_fails_in_time(settings: ResearchSettings) -> None:
    with websites() as web:
        web.pages["/slow"] = Page(b"late")
        web.gate.clear()
        fast = settings.model_copy(update={"research_crawl_seconds": 0.2})
        found = await crawling.crawl(f"{web.url}/slow", fast, bytes_left=1000)
    assert isinstance(found, CrawlFailure)
    assert found.retryable
    assert "more than 0.2 seconds" in found.reason


@pytest.mark.parametrize(
    ("status", "is_read"), [(404, True), (403, True), (500, False), (503, False)]
)
async def test_website_without_rules(
    settings: ResearchSettings, status: int, is_read: bool
) -> None:
    """RFC 9309: without the file all is allowed, while the server fails nothing is."""
    with websites() as web:
        web.pages["/robots.txt"] = Page(b"", status)
        web.pages["/a"] = Page(
            b"<html><body><p>Velora costs 189 euros in every shop of the town.</p></body></html>"
        )
        found = await crawling.crawl(f"{web.url}/a", settings, bytes_left=1000)
        assert isinstance(found, CrawledPage) is is_read
        assert ("/a" in web.asked) is is_read


async def test_rules_of_the_final_website_count(settings: ResearchSettings) -> None:
    with websites() as web, websites() as other:
        other.pages["/robots.txt"] = Page(b"User-agent: Threadhold\nDisallow: /")
        other.pages["/a"] = Page(
            b"<html><body><p>Velora costs 189 euros in every shop of the town.</p></body></html>"
        )
        web.pages["/a"] = redirect(f"{other.url}/a")
        found = await crawling.crawl(f"{web.url}/a", settings, bytes_left=1000)
    assert isinstance(found, CrawlFailure)
    assert "robots.txt" in found.reason


async def test_requests_to_one_host_keep_a_distance(settings: ResearchSettings) -> None:
    moments: list[float] = []

    def body() -> bytes:
        moments.append(time.monotonic())
        return b"<html><body><p>Velora costs 189 euros in every shop of the town.</p></body></html>"

    with websites() as web:
        for number in range(4):
            web.pages[f"/{number}"] = Page(body)
        slow = settings.model_copy(update={"research_host_delay_seconds": 0.15})
        began = time.monotonic()
        await asyncio.gather(
            *(crawling.crawl(f"{web.url}/{n}", slow, bytes_left=1000) for n in range(4))
        )
        assert web.asked.count("/robots.txt") == 1
    assert len(moments) == 4
    # Counted from the beginning: a busy machine may delay one request and not the next.
    for number, moment in enumerate(sorted(moments)):
        assert moment - began > number * 0.15 - 0.02


async def test_delay_of_the_website_is_kept_up_to_a_bound(settings: ResearchSettings) -> None:
    with websites() as web:
        web.pages["/robots.txt"] = Page(b"User-agent: *\nCrawl-delay: 3600\n")
        rules = await politeness.rules(f"{web.url}/a", settings.research_private_networks)
    assert rules.delay == politeness.MAX_DELAY_SECONDS
