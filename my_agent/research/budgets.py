"""Budgets: what a project may spend. They are checked before each call, never after."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from math import ceil, floor

from my_agent.research.settings import ResearchSettings

STAGES = ("planning", "searching", "extracting", "analyzing", "reporting")
Usage = dict[str, dict[str, float]]
"""What was spent, by stage and budget."""

# Budgets of which the report has a reserve, and those of which a stage may spend a share only.
_RESERVED = ("tokens", "model_calls", "seconds")
_SHARED = ("tokens", "model_calls", "seconds")
_COUNTED = ("tokens", "model_calls", "fetches", "bytes")


@dataclass(frozen=True)
class Budgets:
    """The budgets of a project.

    Attributes:
        tokens: tokens of the model, of questions and answers.
        model_calls: calls of the model.
        fetches: searches and pages, with repetitions.
        bytes: bytes of pages.
        seconds: seconds of work.
    """

    tokens: float
    model_calls: float
    fetches: float
    bytes: float
    seconds: float

    @classmethod
    def of(cls, settings: ResearchSettings, wanted: Mapping[str, float] | None = None) -> "Budgets":
        """Return the operator's limits, lowered to those that the user wants."""
        most = {
            "tokens": settings.research_max_tokens,
            "model_calls": settings.research_max_model_calls,
            "fetches": settings.research_max_fetches,
            "bytes": settings.research_max_bytes,
            "seconds": settings.research_max_seconds,
        }
        wanted = wanted or {}
        return cls(**{name: min(value, wanted.get(name, value)) for name, value in most.items()})


NAMES = tuple(each.name for each in fields(Budgets))


class Budget:
    """What is left of the budgets.

    Args:
        limits: the project's limits.
        usage: what was spent before.
        share: the share of a budget that one stage may spend.
        reserve: the share that only the report may spend.
    """

    def __init__(self, limits: Budgets, usage: Usage, share: float, reserve: float) -> None:
        self.limits = limits
        self.usage: Usage = {stage: dict(spent) for stage, spent in usage.items()}
        self.spent: Usage = {}
        self._share, self._reserve = share, reserve

    def left(self, name: str, stage: str) -> float:
        """Return what a stage may still spend of a budget."""
        limit = float(getattr(self.limits, name))
        everything = sum(spent.get(name, 0) for spent in self.usage.values())
        here = self.usage.get(stage, {}).get(name, 0)
        # Calls are whole: a small budget must still allow one, and one for the report.
        down, up = (floor, ceil) if name == "model_calls" else (float, float)
        available = limit
        if name in _RESERVED and stage != "reporting":
            available = down(limit * (1 - self._reserve))
        left = available - everything
        if name in _SHARED and stage != "reporting":
            left = min(left, up(limit * self._share) - here)
        return max(0.0, left)

    def missing(self, stage: str, **wanted: float) -> str | None:
        """Return the name of a budget that does not allow a call, or None.

        Args:
            stage: the stage of the call.
            wanted: the most that the call can spend, by budget.
        """
        for name, amount in wanted.items():
            if amount > self.left(name, stage):
                return name
        return None if self.left("seconds", stage) > 0 else "seconds"

    def spend(self, stage: str, **spent: float) -> None:
        """Add what was spent, to `usage` and to `spent`, what this worker has spent."""
        self.usage = add(self.usage, {stage: spent})
        self.spent = add(self.spent, {stage: spent})


def add(usage: Usage | None, more: Usage | None) -> Usage:
    """Return the sum of two usages; `more` None: nothing was spent. A reducer of the state."""
    if more is None:
        return {}
    total = {stage: dict(spent) for stage, spent in (usage or {}).items()}
    for stage, spent in more.items():
        here = total.setdefault(stage, {})
        for name, amount in spent.items():
            here[name] = here.get(name, 0) + amount
    return total


def totals(usage: Usage) -> dict[str, float]:
    """Return what was spent by budget, over all stages."""
    found = {name: round(sum(spent.get(name, 0) for spent in usage.values()), 1) for name in NAMES}
    return {name: int(value) if name in _COUNTED else value for name, value in found.items()}


def described(names: Iterable[str], limits: Budgets) -> list[str]:
    """Return the exhausted budgets with their values, for people."""
    values = asdict(limits)
    return [f"{name} ({values[name]:g})" for name in names if name in values]
