"""Changes: what a message would change about a confirmed company. Pure functions."""

from typing import Any

from typing_extensions import TypedDict

from contexts.websites import readable
from my_agent.icp_finder.diffs import basis, changed, icp_hash
from my_agent.icp_finder.message_parser import ParsedMessage, merge_icp
from my_agent.icp_finder.model import Site, Snapshot
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State


class Session(TypedDict):
    """A proposed new session for the changed company or ICP.

    Attributes:
        website: domain of the company, readable (no punycode).
        request: method, path and body of the request that opens the session.
    """

    website: str
    request: dict[str, Any]


def new_website(state: State, parsed: ParsedMessage) -> str | None:
    """Return the new website of the company that a message names, or None.

    None while the company is unknown. Websites of the company and its customers are not new.
    """
    site = state.get("site")
    if site is None:
        return None
    known = {site["domain"], *(each["domain"] for each in state.get("customers", []))}
    others = [] if parsed["customers"] else parsed["sites"]
    candidates = [parsed["website"], *others]
    return next((each for each in candidates if each and domain(each) not in known), None)


def replaces_all(parsed: ParsedMessage) -> bool:
    """Return whether a message lists a complete new set of customers."""
    return parsed["customers"] and len(parsed["sites"]) >= CUSTOMERS


def new_customers(customers: list[Site], parsed: ParsedMessage) -> list[str]:
    """Return the customers' websites after a message that replaces some or all of them."""
    if replaces_all(parsed):
        return parsed["sites"][:CUSTOMERS]
    swaps = {domain(old): new for old, new in parsed["swaps"]}
    return [swaps.get(site["domain"], site["website"]) for site in customers]


def changed_parts(state: State, parsed: ParsedMessage) -> tuple[str, ...]:
    """Return the `diffs.PARTS` that a message would change."""
    site, icp = state.get("site"), state.get("icp")
    if site is None or icp is None:
        return ()
    customers = state.get("customers", [])
    website = new_website(state, parsed)
    old = basis({"site": site, "customers": customers}, icp)
    new = basis({"site": site, "customers": []}, merge_icp(icp, parsed["icp"]))
    new["website"] = domain(website) if website else old["website"]
    new["customers"] = sorted({domain(each) for each in new_customers(customers, parsed)})
    return changed(old, new)


def next_session(state: State, parsed: ParsedMessage) -> Session:
    """Build the request that opens a new session for the change.

    For another website, the request replaces this thread. For another ICP, it creates a thread for
    the same company, which closes this one.
    """
    website = new_website(state, parsed)
    site = state.get("site")
    payload: dict[str, Any] = {**parsed["icp"]}
    customers = new_customers(state.get("customers", []), parsed)
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


def changed_elsewhere(state: State, snapshot: Snapshot) -> tuple[str, ...]:
    """Return what another session has changed since the last message of a thread.

    Only a thread whose own profile was searched for can tell: otherwise the change may be its own,
    and not saved yet.
    """
    site, icp, last = state.get("site"), state.get("icp"), state.get("last")
    if site is None or icp is None or last is None or not state.get("confirmed"):
        return ()
    if snapshot.profile is None or snapshot.rule is None:
        return ()
    known = basis({"site": site, "customers": state.get("customers", [])}, icp)
    if last["icp_hash"] != icp_hash(known):
        return ()
    return changed(known, basis(snapshot.profile.company, snapshot.rule.icp))
