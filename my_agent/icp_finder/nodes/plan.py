"""Plan: assign the websites of a message to the company and its customers. Pure functions."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.prompts import MOST_CUSTOMERS
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.state import State
from my_agent.web.sites import domain


@dataclass
class Plan:
    """The plan for a message's websites.

    Attributes:
        own: a new website of the company; None: no change.
        kept: the customers that stay.
        new: websites of further customers.
        notes: sentences about websites that were not accepted.
    """

    own: str | None
    kept: list[Site]
    new: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan(state: State, heard: Heard) -> Plan:
    """Assign the websites of a message, given the websites that are known."""
    site = state.get("site")
    own = heard["website"] or (state.get("website") if site is None else None)
    if own and site is not None and domain(own) == site["domain"]:
        own = None
    about = domain(own) if own else site["domain"] if site else ""
    kept = [
        each
        for each in state.get("customers", [])
        if each["domain"] not in heard["without"] and each["domain"] != about
    ]
    result, left_out = Plan(own, kept), []
    known = {each["domain"] for each in kept}
    for website in heard["customers"]:
        name = domain(website)
        if name == about:
            result.notes.append(prompts.own_website(name))
        elif name in known:
            result.notes.append(prompts.known_customer(name))
        elif len(known) == MOST_CUSTOMERS:
            left_out.append(name)
        else:
            known.add(name)
            result.new.append(website)
    if left_out:
        result.notes.append(prompts.too_many(left_out))
    return result
