"""Changes: what a message would change about a company. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from my_agent.icp_finder import prompts, reports, values
from my_agent.icp_finder.model import Icp, Site, Snapshot
from my_agent.icp_finder.prompts import MOST_CUSTOMERS
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.records.diffs import basis, changed, icp_hash
from my_agent.icp_finder.state import State, company_of
from my_agent.web.sites import domain
from my_agent.web.websites import readable


class Session(TypedDict):
    """A proposed new session for the changed company or ICP."""

    website: str  # domain of the company, readable (no punycode)
    request: dict[str, Any]  # method, path and body of the request that opens the session


def new_website(state: State, heard: Heard) -> str | None:
    """Return the website that a message calls the company's own, if it is a new one.

    None while the company is unknown. A customer's website is new, too: it makes another company.
    """
    site, website = state.get("site"), heard["website"]
    return website if site and website and domain(website) != site["domain"] else None


@dataclass
class Plan:
    """The plan for a message's websites."""

    own: str | None  # a new website of the company; None: no change
    kept: list[Site]  # the customers that stay
    new: list[str] = field(default_factory=list)  # websites of further customers
    notes: list[str] = field(default_factory=list)  # why some websites were not accepted


def plan(state: State, heard: Heard) -> Plan:
    """Assign the websites of a message, given the websites that are known."""
    site, customers, _ = company_of(state)
    own = heard["website"] or (state.get("website") if site is None else None)
    if own and site is not None and domain(own) == site["domain"]:
        own = None
    about = domain(own) if own else site["domain"] if site else ""
    gone = {about, *heard["without"]}
    kept = [each for each in customers if each["domain"] not in gone]
    result, left_out = Plan(own, kept), list[str]()
    there = {each["domain"] for each in result.kept}
    for website in heard["customers"]:
        name = domain(website)
        if name == about:
            result.notes.append(prompts.OWN_WEBSITE.format(readable(name)))
        elif name in there:
            result.notes.append(prompts.KNOWN_CUSTOMER.format(readable(name)))
        elif len(there) == MOST_CUSTOMERS:
            left_out.append(name)
        else:
            there.add(name)
            result.new.append(website)
    if left_out:
        result.notes.append(prompts.TOO_MANY.format(reports.few([*map(readable, left_out)])))
    return result


def new_customers(state: State, heard: Heard) -> list[str]:
    """Return the customers' websites after a message."""
    planned = plan(state, {**heard, "website": new_website(state, heard)})
    return [*(each["website"] for each in planned.kept), *planned.new]


def changed_parts(state: State, heard: Heard) -> tuple[str, ...]:
    """Return the `diffs.PARTS` that a message would change."""
    site, customers, icp = company_of(state)
    if site is None or icp is None:
        return ()
    website = new_website(state, heard)
    old = basis({"site": site, "customers": customers}, icp)
    new = basis({"site": site, "customers": []}, values.merged(icp, heard["icp"]))
    new["website"] = domain(website) if website else old["website"]
    new["customers"] = sorted({domain(each) for each in new_customers(state, heard)})
    return changed(old, new)


def difference(state: State, heard: Heard) -> str:
    """Describe what a message would change, from what to what."""
    website, site = new_website(state, heard), state.get("site")
    own = domain(website) if website else site["domain"] if site else ""
    after = [domain(each) for each in new_customers(state, heard)]
    return described(state, own, after, values.merged(state.get("icp"), heard["icp"]))


def described(state: State, own: str, customers: Sequence[str], icp: Icp) -> str:
    """Describe what a change of company and profile is, from what to what.

    Args:
        state: the state before.
        own: domain of the company after the change.
        customers: domains of its customers after it.
        icp: the profile after it.
    """
    site, now, profile = company_of(state)
    before = (site["domain"] if site else own, [each["domain"] for each in now], profile)
    return reports.differences(before, (own, customers, icp))


def next_session(state: State, heard: Heard) -> Session:
    """Build the request that opens a new session for the change.

    For another website, the request replaces this thread. For another ICP, it creates a thread for
    the same company, which closes this one. Whoever resumes this one is led to that thread.
    """
    site, new, customers = state.get("site"), new_website(state, heard), new_customers(state, heard)
    website = new or (site["website"] if site else "")
    payload: dict[str, Any] = {**heard["icp"]}
    if customers != [each["website"] for each in state.get("customers", [])]:
        payload["customers"] = customers
    body: dict[str, Any] = {"website": website, **({"payload": payload} if payload else {})}
    path = f"/threads/{state.get('thread_id')}/resume"
    if new is None:
        about = {"agent": "icp_finder", **body, "resumed_from": state.get("thread_id")}
        path, body = "/threads", {"metadata": about}
    return {
        "website": readable(domain(website)) if website else "",
        "request": {"method": "POST", "path": path, "body": body},
    }


def changed_elsewhere(state: State, snapshot: Snapshot) -> tuple[str, ...]:
    """Return what another session has changed since the last message of a thread.

    Only a thread whose own profile was searched for can tell: otherwise the change may be its own,
    and not saved yet.
    """
    (site, customers, icp), last = company_of(state), state.get("last")
    profile, rule = snapshot.profile, snapshot.rule
    if not (site and icp and last and profile and rule and state.get("confirmed")):
        return ()
    own = basis({"site": site, "customers": customers}, icp)
    is_own = last["icp_hash"] == icp_hash(own)
    return changed(own, basis(profile.company, rule.icp)) if is_own else ()
