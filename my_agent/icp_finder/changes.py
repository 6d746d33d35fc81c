"""Changes: what a message would change of a confirmed company, and how a new session starts. Pure."""

from typing import Any

from typing_extensions import TypedDict

from contexts.websites import readable
from my_agent.icp_finder.diffs import basis, changed
from my_agent.icp_finder.heard import Heard, merged
from my_agent.icp_finder.model import Site
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State


class Session(TypedDict):
    """A session for what has changed.

    Attributes:
        website: the domain of its company, as people write it.
        request: method, path and body of the request that opens it.
    """

    website: str
    request: dict[str, Any]


def new_website(state: State, heard: Heard) -> str | None:
    """Another website of the company's own that a message tells, once the company is known."""
    site = state.get("site")
    if site is None:
        return None
    known = {site["domain"], *(each["domain"] for each in state.get("customers", []))}
    others = [] if heard["customers"] else heard["sites"]
    told = [heard["website"], *others]
    return next((each for each in told if each and domain(each) not in known), None)


def replaces_all(heard: Heard) -> bool:
    """Whether a message gives all customers anew."""
    return heard["customers"] and len(heard["sites"]) >= CUSTOMERS


def new_customers(customers: list[Site], heard: Heard) -> list[str]:
    """The customers' websites after a message that replaces some of them, or all."""
    if replaces_all(heard):
        return heard["sites"][:CUSTOMERS]
    swaps = {domain(old): new for old, new in heard["swaps"]}
    return [swaps.get(site["domain"], site["website"]) for site in customers]


def changed_parts(state: State, heard: Heard) -> tuple[str, ...]:
    """Which of `diffs.PARTS` a message would change."""
    site, icp = state.get("site"), state.get("icp")
    if site is None or icp is None:
        return ()
    customers = state.get("customers", [])
    website = new_website(state, heard)
    old = basis({"site": site, "customers": customers}, icp)
    new = basis({"site": site, "customers": []}, merged(icp, heard["icp"]))
    new["website"] = domain(website) if website else old["website"]
    new["customers"] = sorted({domain(each) for each in new_customers(customers, heard)})
    return changed(old, new)


def next_session(state: State, heard: Heard) -> Session:
    """The session that a user starts who does not want to go on here.

    With another website it takes the place of this thread; with another ICP it is a new thread of
    the same company, which closes this one.
    """
    website = new_website(state, heard)
    site = state.get("site")
    payload: dict[str, Any] = {**heard["icp"]}
    customers = new_customers(state.get("customers", []), heard)
    if customers != [each["website"] for each in state.get("customers", [])]:
        payload["customers"] = customers
    if website is not None:
        body: dict[str, Any] = {"website": website}
        path = f"/threads/{state.get('thread_id')}/resume"
    else:
        website = site["website"] if site else ""
        path, body = "/threads", {"agent": "icp_finder", "website": website}
    if payload:
        body["payload"] = payload
    if path == "/threads":
        body = {"metadata": body}
    return {
        "website": readable(domain(website)) if website else "",
        "request": {"method": "POST", "path": path, "body": body},
    }
