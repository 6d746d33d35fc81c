"""Duplicates: let addresses, results and pages with the same content count once."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urldefrag

from courlan import normalize_url

from my_agent.research.model import CrawledPage, SearchResult

SHINGLE_WORDS = 5
# Share of the shorter page's shingles from which two pages have one origin.
SAME = 0.8
# About this many shingles of a page are compared.
_SAMPLE = 1024
_WORD = re.compile(r"\w+")


def canonical(url: str) -> str:
    """Return an address without what does not choose the page: fragment, trackers, default port."""
    bare = urldefrag(url.strip()).url
    try:
        found: str = normalize_url(bare)
    except ValueError:
        return bare
    head, mark, query = found.partition("?")
    if head.count("/") == 2 and "://" in head:
        head += "/"
    # Only the root needs the slash at its end.
    return (head.rstrip("/") if head.count("/") > 3 else head) + mark + query


def unique(results: Iterable[SearchResult]) -> list[SearchResult]:
    """Return results without those whose address or content came before."""
    addresses: set[str] = set()
    contents: set[str] = set()
    kept = []
    for each in results:
        address, digest = canonical(each.url), content_hash(each)
        if address in addresses or digest in contents:
            continue
        addresses.add(address)
        if digest:
            contents.add(digest)
        kept.append(each)
    return kept


def content_hash(result: SearchResult) -> str:
    """Return the SHA-256 of what a result says; empty if it says nothing beside its title."""
    if not result.snippet.strip():
        return ""
    words = " ".join(_WORD.findall(f"{result.title} {result.snippet}".lower()))
    return hashlib.sha256(words.encode()).hexdigest()


@dataclass(frozen=True)
class _Sketch:
    """A sample of a page's shingles: the hashes whose bits of `mask` are zero."""

    hashes: frozenset[int]
    mask: int

    @classmethod
    def of(cls, text: str) -> "_Sketch":
        words = _WORD.findall(text.lower())
        count = max(1, len(words) - SHINGLE_WORDS + 1)
        all_ = {_hash(" ".join(words[start : start + SHINGLE_WORDS])) for start in range(count)}
        mask = (1 << max(0, (len(all_) // _SAMPLE).bit_length())) - 1
        return cls(frozenset(each for each in all_ if not each & mask), mask)

    def shares(self, other: "_Sketch") -> float:
        """Return the share of the shorter text's shingles that the other has, from 0 to 1."""
        mask = max(self.mask, other.mask)
        mine = {each for each in self.hashes if not each & mask}
        theirs = {each for each in other.hashes if not each & mask}
        if not mine or not theirs:
            return 0.0
        return len(mine & theirs) / min(len(mine), len(theirs))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def group(pages: Sequence[CrawledPage]) -> list[CrawledPage]:
    """Return pages with their origins. The first page of an origin names it.

    Pages have one origin if their text is the same, or nearly: a press release that several sites
    print is one source. Of a page that quotes another one in full, both have one origin too.
    """
    origins: list[tuple[str, _Sketch, str]] = []
    found = []
    for page in pages:
        sketch = _Sketch.of(page.text)
        origin = next(
            (
                name
                for digest, known, name in origins
                if digest == page.sha256 or sketch.shares(known) >= SAME
            ),
            f"o{len({name for _, _, name in origins}) + 1}",
        )
        origins.append((page.sha256, sketch, origin))
        found.append(replace(page, origin=origin))
    return found
