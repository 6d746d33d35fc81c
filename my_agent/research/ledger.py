"""The ledger: quotes of pages that were read, each with its place. A report cites nothing else."""

import re
from collections.abc import Iterable
from dataclasses import replace

from my_agent.research.model import CrawledPage, LedgerEntry

# A quote longer than this proves everything and nothing.
MAX_QUOTE = 600


class Ledger:
    """Quotes with their ids, in the order in which they were added.

    Args:
        entries: entries from the stored state.
    """

    def __init__(self, entries: Iterable[LedgerEntry] = ()) -> None:
        self._entries = {each.id: each for each in entries}

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries."""
        return tuple(self._entries.values())

    def find(self, entry_id: str) -> LedgerEntry | None:
        """Return an entry, or None."""
        return self._entries.get(entry_id)

    def add(self, page: CrawledPage, start: int, end: int) -> LedgerEntry:
        """Add the quote `page.text[start:end]`, or return its existing entry."""
        for each in self._entries.values():
            if (each.url, each.sha256, each.start, each.end) == (page.url, page.sha256, start, end):
                return each
        entry = LedgerEntry(
            id=str(len(self._entries) + 1),
            url=page.url,
            sha256=page.sha256,
            start=start,
            end=end,
            quote=page.text[start:end],
        )
        self._entries[entry.id] = entry
        return entry

    def quote(self, page: CrawledPage, words: str) -> LedgerEntry | None:
        """Add words that somebody says are on a page; None if they are not, or are too long.

        White space may differ from the page's; nothing else may.
        """
        parts = words.split()
        if not parts or len(words) > MAX_QUOTE:
            return None
        pattern = r"\s+".join(map(re.escape, parts))
        # A quote begins and ends at a word: "12 users" is not a quote of "112 users".
        found = re.search(rf"(?<!\w){pattern}(?!\w)", page.text)
        return None if found is None else self.add(page, found.start(), found.end())


def renumbered(
    entries: Iterable[LedgerEntry], used: Iterable[str]
) -> tuple[tuple[LedgerEntry, ...], dict[str, str]]:
    """Return the used entries with ids "1", "2" ... in the order of their use, and the new ids."""
    by_id = {each.id: each for each in entries}
    ids = {old: str(number) for number, old in enumerate(dict.fromkeys(used), 1)}
    return tuple(replace(by_id[old], id=new) for old, new in ids.items()), ids
