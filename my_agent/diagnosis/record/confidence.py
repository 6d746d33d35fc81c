"""Confidence: computed from the results of tests, and from nothing else.

A result counts only with observations behind it, and each observation counts once, however many
tests name it. Repeating evidence, or wording a hypothesis with more conviction, changes nothing.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

WEIGHTS: dict[str, float] = {
    # Words of the evidence show the cause itself.
    "evidence": 1.6,
    # Another observation, independent of the first, shows the cause or its effect.
    "corroboration": 1.6,
    # What it leads to comes after it.
    "order": 1.2,
    # What must be there if it is right is there.
    "prediction": 0.8,
    # Nothing that was read says the opposite.
    "contradiction": 1.6,
    # Who proposes it names no line that speaks against it.
    "doubt": 0.3,
    # Tests of earlier releases, whose sessions keep their results.
    "signature": 1.6,
    "propagation": 1.3,
    "metric": 1.0,
    "novelty": 0.6,
    "origin": 0.6,
}
"""The tests, and what a passed one adds to the log-odds of a hypothesis."""

# A failed test takes away more than a passed one adds: one contradiction outweighs a hint.
FAILED = 1.5
PRIOR = -1.6
# Without a passed test nothing is more than a guess, and nothing is ever certain.
UNTESTED, CERTAIN = 0.3, 0.95
SUPPORTED, REFUTED = 0.75, 0.1
WITNESSED = {"evidence", "corroboration"}
"""Tests that a supported hypothesis needs: they rest on two independent lines."""
INDEPENDENT = 2
"""Observations of another source, component or kind that a hypothesis of an earlier release needs."""
# The leading hypothesis must be this much ahead of one with another cause.
MARGIN = 0.1


def judge(
    tests: Mapping[str, Any], observations: Mapping[str, Mapping[str, Any]]
) -> tuple[float, str]:
    """Return the confidence in an investigated hypothesis, from 0 to 1, and its status.

    Args:
        tests: `{"outcome", "evidence"}` by test.
        observations: what was observed, by id.
    """
    odds, used, counted = PRIOR, set[str](), set[str]()
    for name, behind in _passed(tests):
        fresh = behind - used
        # What another test counts already adds nothing here.
        if fresh:
            odds += WEIGHTS.get(name, 0.0)
            used |= fresh
            counted.add(name)
    failed = [name for name, test in tests.items() if test["outcome"] == "failed"]
    odds -= sum(WEIGHTS.get(name, 0.0) * FAILED for name in failed)
    share = 1 / (1 + math.exp(-odds))
    share = round(min(share, CERTAIN if used else UNTESTED), 4)
    kinds = {_kind(observations[each]) for each in used if each in observations}
    if share >= SUPPORTED and (counted >= WITNESSED or len(kinds) >= INDEPENDENT):
        return share, "supported"
    return share, "refuted" if share <= REFUTED and failed else "investigating"


def _passed(tests: Mapping[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield the passed tests and the observations for them, those that weigh most first."""
    for name in sorted(tests, key=lambda each: -WEIGHTS.get(each, 0.0)):
        if tests[name]["outcome"] == "passed":
            behind = tests[name]["evidence"]
            yield name, {each["observation"] for each in behind if each["direction"] == "for"}


def _kind(observation: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what makes two observations independent if it differs."""
    return observation["source"], observation["kind"], observation["service"]
