"""Plan: assign the websites of a message to the company and its customers. Pure functions."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.changes import new_website, replaces_all
from my_agent.icp_finder.reading.message_parser import ParsedMessage
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State


@dataclass(frozen=True)
class CustomerSlot:
    """A slot in the list of customers.

    Attributes:
        website: the website that the slot is to hold.
        current: the customer that the slot holds now; it stays if `website` cannot be used.
    """

    website: str
    current: Site | None = None

    @property
    def is_new(self) -> bool:
        """Return whether the website differs from the current customer's."""
        return self.current is None or self.current["domain"] != domain(self.website)


@dataclass
class Plan:
    """The plan for a message's websites.

    Attributes:
        own: a new website of the company; None: no change.
        customers: the customers, in order.
        notes: sentences about websites that were not accepted.
        left_out: domains beyond the maximum number of customers.
    """

    own: str | None
    customers: list[CustomerSlot]
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def plan(state: State, parsed: ParsedMessage) -> Plan:
    """Assign the websites of a message, given the websites that are known."""
    site = state.get("site")
    own, others = _own(state, parsed)
    about = own or (site["website"] if site else None)
    result = Plan(own, [])
    taken = {domain(about)} if about else set()
    if replaces_all(parsed):
        known = {each["domain"]: each for each in state.get("customers", [])}
        for website in parsed["sites"]:
            _add(result, CustomerSlot(website, known.get(domain(website))), taken)
    else:
        for slot in _swapped(state.get("customers", []), parsed, result.notes):
            _add(result, slot, taken)
        for website in others:
            _add(result, CustomerSlot(website), taken)
    if result.left_out:
        result.notes.append(prompts.too_many(result.left_out))
    return result


def _own(state: State, parsed: ParsedMessage) -> tuple[str | None, list[str]]:
    """Return the company's new website, if any, and the remaining websites."""
    others = list(parsed["sites"])
    site = state.get("site")
    if site is not None:
        own = new_website(state, parsed) if state.get("confirmed") else parsed["website"]
        own = own if own and domain(own) != site["domain"] else None
    else:
        own = parsed["website"] or state.get("website")
        if own is None and others and not parsed["customers"]:
            own = others[0]
    return own, [each for each in others if each != own]


def _swapped(customers: list[Site], parsed: ParsedMessage, notes: list[str]) -> list[CustomerSlot]:
    """Return the customers' slots after `replace a.com with b.com`."""
    known = {site["domain"] for site in customers}
    unknown = [domain(old) for old, _ in parsed["swaps"] if domain(old) not in known]
    notes += [prompts.no_customer(each) for each in unknown]
    after = {domain(old): new for old, new in parsed["swaps"] if domain(new) not in known}
    duplicates = [
        domain(new) for old, new in parsed["swaps"] if domain(new) in known - {domain(old)}
    ]
    notes += [prompts.known_customer(each) for each in duplicates]
    return [CustomerSlot(after.get(site["domain"], site["website"]), site) for site in customers]


def _add(result: Plan, slot: CustomerSlot, taken: set[str]) -> None:
    """Add a customer, or note why it is rejected. A rejected website leaves the slot as it is."""
    name = domain(slot.website)
    present = {domain(each.website) for each in result.customers}
    if len(result.customers) == CUSTOMERS:
        result.left_out.append(name)
    elif name not in taken | present:
        result.customers.append(slot)
        return
    else:
        note = prompts.own_website if name in taken else prompts.known_customer
        result.notes.append(note(name))
    if slot.current is not None and slot.is_new:
        result.customers.append(CustomerSlot(slot.current["website"], slot.current))
