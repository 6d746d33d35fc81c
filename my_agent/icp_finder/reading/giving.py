"""Giving: what acts say about the company and its profile. Pure functions."""

from dataclasses import replace

from my_agent.icp_finder import prompts, reports, values
from my_agent.icp_finder.model import SIZES
from my_agent.icp_finder.reading import commands, evidence
from my_agent.icp_finder.reading.heard import order
from my_agent.icp_finder.reading.ordering import is_sure
from my_agent.icp_finder.reading.turn import Turn
from my_agent.understanding import acts as of
from my_agent.understanding import meaning, names
from my_agent.understanding.places import in_english
from my_agent.web import sites
from my_agent.web.sites import domain

Giving = of.Correct | of.Include | of.Answer
_SITES = ("website", "customers", "companies")
# Readers write fields in the singular, too.
_PLURAL = {"industry": "industries", "company": "companies", "size": "sizes", "region": "regions"}
_PLURAL |= {"keyword": "keywords", "exclusion": "exclusions"}
_ROLES = {"website": "ours", "customers": "customer", "companies": "candidate"}


def give(turn: Turn, act: Giving) -> None:
    """Add or replace values, as far as the message names them and does not deny them."""
    name = act.what if isinstance(act, of.Include) else act.field
    name = _PLURAL.get(name, name)
    old = list(act.instead_of) if isinstance(act, of.Correct) else []
    span = turn.span(act)
    if isinstance(act, of.Correct) and name == "customers" and not act.value and old:
        _exclude_companies(turn, of.Exclude(kind="Exclude", quote=act.quote, what=name, value=old))
        return
    given = [
        each
        for each in act.value
        if not evidence.is_denied(each, turn.message, span, turn.language, swaps=bool(old))
    ]
    if act.value and not given:
        turn.drop(act)
    elif name == "exclusions" and not isinstance(act, of.Correct):
        _keep_away(turn, [each for each in given if evidence.says(name, each, turn.message)])
    elif name in values.FIELDS:
        _give_values(turn, act, name, old, given)
    else:
        _give_sites(turn, act, name, old, given)


def _give_values(turn: Turn, act: Giving, name: str, old: list[str], given: list[str]) -> None:
    # A pronoun in the quote may stand for a value that the message names elsewhere.
    where = act.quote if name == "sizes" else turn.message
    stored = turn.values(name)
    # A stored value may be meant in other words; what it replaces, `only` has to say.
    is_meant = not isinstance(act, of.Correct) or commands.is_set(act.quote)
    said = [e for e in given if (is_meant and e in stored) or evidence.says(name, e, where)]
    new = values.clean(name, said)
    if name == "regions":
        new = values.clean(name, map(in_english, new))
    empties = meaning.means_any(act.quote) or meaning.takes_away(turn.message, turn.span(act))
    if not new and (act.value or old or not empties):
        turn.drop(act)
        return
    gone = [each for each in stored if any(_names(name, one, each) for one in old)]
    replaces = isinstance(act, of.Correct) and (not old or name == "sizes")
    replaces = replaces or (isinstance(act, of.Answer) and not act.value)
    if gone:
        # The new values stand where the old ones did.
        at = stored.index(gone[0])
        every = [*stored[:at], *new, *stored[at:]]
        after = [each for each in every if each not in gone or each in new]
    else:
        after = new if replaces or name == turn.situation.asked else [*stored, *new]
    if name == "industries":
        _wanted_again(turn, new)
    in_order = [each for each in SIZES if each in after]
    turn.heard["icp"][name] = in_order if name == "sizes" else values.clean(name, after)


def _wanted_again(turn: Turn, new: list[str]) -> None:
    """Lift the exclusion of values that are wanted now."""
    excluded = turn.values("exclusions")
    kept = [each for each in excluded if not any(values.is_same(one, each) for one in new)]
    if len(kept) < len(excluded):
        turn.heard["icp"]["exclusions"] = kept


def _names(name: str, said: str, stored: str) -> bool:
    if name == "sizes":
        return stored in values.clean("sizes", [said])
    return values.is_same(said, stored)


