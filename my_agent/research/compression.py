"""Compression: shorten by rules what is too long for a model."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from my_agent.research.model import CrawledPage, SearchResult
from my_agent.research.report.escaping import cell
from my_agent.research.text import cut, sentences

MAX_RESULTS = 50
SUMMARY = 199
KEY_POINTS = 4
KEY_POINT = 100
MAX_PAGE_BYTES = 100_000
ESSENTIAL_BYTES = 40_000
_ENTITIES = 30
# The first sentences of a page say what it is about.
_LEAD = 8
_FIGURE = re.compile(r"\d|[$€£¥%]")
_SAYS_MUCH = re.compile(
    r"\b(?:supports?|features?|offers?|includes?|integrates?|launched|released|founded|acquired|"
    r"costs?|pric(?:es?|ing)|compet\w+|rival|versus|vs|market|users?|customers?|lacks?|limit\w*|"
    r"security|privacy|built|powered|runs)\b",
    re.IGNORECASE,
)
_TECHNOLOGY = re.compile(
    r"(?<![\w.])(?:"
    r"Python|JavaScript|TypeScript|Java|Kotlin|Swift|Rust|Go|Ruby|PHP|Scala|Elixir|C\+\+|"
    r"C#|\.NET|React|Angular|Vue|Svelte|Node\.js|Django|Flask|FastAPI|Rails|Laravel|"
    r"Spring|PostgreSQL|Postgres|MySQL|SQLite|MongoDB|Redis|Valkey|Kafka|RabbitMQ|"
    r"Elasticsearch|OpenSearch|Cassandra|Snowflake|BigQuery|Spark|Kubernetes|Docker|"
    r"Terraform|AWS|Azure|GraphQL|gRPC|WebAssembly|Electron|Flutter|TensorFlow|PyTorch|"
    r"LangChain|LangGraph|Linux|Nginx"
    r")(?![\w+#])"
)
_NAME = r"[A-Z][\w&-]*(?:\.\w[\w&-]*)*(?: [A-Z][\w&-]*(?:\.\w[\w&-]*)*){0,2}"
_COMPETITOR = re.compile(
    rf"\b(?i:competitors?(?: (?:is|are|include|such as|like))?|rivals?|alternatives? (?:to|such as|"
    rf"like)|versus|vs\.?|competes with|compared (?:to|with))[ :]+((?:{_NAME}(?:, | and | or )?)+)"
)
_FEATURE = re.compile(
    r"\b(?:supports?|features?|offers?|includes?|provides?)\s+([^.;:\n]{3,80})", re.IGNORECASE
)
_LIST = re.compile(r", and |, or |, | and | or ")


def compress_results(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return results, best first.

    Of more than `MAX_RESULTS`, only a short summary and the key points are kept.
    """
    ranked = sorted(results, key=lambda each: -each.quality)
    if len(ranked) <= MAX_RESULTS:
        return ranked
    return [
        replace(
            each,
            snippet=cut(each.snippet, SUMMARY),
            # Those of a result that is compressed already come from its whole text.
            key_points=each.key_points or tuple(key_points(each.snippet)),
        )
        for each in ranked
    ]


def key_points(text: str) -> list[str]:
    """Return the most telling sentences of a text, at most `KEY_POINTS`, in their order."""
    found = [_line(text[each.start : each.end]) for each in sentences(text)]
    telling = sorted(range(len(found)), key=lambda n: (-_weight(found[n]), n))[:KEY_POINTS]
    return [cut(found[n], KEY_POINT) for n in sorted(telling) if found[n]]


def table(results: Iterable[SearchResult]) -> str:
    """Return results as a Markdown table: URL, title, summary, key points, quality."""
    rows = ["| URL | Title | Summary | Key points | Quality |", "| --- | --- | --- | --- | --- |"]
    for each in results:
        points = "; ".join(each.key_points or key_points(each.snippet))
        cells = (each.url, each.title, cut(each.snippet, SUMMARY), points)
        rows.append(f"| {' | '.join(map(cell, cells))} | {each.quality:.2f} |")
    return "\n".join(rows)


def compress_page(page: CrawledPage) -> CrawledPage:
    """Return a page. Of more than `MAX_PAGE_BYTES`, the essential sentences and the entities."""
    if len(page.text.encode()) <= MAX_PAGE_BYTES:
        return page
    text = essentials(page.text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(page, text=text, sha256=digest, entities=entities(page.text), compressed=True)


def essentials(text: str) -> str:
    """Return the sentences of a text that say most, in their order, within `ESSENTIAL_BYTES`."""
    found = [_line(text[each.start : each.end]) for each in sentences(text)]
    weights = [_weight(each) + (2 if n < _LEAD else 0) for n, each in enumerate(found)]
    kept: set[int] = set()
    seen: set[str] = set()
    size = 0
    for n in sorted(range(len(found)), key=lambda n: (-weights[n], n)):
        length = len(found[n].encode()) + 1
        if not found[n] or found[n] in seen or size + length > ESSENTIAL_BYTES:
            continue
        seen.add(found[n])
        kept.add(n)
        size += length
    return "\n".join(found[n] for n in sorted(kept))


def entities(text: str) -> dict[str, list[str]]:
    """Return features, competitors and technologies that a text names, each once, in their order."""
    others = _COMPETITOR.sub("", text)
    features = (part for found in _FEATURE.findall(others) for part in _LIST.split(found))
    competitors = (part for found in _COMPETITOR.findall(text) for part in _LIST.split(found))
    return {
        "features": _once(features),
        "competitors": _once(competitors),
        "technologies": _once(_TECHNOLOGY.findall(text)),
    }


def _once(found: Iterable[str]) -> list[str]:
    cleaned = (_line(each).strip(" .,:;") for each in found)
    return list(dict.fromkeys(each for each in cleaned if len(each) > 1))[:_ENTITIES]


def _weight(sentence: str) -> int:
    """Return how much a sentence says. A text without a full stop for long is no sentence."""
    if not 20 <= len(sentence) <= 600:
        return 0
    return 2 * bool(_FIGURE.search(sentence)) + bool(_SAYS_MUCH.search(sentence)) + 1


def _line(text: str) -> str:
    return " ".join(text.split())
