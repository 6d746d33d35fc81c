"""Corpus: a few pages that come with the project, for a report without a network.

They describe products that do not exist, at addresses that cannot exist (RFC 2606).
"""

import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml

from my_agent.research.dedupe import canonical
from my_agent.research.model import CrawledPage, SearchResult
from my_agent.research.text import content, cut

FOLDER = Path(__file__).parent.parent / "corpus"
RESULTS = 8
SNIPPET = 300
# A page about something else shares a word with most questions.
MIN_SHARED = 2


def search(query: str) -> list[SearchResult]:
    """Return the pages that have words of a query, the best first."""
    wanted = set(content(query))
    found = []
    for page in _pages().values():
        words = set(content(f"{page.title} {page.text}"))
        shared = len(wanted & words)
        names = wanted & set(content(page.title))
        if shared >= min(MIN_SHARED, len(wanted)) and (names or shared >= MIN_SHARED):
            quality = round(0.4 + 0.4 * shared / len(wanted) + 0.1 * bool(names), 2)
            snippet = cut(page.text, SNIPPET)
            found.append(
                SearchResult(
                    page.url, page.title, "corpus", snippet, page.published, quality, query
                )
            )
    return sorted(found, key=lambda each: -each.quality)[:RESULTS]


def page(url: str) -> CrawledPage | None:
    """Return the bundled page of an address, or None."""
    return _pages().get(canonical(url))


@cache
def _pages() -> dict[str, CrawledPage]:
    pages = (_read(file) for file in sorted(FOLDER.glob("*.md")))
    return {each.url: each for each in pages}


def _read(file: Path) -> CrawledPage:
    _, head, text = file.read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(head)
    text = text.strip()
    return CrawledPage(
        url=canonical(fields["url"]),
        requested_url=fields["url"],
        title=fields["title"],
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        published=str(fields["published"]),
        site_name=fields["site"],
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        bytes=len(text.encode()),
    )
