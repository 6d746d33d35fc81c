"""Searching for a research project: feeds, engines, the bundled pages, and sources that fail."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from ddgs.exceptions import DDGSException

from my_agent.research import sources
from my_agent.research.settings import ResearchSettings
from my_agent.research.sources import corpus, feeds, web
from tests.support.planted_web import ARTICLES, Planted, planted_web
from tests.support.websites import Page


@pytest.fixture
def planted() -> Iterator[Planted]:
    with planted_web() as found:
        yield found


@pytest.fixture
def settings(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> ResearchSettings:
    for name, value in planted.environment().items():
        monkeypatch.setenv(name, value)
    return ResearchSettings.from_environment()


async def test_all_sources_are_asked(settings: ResearchSettings) -> None:
    outcome = await sources.search("Velora price", settings)
    assert outcome.failures == ()
    assert {each.source for each in outcome.results} == {"rss", "web"}
    best = max((each for each in outcome.results if each.source == "rss"), key=lambda r: r.quality)
    assert "/velora/price" in best.url
    assert best.published == ARTICLES["/velora/price"][1]
    assert all(each.query == "Velora price" for each in outcome.results)


async def test_feed_is_asked_once_for_several_queries(
    planted: Planted, settings: ResearchSettings
) -> None:
    for query in ("Velora price", "Velora battery", "Ridgeline"):
        await sources.search(query, settings)
    assert planted.web.asked.count("/rss") == 1


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page(b"down", 500), "error (500)"),
        (Page(b"<html>a page</html>"), "something else than a feed"),
        (Page(b"\x00\x01", headers={"content-type": "image/png"}), "not a page with text"),
    ],
)
async def test_source_that_fails_does_not_fail_the_others(
    planted: Planted, settings: ResearchSettings, page: Page, reason: str
) -> None:
    planted.web.pages["/rss"] = page
    outcome = await sources.search("Velora", settings)
    assert [each.source for each in outcome.failures] == ["rss"]
    assert reason in outcome.failures[0].reason
    assert outcome.results


async def test_slow_source_is_left_alone(planted: Planted, settings: ResearchSettings) -> None:
    planted.web.gate.clear()
    fast = settings.model_copy(update={"research_search_seconds": 0.2})
    outcome = await sources.search("Velora", fast)
    assert outcome.results == ()
    assert {each.reason for each in outcome.failures} == {"No answer within 0.2 seconds."}


@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"results": [{"title": "x"}]}', b"null"])
async def test_search_server_with_a_wrong_answer(
    planted: Planted, settings: ResearchSettings, body: bytes
) -> None:
    only = settings.model_copy(
        update={"research_feeds": (), "research_searxng_url": f"{planted.web.url}/wrong"}
    )
    planted.web.pages["/wrong/search"] = Page(body, headers={"content-type": "application/json"})
    outcome = await sources.search("Velora", only)
    assert "not that of SearXNG" in outcome.failures[0].reason


async def test_public_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        {"href": "https://a.example/x", "title": "A  x", "body": "One\ntwo"},
        {"href": "javascript:alert(1)", "title": "B", "body": ""},
        {"href": "https://b.example", "title": None, "body": None},
    ]
    engine = SimpleNamespace(text=lambda *_, **__: found)
    monkeypatch.setattr("ddgs.DDGS", lambda **_: engine)
    results = await web.Duck(5).search("words")
    assert [(each.title, each.snippet) for each in results] == [
        ("A x", "One two"),
        ("https://b.example", ""),
    ]
    assert results[0].quality > results[1].quality


async def test_public_engines_that_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DDGSException("403 at https://secret.example?key=1")

    monkeypatch.setattr("ddgs.DDGS", lambda **_: SimpleNamespace(text=refuse))
    settings = ResearchSettings(research_corpus=False)
    outcome = await sources.search("words", settings)
    assert [each.reason for each in outcome.failures] == ["The web could not be searched."]


async def test_bundled_pages_only_without_other_results(settings: ResearchSettings) -> None:
    alone = ResearchSettings(research_web_search=False)
    outcome = await sources.search("What does Tidewise cost?", alone)
    assert outcome.results[0].url.startswith("https://tidewise.example/")
    both = settings.model_copy(update={"research_corpus": True})
    found = await sources.search("What does Velora cost, and Tidewise?", both)
    assert "corpus" not in {each.source for each in found.results}


@pytest.mark.parametrize("query", ["best coffee machine", "history of Rome", "price", "", "?"])
def test_bundled_pages_do_not_answer_other_questions(query: str) -> None:
    assert corpus.search(query) == []


def test_texts_of_results_can_be_stored_by_every_database() -> None:
    found = web.ranked([("http://a.example/\0", "A\0 b\ud800", "c\0d", "2020-01-01\0")], "q")
    (entry,) = feeds.parse(
        b"<rss version='2.0'><channel><item><title>A&#0;</title><link>http://b.example/</link>"
        b"<description>&lt;b&gt;x&amp;#0;&lt;/b&gt;&lt;p&gt;5 &amp;lt; 6\0</description></item></channel></rss>"
    )
    texts = [each for one in (*found, entry) for each in (one.url, one.title, one.snippet)]
    assert not [each for each in texts if "\0" in each or "\ud800" in each]
    assert (found[0].title, found[0].snippet, found[0].published) == ("A b", "cd", "2020-01-01")
    assert entry.snippet.endswith("5 < 6")


def test_feed_with_hostile_entries() -> None:
    feed = b"""<rss version='2.0'><channel>
      <item><title>A &lt;script&gt;x&lt;/script&gt;</title><link>javascript:x</link></item>
      <item><title>B</title><link>http://b.example/</link>
        <description>&lt;p onclick='x'&gt;text&lt;/p&gt;</description><pubDate>never</pubDate></item>
      <item></item></channel></rss>"""
    (only,) = feeds.parse(feed)
    assert (only.url, only.snippet, only.published) == ("http://b.example/", "text", None)
