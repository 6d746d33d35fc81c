"""Applying: from the acts of a message to what may be done. Pure functions; here code decides.

1. An act whose quote does not stand in the message, or does not say it, is dropped: its words are unheard.
2. Names and numbers are resolved by code against what is on the table.
3. What spends, deletes or hides is sure only if the person's own words ask for it, without doubt, condition
   or question; otherwise a button asks.
4. Corrections and exclusions come first, then answers, then commands, and consent last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.model import SIZES
from my_agent.icp_finder.reading import commands, evidence
from my_agent.icp_finder.reading.certain import is_same
from my_agent.icp_finder.reading.heard import Heard, Order, has_data, nothing, order
from my_agent.icp_finder.reading.questions import AGREED, REFUSED
from my_agent.icp_finder.reading.situation import Situation
from my_agent.icp_finder.sites import domain
from my_agent.understanding import acts as of
from my_agent.understanding import names, quotes, words

_ORDER = (
    of.Correct,
    of.Exclude,
    of.Include,
    of.Answer,
    of.Command,
    of.Dispute,
    of.Ask,
    of.SmallTalk,
    of.Consent,
)
_FIELDS = {"website", "customers", *values.FIELDS}
# Values that the person of a list of fields may write in the singular, or that readers call otherwise.
_SAME = {
    "industry": "industries",
    "size": "sizes",
    "region": "regions",
    "keyword": "keywords",
    "company": "companies",
}

# Stands before a reason.
_BECAUSE = re.compile(
    r"(?:\b(?:because|since|weil|denn|porque|pois|já que)\b|\()[\s,:(-]*$", re.IGNORECASE
)
# The command whose words may stand in a yes to a question.
_NAMED_BY = {
    "confirm_icp": "search",
    "context_change": "search",
    "rerun": "search",
    "enrich": "enrich",
    "start_over": "start_over",
    "new_session": "new_session",
    "offer": "",
}


@dataclass
class Applied:
    """What a message says, and the option of the waiting question that it chooses.

    Attributes:
        heard: what it says.
        choice: the option; None if it chooses none.
        unsure: whether it agreed in words that are not sure: the question waits, with its buttons.
    """

    heard: Heard
    choice: str | None = None
    unsure: bool = False


@dataclass
class _Turn:
    """A message while its acts are applied."""

    situation: Situation
    message: str
    heard: Heard
    language: str = ""
    placed: list[tuple[of.Act, quotes.Span]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    choice: str | None = None
    unsure: bool = False

    def values(self, name: str) -> list[str]:
        """Return a field of the profile, with the changes so far."""
        changed = self.heard["icp"].get(name)
        return list(changed) if changed is not None else values.of(self.situation.icp, name)

    def drop(self, act: of.Act) -> None:
        """Count an act as not understood."""
        self.placed = [each for each in self.placed if each[0] is not act]
        self.dropped.append(" ".join(act.quote.split())[:200])


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
    turn = _Turn(situation, message, {**nothing(), "by": by}, reading.language)
    found = [(act, quotes.find(act.quote, message)) for act in reading.acts]
    turn.placed = [(act, span) for act, span in found if span is not None]
    turn.placed.sort(
        key=lambda each: _ORDER.index(type(each[0])) if type(each[0]) in _ORDER else 99
    )
    for act, span in list(turn.placed):
        match act:
            case of.Correct() | of.Include() | of.Answer():
                _give(turn, act, span)
            case of.Exclude():
                _exclude(turn, act, span)
            case of.Command():
                _command(turn, act, span)
            case of.Consent():
                _consent(turn, act, span)
            case of.Ask():
                _ask(turn, act)
            case of.Dispute():
                _dispute(turn, act)
            case of.SmallTalk():
                turn.heard["orders"].append(order("talk", words=words.small_talk(act.quote) or ""))
    _finish(turn)
    return Applied(turn.heard, turn.choice, turn.unsure)


# --- values of the profile -----------------------------------------------------


def _give(turn: _Turn, act: of.Correct | of.Include | of.Answer, span: quotes.Span) -> None:
    name = act.what if isinstance(act, of.Include) else act.field
    name = _SAME.get(name, name)
    old = list(act.instead_of) if isinstance(act, of.Correct) else []
    given = [
        each
        for each in act.value
        if not evidence.is_denied(each, turn.message, span, turn.language, swaps=bool(old))
    ]
    if len(given) < len(act.value) and not given:
        turn.drop(act)
    elif name in ("website", "customers", "companies", "") or (name not in _FIELDS):
        _give_sites(turn, act, span, name, old, given)
    elif name == "exclusions":
        _add_exclusions(turn, list(act.value))
    else:
        _give_values(turn, act, name, old, given)


def _give_values(
    turn: _Turn,
    act: of.Correct | of.Include | of.Answer,
    name: str,
    old: list[str],
    given: list[str],
) -> None:
    # A pronoun in the quote may stand for a value that the message names elsewhere.
    said = [
        each
        for each in given
        if evidence.says(name, each, act.quote)
        or (name != "sizes" and evidence.says(name, each, turn.message))
    ]
    new = values.clean(name, said)
    wants_any = not act.value and not old and evidence.means_any(act.quote)
    if not new and not wants_any:
        turn.drop(act)
        return
    stored = turn.values(name)
    if isinstance(act, of.Correct) and any(
        _names(name, one, each) for one in old for each in stored
    ):
        kept = [each for each in stored if not any(_names(name, one, each) for one in old)]
        at = next((i for i, each in enumerate(stored) if each not in kept), len(kept))
        after = [*kept[:at], *new, *kept[at:]]
    elif name == turn.situation.asked or (
        isinstance(act, of.Correct) and (not old or name == "sizes")
    ):
        after = new
    else:
        after = [*stored, *new]
    turn.heard["icp"][name] = (
        values.clean(name, after) if name != "sizes" else _ordered_sizes(after)
    )


def _ordered_sizes(found: Sequence[str]) -> list[str]:
    return [each for each in SIZES if each in found]


def _names(field_name: str, said: str, stored: str) -> bool:
    if field_name == "sizes":
        return stored in values.clean("sizes", [said])
    return is_same(said, stored)


def _exclude(turn: _Turn, act: of.Exclude, span: quotes.Span) -> None:
    what = _SAME.get(act.what, act.what)
    if not evidence.takes_away(turn.message, span):
        turn.drop(act)
        return
    if what in ("companies", "customers", "website"):
        _exclude_companies(turn, act)
        return
    left = []
    for value in act.value:
        if not evidence.says(what, value, act.quote):
            continue
        fields = [what] if what in values.FIELDS else []
        hit = False
        for name in (
            *fields,
            *(each for each in values.FIELDS if each not in (*fields, "exclusions")),
        ):
            stored = turn.values(name)
            kept = [each for each in stored if not _names(name, value, each)]
            if len(kept) < len(stored):
                turn.heard["icp"][name] = kept
                hit = True
                break
        if not hit:
            left.append(value)
    # Taking a size out that is not there changes nothing; other values are kept away from now on.
    _add_exclusions(turn, [] if what == "sizes" else left)
    if not turn.heard["icp"]:
        turn.drop(act)


def _add_exclusions(turn: _Turn, found: list[str]) -> None:
    if new := values.clean("exclusions", found):
        turn.heard["icp"]["exclusions"] = values.clean(
            "exclusions", [*turn.values("exclusions"), *new]
        )


def _exclude_companies(turn: _Turn, act: of.Exclude) -> None:
    """Take companies out of the customers, or hide candidates."""
    hidden: list[int | str] = []
    for value in act.value:
        label = names.fold(value).partition(" ")[0]
        own = [
            each
            for each in turn.situation.customers
            if each == _domain(value) or each.partition(".")[0] == label
        ]
        if own and label in names.fold(act.quote).replace(" ", "") + " " + names.fold(act.quote):
            turn.heard["without"] += own
        else:
            hidden.append(value)
    if hidden:
        found = names.resolve(hidden, act.quote, turn.situation.listed)
        if found.keys:
            _add_order(
                turn,
                order(
                    "reject",
                    found.keys,
                    sure=_is_sure(turn, act, "reject", found.keys),
                ),
            )
        for each in found.unknown:
            turn.heard["notes"].append(prompts.not_listed(each))
        _note_unclear(turn, found)


def _span(turn: _Turn, act: of.Act) -> quotes.Span:
    return next(span for each, span in turn.placed if each is act)


# --- websites --------------------------------------------------------------------


def _give_sites(
    turn: _Turn,
    act: of.Correct | of.Include | of.Answer,
    span: quotes.Span,
    name: str,
    old: list[str],
    given: list[str],
) -> None:
    found = [site for each in given for site in evidence.sites_in(each, act.quote)]
    asking = turn.situation.asking
    if asking is not None and asking["kind"] == "domain" and evidence.is_role(name, act.quote):
        website = str(asking["details"].get("website"))
        if {_domain(each) for each in given} <= {domain(website)}:
            found = [website]
    bare = [
        each
        for each in act.value
        if "." not in each and evidence.says("customers", each, act.quote)
    ]
    if bare and name in ("website", "customers", "companies"):
        turn.heard["notes"].append(prompts.needs_websites(bare))
    if not found:
        if not bare:
            turn.drop(act)
        return
    if (
        asking is not None
        and asking["kind"] == "domain"
        and found == [asking["details"].get("website")]
    ):
        turn.choice = {"website": "ours", "customers": "customer", "companies": "candidate"}.get(
            name
        )
    elif name == "website":
        if evidence.is_elsewhere(turn.message, span):
            turn.heard["stray"] = found[0]
        else:
            turn.heard["website"] = found[0]
    elif name == "customers":
        if isinstance(act, of.Correct):
            gone = [_domain(each) for each in old] or list(turn.situation.customers)
            labels = {names.fold(each).partition(" ")[0] for each in old}
            turn.heard["without"] += [
                each
                for each in turn.situation.customers
                if each in gone or each.partition(".")[0] in labels
            ]
        turn.heard["customers"] += found
    elif name == "companies":
        turn.heard["orders"].append(order("candidate", words=domain(found[0])))
    else:
        known = {turn.situation.website, *turn.situation.customers}
        new = [each for each in found if domain(each) not in known]
        turn.heard["stray"] = new[0] if new else None


def _domain(text: str) -> str:
    try:
        return domain(text)
    except ValueError:
        return text.casefold()


# --- commands --------------------------------------------------------------------


def _command(turn: _Turn, act: of.Command, span: quotes.Span) -> None:
    if act.name not in commands.COMMANDS:
        turn.drop(act)
        return
    targets, is_said = _keys(turn, act)
    if is_said is None:
        return
    sure = is_said and _is_sure(turn, act, act.name, targets or [])
    if act.targets in ("all", None) and act.name in (*commands.FEEDBACK, "enrich"):
        # `enrich 1-3` is not about all; `reject` alone is about none.
        numbers = names.numbers(act.quote, [each.name for each in turn.situation.listed])
        sure = sure and (act.name == "enrich" or evidence.says_all(act.quote))
        sure = sure and not (numbers and not act.exceptions)
    made = order(act.name, targets, act.reason or "", sure=sure)
    if act.name in ("undo", "stop") and turn.situation.asking is not None and sure:
        # What waits has not been done: to refuse it is to stop it, or to take it back.
        waits = turn.situation.asking["kind"]
        if act.name == "stop" or waits == "context_change":
            turn.choice = REFUSED[waits]
        if waits == "context_change" or (act.name == "stop" and not turn.situation.running):
            return
    if act.name in commands.COSTLY:
        _wish(turn, made)
    elif act.name in ("undo", "stop") or (act.name in commands.FEEDBACK and targets):
        turn.heard["orders"].append(made)
    else:
        turn.heard["orders"].append({**made, "sure": True})


def _is_sure(turn: _Turn, act: of.Act, name: str, keys: Sequence[str]) -> bool:
    """Return whether the words of an act, and those around it, ask for a command for sure."""
    is_costly = name in commands.COSTLY
    agrees = name == "enrich" and _waits(turn, "enrich") and words.has_agreement(act.quote)
    if not (commands.is_evidence(name, act.quote) or agrees):
        return False
    reason = _reason(turn, act)
    known = [
        each
        for item in turn.situation.listed
        if item.key in keys
        for each in (item.name, item.domain)
    ]
    exceptions = list(act.exceptions or []) if isinstance(act, of.Command) else []
    return evidence.is_sure(
        name,
        turn.message,
        # What costs is judged by the whole message: one sentence may take back another.
        None if is_costly else _span(turn, act),
        known=[*known, *map(str, exceptions)],
        has_exceptions=bool(exceptions),
        explained=[*([reason] if reason else []), *_explained(turn, act)],
        language=turn.language,
    )


def _reason(turn: _Turn, act: of.Act) -> quotes.Span | None:
    """Return where the reason of a command stands, with the word that introduces it."""
    found = quotes.find(act.reason or "", turn.message) if isinstance(act, of.Command) else None
    if found is None:
        return None
    lead = _BECAUSE.search(turn.message[: found[0]])
    return (lead.start() if lead else found[0], found[1])


def _keys(turn: _Turn, act: of.Command) -> tuple[list[str] | None, bool | None]:
    """Return the candidates of a command, and whether its words name them; None: it is not clear which."""
    is_said = True
    shown = [each for each in turn.situation.listed if each.number]
    aimed: list[str] | None = None
    if isinstance(act.targets, list) and act.targets:
        found = names.resolve(act.targets, act.quote, turn.situation.listed)
        turn.heard["notes"] += [_unknown(turn, each) for each in found.unknown]
        _note_unclear(turn, found)
        if not found.keys or (act.name in commands.COSTLY and not found.is_whole):
            return None, None
        aimed, is_said = found.keys, not found.unsaid
    elif act.targets == "all":
        aimed = [each.key for each in shown]
    if act.exceptions:
        left_out = names.resolve(act.exceptions, act.quote, turn.situation.listed)
        _note_unclear(turn, left_out)
        turn.heard["notes"] += [prompts.not_listed(each) for each in left_out.unknown]
        # What is not on the table needs no exception, but then the words may mean another.
        if left_out.unclear or not left_out.keys:
            return None, None
        is_said = is_said and not left_out.unsaid and not left_out.unknown
        every = aimed if aimed is not None else [each.key for each in shown]
        aimed = [each for each in every if each not in left_out.keys]
    return aimed, is_said


def _unknown(turn: _Turn, target: str) -> str:
    if target.isdigit():
        return prompts.numbers_unknown(sum(each.number > 0 for each in turn.situation.listed))
    return prompts.not_listed(target)


def _note_unclear(turn: _Turn, found: names.Resolved) -> None:
    turn.heard["notes"] += [prompts.which(said, meant) for said, meant in found.unclear.items()]


def _waits(turn: _Turn, kind: str) -> bool:
    return turn.situation.asking is not None and turn.situation.asking["kind"] == kind


def _add_order(turn: _Turn, made: Order) -> None:
    turn.heard["orders"].append(made)


def _wish(turn: _Turn, made: Order) -> None:
    """Keep what costs. Of several, that which comes first in `COSTLY` order from the end."""
    before = turn.heard["wish"]
    rank = ("enrich", "search", "new_session", "start_over")
    if before is None or rank.index(made["name"]) > rank.index(before["name"]):
        turn.heard["wish"] = made


# --- consent, questions, disputes ----------------------------------------------------


def _consent(turn: _Turn, act: of.Consent, span: quotes.Span) -> None:
    asking, kind = turn.situation.asking, turn.situation.open_question
    if not act.yes:
        if kind == "customers":
            turn.heard["enough"] = True
        elif kind == "website":
            turn.heard["notes"].append(prompts.NEEDS_WEBSITE)
        elif asking is not None and turn.choice is None and act.to in ("", kind):
            turn.choice = REFUSED[asking["kind"]]
        return
    if asking is None or asking["kind"] not in AGREED or act.to not in ("", kind):
        return
    if words.has_agreement(act.quote) and evidence.is_sure(
        _NAMED_BY[asking["kind"]],
        turn.message,
        None,
        explained=_explained(turn, act),
        language=turn.language,
    ):
        turn.choice = AGREED[asking["kind"]]
    else:
        turn.unsure = True


def _explained(turn: _Turn, of_act: of.Act) -> list[quotes.Span]:
    """Return the quotes of other commands that contain their own evidence."""
    return [
        span
        for act, span in turn.placed
        if isinstance(act, of.Command)
        and act is not of_act
        and not _overlaps(span, turn, of_act)
        and act.name not in commands.COSTLY
        and commands.is_evidence(act.name, act.quote)
    ]


def _overlaps(span: quotes.Span, turn: _Turn, act: of.Act) -> bool:
    own = _span(turn, act)
    return span[0] < own[1] and own[0] < span[1]


def _ask(turn: _Turn, act: of.Ask) -> None:
    turn.heard["orders"].append(order("ask", words=act.about))


def _dispute(turn: _Turn, act: of.Dispute) -> None:
    found = names.resolve([act.target], act.quote, turn.situation.listed)
    turn.heard["orders"].append(order("dispute", found.keys[:1] or None, act.target))


def _finish(turn: _Turn) -> None:
    """Decide what the parts of a message mean together."""
    heard = turn.heard
    unclear = [act.quote for act, _ in turn.placed if isinstance(act, of.Unclear)]
    heard["unheard"] = list(dict.fromkeys([*unclear, *turn.dropped]))
    heard["without"] = list(dict.fromkeys(heard["without"]))
    _answer_by_wish(turn)
    if turn.choice == "change" and has_data(heard):
        turn.choice = None
    open_ends = heard["notes"] or heard["unheard"] or any(not e["sure"] for e in heard["orders"])
    asking = turn.situation.asking
    if (
        asking is not None
        and turn.choice is not None
        and turn.choice == AGREED.get(asking["kind"])
        and (open_ends or _changes(turn))
    ):
        # What is changed or not understood is shown before anything costs.
        turn.choice, turn.unsure = None, not _changes(turn)
    if heard["wish"] is not None and (open_ends or _changes(turn)):
        heard["wish"]["sure"] = False
    if _is_nothing(turn):
        heard["unheard"] = heard["unheard"] or [" ".join(turn.message.split())[:200]]


def _answer_by_wish(turn: _Turn) -> None:
    """Let a command answer the open question if it names what the question proposes."""
    heard, asking = turn.heard, turn.situation.asking
    wish = heard["wish"]
    if wish is None or asking is None:
        return
    kind, name = asking["kind"], wish["name"]
    agreed = turn.choice == AGREED.get(kind)
    if name == "enrich" and kind == "enrich" and turn.choice != REFUSED["enrich"]:
        # The command says which, and the consent that they may be.
        wish["sure"] = wish["sure"] or (agreed and wish["keys"] is None)
        turn.choice, turn.unsure = None, False
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


def _changes(turn: _Turn) -> bool:
    return has_data(turn.heard) and not (turn.heard["enough"] and not turn.heard["icp"])


def _is_nothing(turn: _Turn) -> bool:
    heard = turn.heard
    said = heard["orders"] or heard["wish"] or heard["stray"] or heard["notes"] or has_data(heard)
    return (
        not said
        and turn.choice is None
        and not turn.unsure
        and bool(re.search(r"\S", turn.message))
    )
