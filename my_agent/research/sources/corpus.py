"""The bundled corpus: a few pages about invented products, readable without a network."""

from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path

from my_agent.research.model import CrawledPage, CrawlFailure, SearchResult
from my_agent.research.settings import ResearchSettings
from my_agent.research.text import content, cut

SCHEME = "corpus:"
_FOLDER = Path(__file__).parents[1] / "reference" / "corpus"


async def search(query: str, settings: ResearchSettings) -> list[SearchResult]:
    """Return the pages of the corpus that have words of the query, the best first."""
    wanted = set(content(query))
    found = []
    for page in pages().values():
        here = set(content(f"{page.title} {page.text}"))
        share = len(wanted & here) / max(1, len(wanted))
        if share > 0:
            found.append(
                SearchResult(
                    url=page.url,
                    title=page.title,
                    source="corpus",
                    snippet=cut(page.text, 200),
                    published=page.published,
                    quality=round(0.3 + 0.6 * share, 2),
                    query=query,
                )
            )
    return sorted(found, key=lambda each: -each.quality)


def read(url: str) -> CrawledPage | CrawlFailure:
    """Return a page of the corpus."""
    page = pages().get(url)
    return page or CrawlFailure(url, "The corpus has no such page.")


@cache
def pages() -> dict[str, CrawledPage]:
    """Return all pages, by address. A file begins with its title and its date."""
    found = {}
    for file in sorted(_FOLDER.glob("*.md")):
        title, published, _, text = file.read_text("utf-8").split("\n", 3)
        url, text = f"{SCHEME}{file.stem}", text.strip()
        found[url] = CrawledPage(
            url=url,
            requested_url=url,
            title=title.removeprefix("# "),
            text=text,
            sha256=sha256(text.encode()).hexdigest(),
            published=published.strip(),
            site_name="The bundled corpus",
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
            bytes=len(text.encode()),
        )
    return found
