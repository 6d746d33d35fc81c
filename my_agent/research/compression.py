"""Compression: many results to their essentials, and long pages to the sentences that matter."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from my_agent.research.extraction import kind_of
from my_agent.research.model import CrawledPage, SearchResult
from my_agent.research.text import cut, sentences, tokens

MAX_RESULTS, SUMMARY, KEY_POINTS = 50, 199, 4
MAX_PAGE, ESSENTIALS = 100_000, 40_000
_MOST = 20
_TECHNOLOGY = re.compile(
    r"\b(?:Python|Rust|Go|Java|JavaScript|TypeScript|Ruby|PHP|C\+\+|C#|Kotlin|Swift|PostgreSQL|"
    r"MySQL|SQLite|Redis|MongoDB|Kafka|Docker|Kubernetes|React|Vue|Angular|Django|Rails|Node\.js|"
    r"GraphQL|REST|OAuth|SAML|SCIM|AES-\d+|TLS|AWS|Azure|Linux|Windows|macOS|Android|iOS)\b"
)


def compress_results(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return results with a short summary and at most four key points each, the best first."""
    short = [
        replace(each, snippet=cut(each.snippet, SUMMARY), key_points=_points(each.snippet))
        for each in results
    ]
    return sorted(short, key=lambda each: -each.quality)


def compress_page(page: CrawledPage) -> CrawledPage:
    """Return a page with its entities; a text of more than 100 KB is cut to its essentials.

    The essentials are whole sentences in their order: those with numbers, names and words of the
    analysis. Quotes refer to this text.
    """
    text, is_long = page.text, len(page.text.encode()) > MAX_PAGE
    found = replace(page, entities=entities(text))
    if not is_long:
        return found
    essential = _essentials(text)
    digest = sha256(essential.encode()).hexdigest()
    return replace(found, text=essential, sha256=digest, compressed=True)


def entities(text: str) -> dict[str, list[str]]:
    """Return the features, competitors and technologies that a text names, by kind."""
    found: dict[str, Counter[str]] = {"features": Counter(), "competitors": Counter()}
    for sentence in sentences(text[:MAX_PAGE]):
        kind = kind_of(sentence.text)
        if kind == "features":
            found["features"][cut(sentence.text, 120)] += 1
        elif kind == "competitors":
            names = [each.raw for each in tokens(sentence.text) if each.kind == "name"]
            found["competitors"].update(names)
    listed = {kind: [name for name, _ in each.most_common(_MOST)] for kind, each in found.items()}
    stack = Counter(_TECHNOLOGY.findall(text))
    return {**listed, "tech_stack": [name for name, _ in stack.most_common(_MOST)]}


def _points(snippet: str) -> tuple[str, ...]:
    return tuple(cut(each.text, 80) for each in sentences(snippet)[:KEY_POINTS])


def _essentials(text: str) -> str:
    parts = sentences(text)

    def worth(number: int) -> float:
        found = tokens(parts[number].text[:500])
        kinds = Counter(each.kind for each in found)
        said = kind_of(parts[number].text[:500]) != "facts"
        # The beginning of a page says what the page is about.
        return min(kinds["number"], 3) + min(kinds["name"], 3) + 2 * said + 5 / (1 + number)

    kept, size = set[int](), 0
    for number in sorted(range(len(parts)), key=worth, reverse=True):
        length = len(parts[number].text.encode()) + 1
        if size + length <= ESSENTIALS:
            kept.add(number)
            size += length
    return "\n".join(parts[number].text for number in sorted(kept))
