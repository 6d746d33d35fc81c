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


DIFFERENCES: list[Difference] = [
    Difference(
        "store.put_get_delete",
        "$[3][0]",
        "an item that is overwritten keeps its creation date",
    ),
    Difference(
        "store.refused",
        "$[5]*",
        "a search without a prefix, which the schema allows, is one of everything; stock fails (500)",
    ),
    Difference(
        "store.search_with_unknown_operator",
        "$.body.detail",
        "the message names the operators there are",
    ),
]


def listed(scenario: str) -> list[Difference]:
    """The deliberate differences of one scenario."""
    return [difference for difference in DIFFERENCES if difference.scenario == scenario]
