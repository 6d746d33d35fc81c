"""Applying: from the acts of a message to what may be done. Pure functions; here code decides.

1. An act whose quote does not stand in the message, or does not say it, is dropped: its words are unheard.
2. Names and numbers are resolved by code against what is on the table.
3. What spends, deletes or hides is sure only if the person's own words ask for it, without doubt, condition
   or question; otherwise a button asks.
4. Corrections and exclusions come first, then answers, then commands, and consent last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.reading import commands
from my_agent.icp_finder.reading.giving import exclude, give
from my_agent.icp_finder.reading.heard import Heard, has_data, nothing, order
from my_agent.icp_finder.reading.ordering import asks, command
from my_agent.icp_finder.reading.questions import AGREED, REFUSED, Question
from my_agent.icp_finder.reading.situation import Situation
from my_agent.icp_finder.reading.turn import Turn
from my_agent.understanding import acts as of
from my_agent.understanding import meaning, names, quotes, words
from my_agent.web.sites import domain

# The command whose words may stand in a yes to a question; other questions have their own kind's.
_NAMED_BY = {"confirm_icp": "search", "context_change": "search", "rerun": "search"}


@dataclass
class Applied:
    """What a message says, and the option of the waiting question that it chooses."""

    heard: Heard
    choice: str | None = None  # the option; None if it chooses none
    unsure: bool = False  # whether it agreed in words that are not sure: the question waits on


def apply(
    situation: Situation, message: str, reading: of.Reading, by: Literal["code", "model"]
) -> Applied:
    """Return what the acts of a message say.

    Args:
        situation: what the message is read against.
        message: the message.
        reading: its acts.
        by: who read it.
    """
    turn = Turn(situation, message, {**nothing(), "by": by}, reading.language)
    found = [(act, quotes.find(act.quote, message)) for act in reading.acts]
    placed, in_order = [(act, span) for act, span in found if span is not None], list(_DO)
    turn.placed = sorted(placed, key=lambda each: in_order.index(type(each[0])))
    for act, _ in list(turn.placed):
        _DO[type(act)](turn, act)
    _finish(turn)
    return Applied(turn.heard, turn.choice, turn.unsure)


def _consent(turn: Turn, act: of.Consent) -> None:
    asking, kind = turn.situation.asking, turn.situation.open_question
    if asking is None and (kind == "customers" or (act.to == "customers" and not act.yes)):
        # `No more` and `carry on with these` say the same.
        turn.heard["enough"] = True
    elif not act.yes:
        if kind == "website" and act.to in ("", kind):
            turn.heard["notes"].append(prompts.NEEDS_WEBSITE)
        elif asking is not None and turn.choice is None and act.to in ("", kind):
            turn.choice = REFUSED[asking["kind"]]
        return
    if asking is None or asking["kind"] not in AGREED or act.to not in ("", kind):
        return
    if words.has_agreement(act.quote) and _names_what_is_asked(turn, act, asking):
        turn.choice = AGREED[asking["kind"]]
    else:
        turn.unsure = True


def _names_what_is_asked(turn: Turn, act: of.Consent, asking: Question) -> bool:
    """Return whether every word of a message agrees, or names what a question proposes."""
    offered = asking["details"].get("orders", []) if asking["kind"] == "offer" else []
    keys = {key for each in offered for key in each["keys"] or []}
    some = names.hinted(act.quote, [each for each in turn.situation.listed if each.key in keys])
    if some and some != keys:
        return False  # A yes to a part is none to all.
    about = ["reject" if each["name"] == "exclude" else each["name"] for each in offered]
    known = [one for each in offered for one in each.get("names", [])]
    about = about or [_NAMED_BY.get(asking["kind"], asking["kind"])]
    return asks(turn, act, *about, known=known)


def _dispute(turn: Turn, act: of.Dispute) -> None:
    found = names.resolve([act.target], act.quote, turn.situation.listed)
    turn.heard["orders"].append(order("dispute", found.keys[:1] or None, act.target))


def _ask(turn: Turn, act: of.Ask) -> None:
    """Add a question. Why something was done or is asked is about the record, not the product."""
    about = act.about
    if about == "why" or meaning.asks_why(act.quote):
        is_enrich = commands.is_evidence("enrich", turn.message)
        is_ask = meaning.is_about_asking(act.quote)
        about = "why_enrich" if is_enrich else "why_ask" if is_ask else about
    turn.heard["orders"].append(order("ask", words=about))


def _talk(turn: Turn, act: of.SmallTalk) -> None:
    turn.heard["orders"].append(order("talk", words=words.small_talk(act.quote) or ""))


def _unclear(turn: Turn, act: of.Unclear) -> None:
    turn.heard["unheard"].append(act.quote)


# What the acts do, in the order in which they do it.
_DO: dict[type, Callable[[Turn, Any], None]] = {
    of.Correct: give,
    of.Exclude: exclude,
    of.Include: give,
    of.Answer: give,
    of.Command: command,
    of.Dispute: _dispute,
    of.Ask: _ask,
    of.SmallTalk: _talk,
    of.Consent: _consent,
    of.Unclear: _unclear,
}


def _finish(turn: Turn) -> None:
    """Decide what the parts of a message mean together."""
    heard, asking = turn.heard, turn.situation.asking
    heard["unheard"] = list(dict.fromkeys([*heard["unheard"], *turn.dropped]))
    heard["without"] = list(dict.fromkeys(heard["without"]))
    _answer_by_order(turn)
    _answer_by_wish(turn)
    if turn.choice or turn.unsure or heard["wish"]:
        heard["orders"] = [each for each in heard["orders"] if each["name"] != "talk"]
    if turn.choice == "change" and has_data(heard):
        turn.choice = None
    if turn.choice or turn.unsure:
        _without_restated(turn)
    changes = has_data(heard) and not (heard["enough"] and not heard["icp"])
    is_open = (
        changes or heard["notes"] or heard["unheard"] or any(not e["sure"] for e in heard["orders"])
    )
    if is_open and asking and turn.choice and turn.choice == AGREED.get(asking["kind"]):
        # What is changed or not understood is shown before anything costs.
        turn.choice, turn.unsure = None, not changes
    if is_open and heard["wish"] is not None:
        heard["wish"]["sure"] = False
    known = {each.key: each.name for each in turn.situation.listed}
    for each in (*heard["orders"], heard["wish"]):
        if each and not each["sure"] and each["keys"]:
            each["names"] = [known.get(key, key) for key in each["keys"]]
    said = heard["orders"] or heard["wish"] or heard["stray"] or heard["notes"] or has_data(heard)
    if not (said or turn.choice or turn.unsure or heard["unheard"]) and turn.message.strip():
        heard["unheard"] = [" ".join(turn.message.split())[:200]]


def _without_restated(turn: Turn) -> None:
    """Leave out what a message says and is so already: it does not stand in the way of a yes."""
    heard, known = turn.heard, turn.situation
    heard["icp"] = {n: new for n, new in heard["icp"].items() if new != values.of(known.icp, n)}
    customers = heard["customers"]
    heard["customers"] = [each for each in customers if domain(each) not in known.customers]
    if heard["website"] and domain(heard["website"]) == known.website:
        heard["website"] = None


def _answer_by_order(turn: Turn) -> None:
    """Let orders that are sure answer the offer of the same orders."""
    heard, asking = turn.heard, turn.situation.asking
    if asking is None or asking["kind"] != "offer" or turn.choice:
        return
    same = [(each["name"], each["keys"]) for each in asking["details"].get("orders", [])]
    done = [e for e in heard["orders"] if e["sure"] and (e["name"], e["keys"]) in same]
    if same and len(done) == len(same):
        turn.choice, turn.unsure = AGREED["offer"], False
        heard["orders"] = [each for each in heard["orders"] if each not in done]


def _answer_by_wish(turn: Turn) -> None:
    """Let a command answer the open question if it names what the question proposes."""
    heard, asking = turn.heard, turn.situation.asking
    wish = heard["wish"]
    if wish is None or asking is None:
        return
    kind, name = asking["kind"], wish["name"]
    agreed = turn.choice == AGREED.get(kind)
    if name == "enrich" and kind == "enrich" and turn.choice != REFUSED["enrich"]:
        # The command says which. If it names none, it is about those of the question.
        turn.choice, turn.unsure = None, False
        if wish["keys"] is None:
            is_sure, heard["wish"] = wish["sure"] or agreed, None
            turn.choice, turn.unsure = AGREED[kind] if is_sure else None, not is_sure
        return
    answer = {
        "new_session": {"context_change": "new", "new_session": "new"},
        "start_over": {"start_over": "start_over"},
        "search": {each: AGREED[each] for each in ("rerun", "confirm_icp", "context_change")},
    }.get(name, {}).get(kind)
    if answer is not None:
        turn.choice = turn.choice or (answer if wish["sure"] else None)
        turn.unsure = turn.choice is None
        heard["wish"] = None
