"""Retention rules: which checkpoints of a thread are kept, as `sql.retention` configures them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

_KEYS = ("graph", "keep", "metadata")
_SYNTAX = "'all', 'latest', {'last': N} or {'days': N}"
_LARGEST = 1_000_000
# Ids of checkpoints are UUIDs of version 6: 100 nanoseconds since this date, as text in order.
_VERSION_AT, _VERSION = 14, "6"
_TICKS_TO_1970 = 0x01B21DD213814000


@dataclass(frozen=True, kw_only=True)
class KeepRule:
    """What is kept of the threads that a rule is about. Without a bound, everything.

    Attributes:
        graph: Only threads of this graph; None is every graph.
        metadata: Only threads with these entries in their metadata.
        last: The number of newest checkpoints that are kept.
        days: The age in days up to which checkpoints are kept.
    """

    graph: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    last: int | None = None
    days: float | None = None

    @property
    def keeps_all(self) -> bool:
        """Return whether the rule deletes nothing."""
        return self.last is None and self.days is None

    def concerns(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether the rule is about a thread with this metadata."""
        if self.graph is not None and metadata.get("graph_id") != self.graph:
            return False
        return all(
            name in metadata and metadata[name] == value for name, value in self.metadata.items()
        )

    def expendable(self, ids: Sequence[str], now: datetime) -> list[str]:
        """Return the checkpoints of the graph itself that the rule does not keep.

        Args:
            ids: The ids of the thread's checkpoints, without those of subgraphs.
            now: The current time.
        """
        newest_first = sorted(ids, reverse=True)
        if self.last is not None:
            return newest_first[self.last :]
        if self.days is not None:
            first = _first_id(now - timedelta(days=self.days))
            # The newest one stays: without it the thread could not continue.
            return [each for each in newest_first[1:] if _has_date(each) and each < first]
        return []


def rule_of(rules: Sequence[KeepRule], metadata: Mapping[str, Any]) -> KeepRule | None:
    """Return the first rule that is about a thread, if it deletes anything."""
    found = next((each for each in rules if each.concerns(metadata)), None)
    return None if found is None or found.keeps_all else found


class BadRule(ValueError):
    """A rule that cannot be used.

    Attributes:
        key: Its place below `sql.retention`, as `checkpoints[0].keep`.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


def parse(section: Any) -> tuple[KeepRule, ...]:
    """Read the list `sql.retention.checkpoints`.

    Raises:
        BadRule: a key is unknown, or a value is not usable.
    """
    if not isinstance(section, list):
        raise BadRule("checkpoints", "must be a list of rules")
    return tuple(_rule(f"checkpoints[{at}]", each) for at, each in enumerate(section))


def _rule(key: str, section: Any) -> KeepRule:
    if not isinstance(section, dict):
        raise BadRule(key, "must be an object")
    if unknown := sorted(section.keys() - set(_KEYS)):
        raise BadRule(f"{key}.{unknown[0]}", f"unknown key; there are {', '.join(_KEYS)}")
    graph, metadata = section.get("graph"), section.get("metadata", {})
    if graph is not None and not isinstance(graph, str):
        raise BadRule(f"{key}.graph", "must be the name of a graph")
    if not isinstance(metadata, dict):
        raise BadRule(f"{key}.metadata", "must be an object")
    return KeepRule(graph=graph, metadata=metadata, **_bound(f"{key}.keep", section.get("keep")))


def _bound(key: str, keep: Any) -> dict[str, Any]:
    if keep == "all":
        return {}
    if keep == "latest":
        return {"last": 1}
    if not isinstance(keep, dict) or len(keep) != 1 or not keep.keys() <= {"last", "days"}:
        raise BadRule(key, f"must be {_SYNTAX}")
    [(name, value)] = keep.items()
    if name == "last" and type(value) is int and 0 < value <= _LARGEST:
        return {"last": value}
    if name == "days" and type(value) in (int, float) and 0 < value <= _LARGEST:
        return {"days": value}
    raise BadRule(f"{key}.{name}", f"must be from 1 to {_LARGEST:,}, not {value!r}")


def _first_id(moment: datetime) -> str:
    """Return the text before which all ids are older than a moment."""
    ticks = int(moment.timestamp() * 1_000_000) * 10 + _TICKS_TO_1970
    high = f"{ticks >> 12:012x}"
    return f"{high[:8]}-{high[8:]}-{_VERSION}{ticks & 0xFFF:03x}"


def _has_date(checkpoint_id: str) -> bool:
    return len(checkpoint_id) > _VERSION_AT and checkpoint_id[_VERSION_AT] == _VERSION
