"""Duplicates and compression of what a research project finds."""

import hashlib
import random

import pytest

from my_agent.research import compression, dedupe
from my_agent.research.model import CrawledPage, SearchResult


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://Acme.com/a", "https://acme.com/a/"),
        ("https://acme.com", "https://acme.com/"),
        ("https://acme.com:443/a", "https://acme.com/a#part"),
        ("http://acme.com:80/a?b=1&a=2", "http://acme.com/a?a=2&b=1"),
        ("https://acme.com/a?utm_source=x&gclid=1", "https://acme.com/a"),
    ],
)
def test_equal_addresses(one: str, other: str) -> None:
    assert dedupe.canonical(one) == dedupe.canonical(other)
    assert dedupe.canonical(dedupe.canonical(one)) == dedupe.canonical(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://acme.com/a", "https://acme.com/b"),
        ("https://acme.com/a?page=1", "https://acme.com/a?page=2"),
        ("https://acme.com/", "https://www.acme.org/"),
        ("https://acme.com:8443/", "https://acme.com/"),
    ],
)
def test_different_addresses(one: str, other: str) -> None:
    assert dedupe.canonical(one) != dedupe.canonical(other)


def result(number: int, snippet: str = "", quality: float = 0.5) -> SearchResult:
    return SearchResult(f"https://a.example/{number}", "Title", "web", snippet, quality=quality)


def test_first_of_equal_results_is_kept() -> None:
    results = [result(1, "Same  words!"), result(2, "same words"), result(1, "other"), result(3)]
    results.append(result(4))
    assert [each.url[-1] for each in dedupe.unique(results)] == ["1", "3", "4"]


def page(url: str, text: str) -> CrawledPage:
    return CrawledPage(url, url, "t", text, hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("length", [60, 400, 20_000])
def test_near_duplicates_have_one_origin(length: int, rng: random.Random) -> None:
    words = [f"w{rng.randrange(5000)}" for _ in range(length)]
    copy = ["Agency", "report:", *words, "All", "rights", "reserved"]
    other = [f"w{rng.randrange(5000)}" for _ in range(length)]
    found = dedupe.group(
        [
            page(name, " ".join(text))
            for name, text in (("a", words), ("b", copy), ("c", other), ("d", words))
        ]
    )
    assert [each.origin for each in found] == ["o1", "o1", "o2", "o1"]


def test_few_results_are_not_compressed() -> None:
    results = [result(n, "long " * 100, n / 100) for n in range(50)]
    found = compression.compress_results(results)
    assert len(found[0].snippet) == 500
    assert [each.quality for each in found] == sorted((r.quality for r in results), reverse=True)


def test_many_results_are_compressed() -> None:
    text = (
        "Acme costs 10 euros. It rains. Acme lacks an app. Birds sing. Acme has 9 users. The end."
    )
    results = [result(n, text * 4, n / 100) for n in range(51)]
    found = compression.compress_results(results)
    assert len(found) == 51
    assert found[0].quality == 0.5
    assert all(len(each.snippet) < 200 for each in found)
    points = compression.key_points(text)
    assert 1 <= len(points) < 5
    assert points[0].startswith("Acme costs 10 euros")
    table = compression.table([result(1, "a | b\n`c`")])
    assert table.splitlines()[-1].count(" | ") == 4


def test_long_page_is_compressed() -> None:
    facts = (
        "Acme costs 10 euros a month. It supports SSO, SCIM and export. Competitors include Bolt. "
    )
    filler = "".join(f"Quietly {chr(97 + n % 26) * (n // 26 + 1)} happens.\n" for n in range(2000))
    found = compression.compress_page(page("a", facts + filler + "It runs on Python and Redis."))
    assert found.compressed
    assert len(found.text.encode()) <= compression.ESSENTIAL_BYTES
    assert "Acme costs 10 euros a month." in found.text
    assert "It runs on Python and Redis." in found.text
    assert found.sha256 == hashlib.sha256(found.text.encode()).hexdigest()
    assert found.entities["technologies"] == ["Python", "Redis"]
    assert found.entities["competitors"] == ["Bolt"]
    assert {"SSO", "SCIM", "export"} <= set(found.entities["features"])
    short = page("b", facts)
    assert compression.compress_page(short) is short
