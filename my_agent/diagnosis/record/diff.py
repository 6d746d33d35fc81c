"""Diff: what two states of a session have that the other one lacks, and what differs. Pure."""

from typing import Any

from my_agent.diagnosis.record.fold import State

Json = dict[str, Any]

SINGLE = ("title", "leading", "confidence", "question", "conclusion")
NAMED = ("sources", "observations", "hypotheses")
LISTED = {"messages": "id", "notes": "seq"}
"""Lists of the newest ones, and what names one. What left a list is not gone."""


def diff(before: State, after: State) -> Json:
    """Return what became of a state.

    Args:
        before: the one state.
        after: the other one. It may be earlier, or of another path of the session.

    Returns:
        `events` that were added by type; each single value that differs as `{"before", "after"}`;
        `sources`, `observations` and `hypotheses` as `added`, `removed` and `changed`, where a
        change has each field that differs; and `messages` and `notes` that only `after` has.
    """
    found: Json = {"events": _events(before["counts"], after["counts"])}
    for name in SINGLE:
        if before.get(name) != after.get(name):
            found[name] = _pair(before.get(name), after.get(name))
    for name in NAMED:
        found[name] = _named(before[name], after[name])
    for name, key in LISTED.items():
        known = {each[key] for each in before[name]}
        found[name] = [each for each in after[name] if each[key] not in known]
    return found


def _events(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    names = sorted({*before, *after})
    counted = {name: after.get(name, 0) - before.get(name, 0) for name in names}
    return {name: count for name, count in counted.items() if count}


def _named(before: Json, after: Json) -> Json:
    both = [name for name in before if name in after]
    return {
        "added": {name: each for name, each in after.items() if name not in before},
        "removed": {name: each for name, each in before.items() if name not in after},
        "changed": {
            name: _changed(before[name], after[name])
            for name in both
            if before[name] != after[name]
        },
    }


def _changed(before: Json, after: Json) -> Json:
    """Return the fields that differ; of tests, which ones, with both results."""
    found: Json = {}
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if one == other:
            continue
        if name == "tests" and isinstance(one, dict) and isinstance(other, dict):
            found[name] = {
                test: _pair(one.get(test), other.get(test))
                for test in sorted({*one, *other})
                if one.get(test) != other.get(test)
            }
        else:
            found[name] = _pair(one, other)
    return found


def _pair(before: Any, after: Any) -> Json:
    return {"before": before, "after": after}
