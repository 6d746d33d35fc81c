"""Removals: what the entries of retention say, as far as they can be believed."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from langgraph_runtime_sql.audit.entry import fault, is_erased, unknown_key
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.database.statements import Row

MIN_AGE = timedelta(days=1)
"""The least age of entries that retention removes. It is longer than `log.MAX_IDLE`, because a chain in
memory must not continue a removed entry."""
SKEW = timedelta(hours=1)
"""Clocks of processes differ by less."""


@dataclass(frozen=True)
class Broken:
    """An entry that was changed, or whose predecessor is missing.

    Attributes:
        seq: The number of its row.
        why: What is wrong.
    """

    seq: int
    why: str


class Removals:
    """What retention removed.

    A removal with a key explains why entries are missing. One without a key explains only entries
    without a key: anybody could have written it.

    Args:
        rows: The entries of retention, in the order of their writing.
        keys: The keys of the log.

    Attributes:
        broken: What is wrong with the removals themselves.
        last: The number of the last removed entry of each chain, by removals with a key.
    """

    def __init__(self, rows: Iterable[Row], keys: Keyring) -> None:
        self.broken: list[Broken] = []
        self.last: dict[str, int] = {}
        self._hashes: set[str] = set()
        self._unkeyed_hashes: set[str] = set()
        # The newest date of a removed entry.
        self._newest: datetime | None = None
        # By their numbers: the latest date up to there.
        self._seqs: list[int] = []
        self._dates: list[datetime] = []
        for row in rows:
            if fault(row, keys) is not None or is_erased(row):
                # `verify` names it.
                continue
            if row["key_id"] is None:
                self._unkeyed_hashes |= _claimed(row)
            elif unknown_key(row, keys) is None:
                self._add(row)

    def _add(self, row: Row) -> None:
        detail = orjson.loads(row["detail"])
        before, newest = (datetime.fromisoformat(detail[name]) for name in ("before", "newest"))
        age = max(MIN_AGE, timedelta(days=detail["days"]))
        if before > row["at"] - age + SKEW or newest >= before:
            self.broken.append(Broken(row["seq"], "it removed entries that were not old enough"))
            return
        for chain, (first, _, last, _) in detail["chains"].items():
            if self.last.get(chain, first - 1) != first - 1:
                why = "between it and the removal before it, entries are missing"
                self.broken.append(Broken(row["seq"], why))
            self.last[chain] = last
        self._hashes |= _hashes(detail)
        self._newest = newest if self._newest is None else max(self._newest, newest)
        self._seqs.append(row["seq"])
        self._dates.append(max([row["at"], *self._dates[-1:]]))

    def explain(self, row: Row) -> bool:
        """Return whether the entry that `row` follows was removed."""
        if row["previous"] in self._hashes:
            number: int = row["number"]
            return number == 1 or self.last.get(row["chain"]) == number - 1
        return row["key_id"] is None and row["previous"] in self._unkeyed_hashes

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


def _hashes(detail: dict[str, Any]) -> set[str]:
    """Return the hashes of the removed entries that others may follow."""
    return {digest for _, _, _, digest in detail["chains"].values()} | set(detail["followed"])


def _claimed(row: Row) -> set[str]:
    """Return the hashes that a removal without a key names; it may hold anything."""
    try:
        detail = orjson.loads(row["detail"] or b"{}")
        followed, chains = detail.get("followed", []), detail.get("chains", {})
        return {str(each) for each in (*followed, *(part[-1] for part in chains.values()))}
    except (ValueError, TypeError, AttributeError, LookupError):
        # It explains nothing.
        return set()
