"""Commands: what became of an act that asks for an action."""

from collections.abc import Callable
from typing import Any

from bench.turns import Act, aimed_at
from bench.turns.case import ENRICHES, Case, Outcome, outcome
from bench.turns.situations import key
from bench.turns.values import folded

_VERDICTS = {"reject": "rejected", "keep": "kept", "like": "liked", "restore": None}
# Questions that do a search if they are answered with yes.
_SEARCHES = ("rerun", "confirm_icp", "context_change")


def commanded(case: Case, act: Act) -> Outcome:
    """Say what became of a command."""
    name, aims = act["name"], aimed_at(case.turn, act)
    found = case.effects
    if aims is None and name in ("reject", "enrich", "explain", *_VERDICTS):
        listed = case.turn["situation"]["listed"]
        if len(listed) != 1:
            nothing = not found.judged and not found.named
            return outcome(case.is_answered and nothing)
        aims = [1]
    if name in _VERDICTS:
        done = _has_verdict(case, name, aims or [])
        return outcome(done, case.waits(act, "offer") and _offers(case, name, aims or []))
    if name == "enrich":
        return _enriched(case, act, aims or [])
    if name == "search":
        return outcome(found.searched, case.waits(act, *_SEARCHES))
    if name in ("start_over", "new_session"):
        return outcome(found.locked, case.waits(act, name, "start_over", "new_session"))
    if name in ("explain", "tell"):
        return outcome(case.understood(act) and _names(case, aims or []))
    return outcome(case.understood(act))


def _has_verdict(case: Case, name: str, aims: list[int]) -> bool:
    """Return whether exactly the targets of such commands have the verdict."""
    wanted, turn = _VERDICTS[name], case.turn
    every = [each for each in turn["acts"] if each["kind"] == "Command" and each["name"] == name]
    all_aims = [number for each in every for number in aimed_at(turn, each) or aims]
    after, own = case.after.verdicts, case.keys(aims)
    more = {at for at in case.effects.judged if after.get(at) == wanted} - case.keys(all_aims)
    return all(after.get(at) == wanted for at in own) and not more


def _enriched(case: Case, act: Act, aims: list[int]) -> Outcome:
    """Return whether exactly the targets were enriched, or are offered by a question."""
    own, found = case.keys(aims), case.effects
    done = bool(own) and own <= found.named and found.enriched <= own
    return outcome(done, case.waits(act, *ENRICHES) and _offers(case, "enrich", aims))


def _offers(case: Case, command: str, aims: list[int]) -> bool:
    """Return whether the question that waits is about a command on exactly these candidates."""
    details = (case.after.waiting or {}).get("details") or {}
    listed = [each for each in case.turn["situation"]["listed"] if each["number"] in aims]
    names: list[Callable[[dict[str, Any]], object]] = [
        key,
        lambda each: each["number"],
        lambda each: each["name"],
    ]
    wanted = [{name(each) for each in listed} for name in names]
    for value in details.values():
        for each in value if isinstance(value, list) else []:
            of_command = isinstance(each, dict) and each.get("name") == command
            if of_command and set(each.get("keys") or []) == wanted[0]:
                return True
    # Without a name, a question is about enrichment.
    for value in details.values() if command == "enrich" else ():
        if isinstance(value, list) and all(isinstance(each, str | int) for each in value):
            if set(value) in wanted:
                return True
        elif isinstance(value, int) and not isinstance(value, bool) and value == len(listed):
            return True
    return False


def _names(case: Case, aims: list[int]) -> bool:
    """Return whether the answer names all of these candidates."""
    said = folded(case.after.said)
    listed = case.turn["situation"]["listed"]
    return all(folded(each["name"]) in said for each in listed if each["number"] in aims)
