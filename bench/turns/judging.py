"""Judging: what became of each act of a turn: it was applied, it was offered, or it was missed."""

from bench.turns import Act
from bench.turns.case import ENRICHES, Case, Outcome, outcome
from bench.turns.commands import commanded
from bench.turns.given import is_beside, is_excluded, is_given
from bench.turns.situations import CUSTOMERS
from bench.turns.world import World


def judge(case: Case, act: Act) -> Outcome:
    """Say what became of an act."""
    match act["kind"]:
        case "Answer" | "Correct" | "Include":
            return _gave(case, act)
        case "Exclude":
            return outcome(is_excluded(case.before, case.after, act))
        case "Consent":
            return _agreed(case, act) if act["yes"] else outcome(_refused(case, act))
        case "Command":
            return commanded(case, act)
    # Words that ask for no effect. What else has happened counts as unasked.
    return outcome(case.is_answered)


def _gave(case: Case, act: Act) -> Outcome:
    """Say what became of values."""
    field = act.get("field") or act["what"]
    if is_beside(case.before, case.after, case.turn["acts"], field):
        return "missed"
    done = is_given(case.before, case.after, act) and (case.understood(act) or bool(act["value"]))
    return outcome(done, field == "customers" and _is_full(case, act))


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
            return outcome(found.searched or confirmed, case.waits(act, to))
        case "rerun":
            return outcome(found.searched, case.waits(act, "rerun", "context_change"))
        case "enrich":
            return outcome(bool(found.named), case.waits(act, *ENRICHES))
        case "context_change":
            kept = not after.change and is_given(case.before, after, _pending(case.before))
            return outcome(found.searched or kept, case.waits(act, to))
        case "start_over":
            return outcome(found.locked or not after.stored, case.waits(act, to))
    return outcome(case.understood(act))


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
