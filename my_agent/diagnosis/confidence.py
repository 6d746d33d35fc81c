"""Confidence: computed from the results of tests, and from nothing else.

A result counts only with observations behind it, and each test counts once. Repeating evidence,
or wording a hypothesis with more conviction, changes nothing.
"""

import math
from collections.abc import Mapping
from typing import Any

WEIGHTS: dict[str, float] = {
    # The service itself shows the signs of the fault, and did not before.
    "signature": 1.6,
    # Its first sign comes before those of the services that depend on it.
    "order": 1.2,
    # Errors of its callers, or traces, lead to it.
    "propagation": 1.3,
    # A metric of the fault changes at that time.
    "metric": 1.0,
    # The signs were there long before the incident, or belong to a service beside it.
    "novelty": 0.6,
    # Its own errors do not lead on to a service that failed before.
    "origin": 0.6,
}
"""The tests, and what a passed one adds to the log-odds of a hypothesis."""

# A failed test takes away more than a passed one adds: one contradiction outweighs a hint.
FAILED = 1.5
PRIOR = -1.6
# Without a passed test nothing is more than a guess, and nothing is ever certain.
UNTESTED, CERTAIN = 0.3, 0.95
SUPPORTED, REFUTED = 0.75, 0.1
# The leading hypothesis must be this much ahead of one with another cause.
MARGIN = 0.1


def confidence(tests: Mapping[str, Any]) -> float:
    """Return the confidence in a hypothesis, from 0 to 1.

    Args:
        tests: `{"outcome", ...}` by test.
    """
    odds, passed = PRIOR, False
    for name, test in tests.items():
        weight = WEIGHTS.get(name, 0.0)
        if test["outcome"] == "passed":
            odds += weight
            passed = passed or weight > 0
        elif test["outcome"] == "failed":
            odds -= weight * FAILED
    share = 1 / (1 + math.exp(-odds))
    return round(min(share, CERTAIN if passed else UNTESTED), 4)


def status(tests: Mapping[str, Any], *, started: bool) -> str:
    """Return the status of a hypothesis: proposed, investigating, supported or refuted."""
    if not started:
        return "proposed"
    share = confidence(tests)
    outcomes = {test["outcome"] for test in tests.values()}
    if share >= SUPPORTED and "passed" in outcomes:
        return "supported"
    return "refuted" if share <= REFUTED and "failed" in outcomes else "investigating"
