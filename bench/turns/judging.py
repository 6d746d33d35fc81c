"""Judging: what became of each act of a turn: it was applied, it was offered, or it was missed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from bench.turns import Act, Turn, aimed_at
from bench.turns.answers import is_misunderstood
from bench.turns.effects import Effects
from bench.turns.given import is_beside, is_excluded, is_given
from bench.turns.situations import CUSTOMERS, key
from bench.turns.values import folded
from bench.turns.world import World

Outcome = Literal["applied", "offered", "missed"]

_VERDICTS = {"reject": "rejected", "keep": "kept", "like": "liked", "restore": None}
# Questions that do a search if they are answered with yes.
_SEARCHES = ("rerun", "confirm_icp", "context_change")
_ENRICHES = ("enrich", "offer")


@dataclass(frozen=True)
class Case:
    """A turn that was played.

    Attributes:
        turn: the turn.
        before: the world before its message.
        after: the world after it.
        effects: the difference.
    """

    turn: Turn
    before: World
    after: World
    effects: Effects

    def understood(self, act: Act) -> bool:
        """Return whether there is an answer that does not say the contrary of an act."""
        return self.is_answered and not is_misunderstood(self.after.said, act["quote"])

    @property
    def is_answered(self) -> bool:
        """Return whether there is an answer."""
        return bool(self.after.said.strip())

    def waits(self, act: Act, *kinds: str) -> bool:
        """Return whether one of these questions waits, and an act was understood."""
        return self.understood(act) and self.after.asks in kinds

    def keys(self, numbers: list[int]) -> set[str]:
        """Return the keys of listed candidates."""
        listed = self.turn["situation"]["listed"]
        return {key(each) for each in listed if each["number"] in numbers}


def judge(case: Case, act: Act) -> Outcome:
    """Say what became of an act."""
    match act["kind"]:
        case "Answer" | "Correct" | "Include":
            return _gave(case, act)
        case "Exclude":
            return _outcome(is_excluded(case.before, case.after, act))
        case "Consent":
            return _agreed(case, act) if act["yes"] else _outcome(_refused(case, act))
        case "Command":
            return _commanded(case, act)
    # Words that ask for no effect. What else has happened counts as unasked.
    return _outcome(case.is_answered)


def _outcome(done: bool, offered: bool = False) -> Outcome:
    return "applied" if done else "offered" if offered else "missed"


def _gave(case: Case, act: Act) -> Outcome:
    """Say what became of values."""
    field = act.get("field") or act["what"]
    if is_beside(case.before, case.after, case.turn["acts"], field):
        return "missed"
    done = is_given(case.before, case.after, act) and (case.understood(act) or bool(act["value"]))
    return _outcome(done, field == "customers" and _is_full(case, act))


def _is_full(case: Case, act: Act) -> bool:
    """Return whether the answer is about a customer for whom there was no place."""
    full = len(case.before.profile["customers"]) >= CUSTOMERS and act["kind"] != "Correct"
    return full and case.understood(act) and all(each in case.after.said for each in act["value"])


def _agreed(case: Case, act: Act) -> Outcome:
    found, after, to = case.effects, case.after, act["to"]
    match to:
        case "confirm_icp":
            confirmed = bool(after.values.get("confirmed")) and not case.before.values.get(
                "confirmed"
            )
            return _outcome(found.searched or confirmed, case.waits(act, to))
        case "rerun":
            return _outcome(found.searched, case.waits(act, "rerun", "context_change"))
        case "enrich":
            return _outcome(bool(found.named), case.waits(act, *_ENRICHES))
        case "context_change":
            kept = not after.change and is_given(case.before, after, _pending(case.before))
            return _outcome(found.searched or kept, case.waits(act, to))
        case "start_over":
            return _outcome(found.locked or not after.stored, case.waits(act, to))
    return _outcome(case.understood(act))


def _pending(world: World) -> Act:
    """Return the change that waits as an act."""
    field, value = next(iter(world.change.items()), ("keywords", []))
    return {"kind": "Answer", "field": field, "value": value}


def _refused(case: Case, act: Act) -> bool:
    found, to = case.effects, act["to"]
    if to in ("website", "customers"):
        return case.understood(act) and not found.kinds
    spent = bool(found.enriched) if to == "enrich" else found.searched
    return case.understood(act) and not spent and not found.locked and case.after.asks != to


def _commanded(case: Case, act: Act) -> Outcome:
    name, aims = act["name"], aimed_at(case.turn, act)
    found = case.effects
    if aims is None and name in ("reject", "enrich", "explain", *_VERDICTS):
        listed = case.turn["situation"]["listed"]
        if len(listed) != 1:
            nothing = not found.judged and not found.named
            return _outcome(case.is_answered and nothing)
        aims = [1]
    if name in _VERDICTS:
        done = _has_verdict(case, name, aims or [])
        return _outcome(done, case.waits(act, "offer") and _offers(case, name, aims or []))
    if name == "enrich":
        return _enriched(case, act, aims or [])
    if name == "search":
        return _outcome(found.searched, case.waits(act, *_SEARCHES))
    if name in ("start_over", "new_session"):
        return _outcome(found.locked, case.waits(act, name, "start_over", "new_session"))
    if name in ("explain", "tell"):
        return _outcome(case.understood(act) and _names(case, aims or []))
    return _outcome(case.understood(act))


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
    return _outcome(done, case.waits(act, *_ENRICHES) and _offers(case, "enrich", aims))


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
