"""Removals: read which entries retention has removed, from its own entries that verify."""

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime, timedelta

from langgraph_runtime_sql.audit.entry import MALFORMED, Broken, detail_of, is_believed
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.audit.links import Links
from langgraph_runtime_sql.database.statements import Row

MIN_AGE = timedelta(days=1)
"""The least age of entries that retention removes. It is longer than `log.MAX_IDLE`, because a chain in
memory must not continue a removed entry."""
SKEW = timedelta(hours=1)
"""Clocks of processes differ by less."""


class Removals:
    """What retention removed, which explains why entries are missing.

    Args:
        rows: The entries of retention, in the order of their writing.
        keys: The keys of the log.
        links: The links of the log. What they seal may be explained by a sealed removal without a key.

    Attributes:
        broken: What is wrong with the removals themselves.
        last: The number of the last removed entry of each chain.
    """

    def __init__(self, rows: Iterable[Row], keys: Keyring, links: Links) -> None:
        self.broken: list[Broken] = []
        self.last: dict[str, int] = {}
        self._hashes: set[str] = set()
        self._sealed_hashes: set[str] = set()
        # The newest date of a removed entry.
        self._newest: datetime | None = None
        # By their numbers: the latest date up to there.
        self._seqs: list[int] = []
        self._dates: list[datetime] = []
        for row in rows:
            is_old = row["key_id"] is None and (links.seals(row) or not keys.keys)
            try:
                if is_believed(row, keys):
                    self._add(row)
                elif is_old:
                    # From before entries had keys: it names only what others follow.
                    self._sealed_hashes |= set(detail_of(row)["followed"])
            except MALFORMED:
                self.broken.append(Broken(row["seq"], "its detail is no removal's"))

    def _add(self, row: Row) -> None:
        detail = detail_of(row)
        before, newest = (datetime.fromisoformat(detail[name]) for name in ("before", "newest"))
        age = max(MIN_AGE, timedelta(days=detail["days"]))
        if before > row["at"] - age + SKEW or newest >= before:
            self.broken.append(Broken(row["seq"], "it removed entries that were not old enough"))
            return
        for chain, (first, _, last, digest) in detail["chains"].items():
            if self.last.get(chain, first - 1) != first - 1:
                why = "between it and the removal before it, entries are missing"
                self.broken.append(Broken(row["seq"], why))
            self.last[chain] = last
            self._hashes.add(digest)
        self._hashes |= set(detail["followed"])
        self._newest = newest if self._newest is None else max(self._newest, newest)
        self._seqs.append(row["seq"])
        self._dates.append(max([row["at"], *self._dates[-1:]]))

    def explain(self, row: Row) -> bool:
        """Return whether the entry that `row` follows was removed."""
        if row["previous"] in self._hashes:
            number: int = row["number"]
            return number == 1 or self.last.get(row["chain"]) == number - 1
        return row["key_id"] is None and row["previous"] in self._sealed_hashes

    def contradiction(self, row: Row) -> str | None:
        """Return why an entry cannot be there, or None."""
        if row["number"] <= self.last.get(row["chain"], 0):
            return "retention had removed it: somebody has put it back"
        if self._newest is not None and row["at"] < self._newest - SKEW:
            return "it is older than what retention has removed: somebody has put it there"
        place = bisect_left(self._seqs, row["seq"])
        if place and row["at"] < self._dates[place - 1] - SKEW:
            return (
                "it is older than a removal before it: when retention removed entries, the "
                "clock was ahead"
            )
        return None
