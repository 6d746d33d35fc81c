"""Where our answer differs from stock on purpose, and why.

Each entry must occur: a difference that is gone fails the test, so the list
cannot outlive its reasons.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """``path`` (``*`` matches anything) in the answer of ``scenario`` differs, for ``reason``."""

    scenario: str
    path: str
    reason: str


DIFFERENCES: list[Difference] = []


def listed(scenario: str) -> list[Difference]:
    """The deliberate differences of one scenario."""
    return [difference for difference in DIFFERENCES if difference.scenario == scenario]
