"""Web search for candidates, with a fake search engine."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.search import discovery

LOG = "my_agent.icp_finder.search.discovery"


class Engine:
    """A fake search engine.

    Attributes:
        asked: the queries, in order.
        answers: the results of each query; the last one repeats.
    """

    def __init__(self, *answers: Any) -> None:
        self.asked: list[str] = []
        self.answers = list(answers)

    def __call__(self, **_: Any) -> "Engine":
        return self

    def text(self, query: str, **_: Any) -> Any:
        self.asked.append(query)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def engine(patch: pytest.MonkeyPatch, *answers: Any) -> Engine:
    made = Engine(*answers)
    patch.setattr("ddgs.DDGS", made)
    return made


def result(href: str, title: str = "Widgets Ltd", body: str = "They make widgets.") -> Any:
    return {"href": href, "title": title, "body": body}


def site(domain: str) -> Site:
    return {"website": f"https://{domain}", "domain": domain, "name": domain, "about": ""}


ACME: Company = {"site": site("acme.com"), "customers": [site("one.com"), site("two.com")]}


def icp(*industries: str, regions: tuple[str, ...] = (), keywords: tuple[str, ...] = ()) -> Icp:
    return {
        "industries": list(industries),
        "sizes": [],
        "regions": list(regions),
        "keywords": list(keywords),
    }


async def test_each_company_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(
        monkeypatch,
        [
            result("https://www.widgets.com/about", "About | Widgets", "In Singapore  since 1990"),
            result("http://shop.widgets.com/x"),
            result("https://others.sg"),
        ],
    )
    answer = await discovery.discover(ACME, icp("widgets", regions=("Singapore",)), limit=10)
    found = answer.candidates
    assert answer.answer == "found"
    assert [each.key for each in found] == ["domain:widgets.com", "domain:others.sg"]
    first = found[0]
    assert (first.website, first.source) == ("https://www.widgets.com", "web")
    assert (first.region, first.about) == ("Singapore", "In Singapore since 1990")
    assert len((await discovery.discover(ACME, icp("widgets"), limit=1)).candidates) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        result("https://acme.com"),
        result("https://www.one.com"),
        result("https://en.wikipedia.org/wiki/Widget"),
        result("https://sg.linkedin.com/company/widgets"),
        result("https://blog.com", "Top 10 widget makers"),
        result("https://blog.com", "The best widget makers in town"),
        result("ftp://widgets.com"),
        result("javascript:alert(1)"),
        result(""),
        {},
    ],
)
async def test_known_companies_and_lists_are_left_out(
    monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    engine(monkeypatch, [wrong])
    found = await discovery.discover(ACME, icp("widgets"), limit=10)
    assert found == discovery.Found("nothing", [])


@pytest.mark.parametrize(
    ("ask", "first"),
    [
        (icp("hotels"), "hotels companies"),
        (icp("hotels", regions=("Singapore",)), "hotels companies Singapore"),
        (icp("hotels", keywords=("pool", "spa")), "hotels companies pool spa"),
        (icp(keywords=("pool", "spa")), "pool spa companies"),
        (icp(), "companies like one.com"),
    ],
)
def test_first_query(ask: Icp, first: str) -> None:
    assert discovery.queries(ACME, ask)[0] == first


def test_number_of_queries_is_limited() -> None:
    many = icp(*"abcdefg", regions=("x", "y"))
    assert len(discovery.queries(ACME, many)) == discovery.QUERIES


@pytest.mark.parametrize(
    "error", [DDGSException("DNSError"), TimeoutException("timed out"), RatelimitException("202")]
)
async def test_search_failure_is_told_from_no_results_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    asked = engine(monkeypatch, error).asked
    with caplog.at_level(logging.INFO, LOG):
        found = await discovery.discover(ACME, icp("a", "b", "c"), limit=10)
        with pytest.raises(discovery.WebUnreachable):
            await discovery.website_of("WIDGETS", "")
    assert found == discovery.Found("failed", [])
    assert len(asked) == 2
    # The class alone: a message may quote the query.
    assert [record.getMessage() for record in caplog.records] == [
        "Web search failed: ConnectionError"
    ] * 2


async def test_results_before_a_failure_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, [result("https://widgets.com")], DDGSException("down"))
    found = await discovery.discover(ACME, icp("a", "b", "c"), limit=10)
    assert found.answer == "failed"
    assert [each.key for each in found.candidates] == ["domain:widgets.com"]


async def test_no_results_do_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = engine(monkeypatch, DDGSException("No results found."), []).asked
    found = await discovery.discover(ACME, icp("a", "b"), limit=10)
    assert found == discovery.Found("nothing", [])
    assert len(asked) == 2


async def test_search_times_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(discovery, "SEARCH_SECONDS", 0.2)
    late = threading.Event()
    monkeypatch.setattr(discovery, "_ask", lambda _: late.wait(30) or [])
    with caplog.at_level(logging.INFO, LOG):
        async with asyncio.timeout(60):
            found = await discovery.discover(ACME, icp("a"), limit=10)
    late.set()
    assert found.answer == "failed"
    assert "Web search failed: TimeoutError" in caplog.text


async def test_web_search_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICP_WEB_SEARCH", "false")
    asked = engine(monkeypatch, [result("https://widgets.com")]).asked
    assert await discovery.discover(ACME, icp("a"), limit=10) == discovery.Found("off")
    assert await discovery.website_of("WIDGETS PTE. LTD.", "Singapore") is None
    assert asked == []


@pytest.mark.parametrize(
    ("href", "website"),
    [
        ("https://www.lionwidgets.com.sg/home", "https://www.lionwidgets.com.sg"),
        ("https://lionwidgetsgroup.com", "https://lionwidgetsgroup.com"),
        ("https://lion.com", "https://lion.com"),
        ("https://news.example/lion-widgets", None),
        ("https://lionwidgets.wikipedia.org", None),
        ("https://sg.com", None),
    ],
)
async def test_website_of_company_must_match_its_name(
    monkeypatch: pytest.MonkeyPatch, href: str, website: str | None
) -> None:
    asked = engine(monkeypatch, [result(href)]).asked
    assert await discovery.website_of("LION WIDGETS PTE. LTD.", "Singapore") == website
    assert asked == ["LION WIDGETS Singapore"]