def exclude(turn: Turn, act: of.Exclude) -> None:
    """Take values out of the profile; what it does not have is kept away from now on."""
    what = _PLURAL.get(act.what, act.what)
    if what == "exclusions":
        _wanted_again(turn, [each for each in act.value if evidence.says(what, each, turn.message)])
    elif not meaning.takes_away(turn.message, turn.span(act)):
        turn.drop(act)
    elif what in _SITES:
        _exclude_companies(turn, act)
    else:
        said = [each for each in act.value if evidence.says(what, each, act.quote)]
        stored = [each for name in values.FIELDS for each in turn.values(name)]
        unsaid = [each for each in stored if each in act.value and each not in said]
        if unsaid:
            # The words may mean stored values, as `bebidas` does `Beverages`.
            turn.heard["orders"].append(order("exclude", unsaid, sure=False))
        left = [each for each in said if not _taken_out(turn, what, each)]
        # A size that is not there needs no exclusion.
        _keep_away(turn, [] if what == "sizes" else left)
        if not said and not turn.heard["orders"]:
            turn.drop(act)


def _taken_out(turn: Turn, what: str, value: str) -> bool:
    """Take a value out of the first field that has it, and return whether one did."""
    wanted = [name for name in values.FIELDS if name != "exclusions"]
    for name in sorted(wanted, key=lambda each: each != what):
        stored = turn.values(name)
        # `Snack food manufacturing` means that and not `Food manufacturing`, if both are there.
        gone = [each for each in stored if names.fold(each) == names.fold(value)]
        gone = gone or [each for each in stored if _names(name, value, each)]
        if gone:
            turn.heard["icp"][name] = [each for each in stored if each not in gone]
            return True
    return False


def _keep_away(turn: Turn, found: list[str]) -> None:
    if new := values.clean("exclusions", found):
        every = [*turn.values("exclusions"), *new]
        turn.heard["icp"]["exclusions"] = values.clean("exclusions", every)


def _exclude_companies(turn: Turn, act: of.Exclude) -> None:
    """Take companies out of the customers, or hide candidates."""
    hidden: list[int | str] = []
    for value in act.value:
        own = _customers(turn, [value]) if evidence.says("customers", value, act.quote) else []
        turn.heard["without"] += own
        hidden += [] if own else [value]
    found = names.resolve(hidden, act.quote, turn.situation.listed)
    # A company that no search has found yet is kept away from the next one.
    _keep_away(
        turn, [each for each in found.unknown if evidence.says("customers", each, act.quote)]
    )
    turn.note(replace(found, unknown=[]))
    if found.keys:
        sure = not found.unsaid and is_sure(turn, act, "reject", found.keys)
        turn.heard["orders"].append(order("reject", found.keys, sure=sure))


def _customers(turn: Turn, said: list[str]) -> list[str]:
    """Return the domains of the customers that some domains or names mean."""
    labels = {names.fold(each).partition(" ")[0] for each in said}
    known = turn.situation.customers
    return [each for each in known if each in said or names.fold(each).partition(" ")[0] in labels]


def _give_sites(turn: Turn, act: Giving, name: str, old: list[str], given: list[str]) -> None:
    spelled = {each: sites.spelled(each, act.quote) for each in given}
    found = [site for each in given for site in spelled[each]]
    asking, heard = turn.situation.asking, turn.heard
    website = str(asking["details"].get("website")) if asking and turn.asks("domain") else ""
    if website and evidence.is_role(name, act.quote):
        found = [website] if {_domain(each) for each in given} <= {domain(website)} else found
    bare = [each for each in given if "." not in each and not spelled[each]]
    bare = [each for each in bare if evidence.says(name, each, act.quote)]
    if bare and name in _SITES:
        heard["notes"].append(prompts.NEEDS_WEBSITES.format(reports.listed(bare[:8])))
    if not found and not bare:
        turn.drop(act)
    elif not found:
        return
    elif found == [website] and name in _ROLES:
        turn.choice = _ROLES[name]
    elif name == "website" and not evidence.is_elsewhere(turn.message, turn.span(act)):
        heard["website"] = found[0]
    elif name == "customers":
        if isinstance(act, of.Correct):
            heard["without"] += _customers(turn, old) if old else list(turn.situation.customers)
        heard["customers"] += found
    elif name == "companies":
        heard["orders"].append(order("candidate", words=domain(found[0])))
    else:
        known = {turn.situation.website, *turn.situation.customers}
        heard["stray"] = next((each for each in found if domain(each) not in known), None)


def _domain(text: str) -> str:
    try:
        return domain(text)
    except ValueError:
        return text.casefold()
