"""Plan: assign the websites of a message to the company and its customers. Pure functions."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.prompts import MOST_CUSTOMERS
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.web.websites import readable


@dataclass
class Plan:
    """The plan for a message's websites."""

    own: str | None  # a new website of the company; None: no change
    kept: list[Site]  # the customers that stay
    new: list[str] = field(default_factory=list)  # websites of further customers
    notes: list[str] = field(default_factory=list)  # why some websites were not accepted


def plan(state: State, heard: Heard) -> Plan:
    """Assign the websites of a message, given the websites that are known."""
    site = state.get("site")
    own = heard["website"] or (state.get("website") if site is None else None)
    if own and site is not None and domain(own) == site["domain"]:
        own = None
    about = domain(own) if own else site["domain"] if site else ""
    gone = {about, *heard["without"]}
    kept = [each for each in state.get("customers", []) if each["domain"] not in gone]
    result, left_out = Plan(own, kept), list[str]()
    known = {each["domain"] for each in result.kept}
    for website in heard["customers"]:
        name = domain(website)
        if name == about:
            result.notes.append(prompts.OWN_WEBSITE.format(readable(name)))
        elif name in known:
            result.notes.append(prompts.KNOWN_CUSTOMER.format(readable(name)))
        elif len(known) == MOST_CUSTOMERS:
            left_out.append(name)
        else:
            known.add(name)
            result.new.append(website)
    if left_out:
        result.notes.append(prompts.too_many(left_out))
    return result
