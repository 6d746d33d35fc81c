"""Duplicates: one address for each page, and groups of pages that say the same words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b, sha256
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from my_agent.research.model import CrawledPage, SearchResult

_TRACKING = re.compile(
    r"^(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|igshid|ref|ref_src)$", re.IGNORECASE
)
_PORTS = {"http": 80, "https": 443}
# Words of a shingle, and the share of equal shingles from which two pages are one.
_SHINGLE, _SAME = 5, 0.7


def canonical(url: str) -> str:
    """Return the address of a page without what does not change the page.

    That is the fragment, parameters that count visitors, the order of parameters, the default port,
    and a slash at the end.
    """
    parts = urlsplit(url.strip())
    if parts.scheme.lower() not in _PORTS:
        return url.strip()
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    try:
        port = parts.port
    except ValueError:
        return url.strip()
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port in (None, _PORTS[scheme]) else f"{shown}:{port}"
    query = sorted(
        pair
        for pair in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.match(pair[0])
    )
    path = parts.path.rstrip("/") or "/"
    return urlunsplit((scheme, netloc, path, urlencode(query), ""))


def unique(results: Iterable[SearchResult]) -> list[SearchResult]:
    """Return the first result of each address and of each content."""
    found: dict[str, SearchResult] = {}
    seen: set[str] = set()
    for each in results:
        words = " ".join(f"{each.title}\n{each.snippet}".split())
        content = sha256(f"{urlsplit(each.url).netloc}\n{words}".encode()).hexdigest()
        address = canonical(each.url)
        if address in found or (each.snippet and content in seen):
            continue
        seen.add(content)
        found[address] = each
    return list(found.values())


def group(pages: Sequence[CrawledPage]) -> list[CrawledPage]:
    """Return the pages with the origin of each: near-duplicates have the same one."""
    origins: list[tuple[str, frozenset[bytes]]] = []
    found = []
    for page in pages:
        shingles = _shingles(page.text)
        origin = next((name for name, other in origins if _alike(shingles, other)), "")
        if not origin:
            origin = page.sha256[:12]
            origins.append((origin, shingles))
        found.append(replace(page, origin=origin))
    return found


def _shingles(text: str) -> frozenset[bytes]:
    words = re.findall(r"\w+", text.lower())
    count = max(1, len(words) - _SHINGLE + 1)
    return frozenset(
        blake2b(" ".join(words[n : n + _SHINGLE]).encode(), digest_size=8).digest()
        for n in range(count)
    )


def _alike(one: frozenset[bytes], other: frozenset[bytes]) -> bool:
    return len(one & other) >= _SAME * min(len(one), len(other)) and (
        len(one & other) >= 0.5 * max(len(one), len(other))
    )
