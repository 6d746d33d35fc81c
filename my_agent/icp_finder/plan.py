"""Plan: which websites a message makes the company's own and its customers'. Pure."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts
from my_agent.icp_finder.changes import new_website, replaces_all
from my_agent.icp_finder.heard import Heard
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State


@dataclass(frozen=True)
class Place:
    """A customer's place.

    Attributes:
        website: who is to come there.
        before: who is there already, or stays there if the website cannot be taken.
    """

    website: str
    before: Site | None = None

    @property
    def is_new(self) -> bool:
        """Whether the website is another one than the one before."""
        return self.before is None or self.before["domain"] != domain(self.website)


@dataclass
class Plan:
    """What to make of a message's websites.

    Attributes:
        own: another website of the company's own; None: as before.
        customers: who is to be a customer, in order.
        notes: what could not be taken, and why.
        left_out: domains of those who are too many.
    """

    own: str | None
    customers: list[Place]
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def plan(state: State, heard: Heard) -> Plan:
    """What a message makes of the websites that are known."""
    site = state.get("site")
    own, others = _own(state, heard)
    about = own or (site["website"] if site else None)
    made = Plan(own, [])
    taken = {domain(about)} if about else set()
    if replaces_all(heard):
        known = {each["domain"]: each for each in state.get("customers", [])}
        for website in heard["sites"]:
            _add(made, Place(website, known.get(domain(website))), taken)
    else:
        for place in _exchanged(state.get("customers", []), heard, made.notes):
            _add(made, place, taken)
        for website in others:
            _add(made, Place(website), taken)
    if made.left_out:
        made.notes.append(prompts.too_many(made.left_out))
    return made


def _own(state: State, heard: Heard) -> tuple[str | None, list[str]]:
    """The company's own new website, if there is one, and the websites that are left."""
    others = list(heard["sites"])
    site = state.get("site")
    if site is not None:
        own = new_website(state, heard) if state.get("confirmed") else heard["website"]
        own = own if own and domain(own) != site["domain"] else None
    else:
        own = heard["website"] or state.get("website")
        if own is None and others and not heard["customers"]:
            own = others[0]
    return own, [each for each in others if each != own]


def _exchanged(customers: list[Site], heard: Heard, notes: list[str]) -> list[Place]:
    """The customers' places after `replace a.com with b.com`."""
    known = {site["domain"] for site in customers}
    strangers = [domain(old) for old, _ in heard["swaps"] if domain(old) not in known]
    notes += [prompts.no_customer(each) for each in strangers]
    after = {domain(old): new for old, new in heard["swaps"] if domain(new) not in known}
    twice = [domain(new) for old, new in heard["swaps"] if domain(new) in known - {domain(old)}]
    notes += [prompts.known_customer(each) for each in twice]
    return [Place(after.get(site["domain"], site["website"]), site) for site in customers]


def _add(made: Plan, place: Place, taken: set[str]) -> None:
    """Add a customer, or note why it is none. Who cannot come leaves the place as it is."""
    name = domain(place.website)
    there = {domain(each.website) for each in made.customers}
    if len(made.customers) == CUSTOMERS:
        made.left_out.append(name)
    elif name not in taken | there:
        made.customers.append(place)
        return
    else:
        note = prompts.own_website if name in taken else prompts.known_customer
        made.notes.append(note(name))
    if place.before is not None and place.is_new:
        made.customers.append(Place(place.before["website"], place.before))
