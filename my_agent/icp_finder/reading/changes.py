"""Changes: what a message would change about a confirmed company. Pure functions."""

from typing import Any

from typing_extensions import TypedDict

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Site, Snapshot
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.message_parser import ParsedMessage, merge_icp
from my_agent.icp_finder.records.diffs import basis, changed, icp_hash
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.web.websites import readable


class Session(TypedDict):
    """A proposed new session for the changed company or ICP.

    Attributes:
        website: domain of the company, readable (no punycode).
        request: method, path and body of the request that opens the session.
    """

    website: str
    request: dict[str, Any]


def new_website(state: State, parsed: ParsedMessage) -> str | None:
    """Return the website that a message calls the company's own, if it is a new one.

    None while the company is unknown. Websites of the company and its customers are not new.
    """
    site = state.get("site")
    if site is None:
        return None
    known = {site["domain"], *(each["domain"] for each in state.get("customers", []))}
    website = parsed["website"]
    return website if website and domain(website) not in known else None


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


def unclear_site(state: State, parsed: ParsedMessage, *, listing: bool) -> str | None:
    """Return the first website of a message whose role is unknown, or None.

    While websites are collected, those of a list are the company's and its customers'. Later, a
    website is neither, unless the message says so.

    Args:
        state: the state with the stored company.
        parsed: the message.
        listing: whether the message lists websites, rather than mentions them in passing.
    """
    site, customers = state.get("site"), state.get("customers", [])
    is_collecting = site is None or len(customers) < CUSTOMERS
    if parsed["customers"] or (is_collecting and listing):
        return None
    known = {each["domain"] for each in [*([site] if site else []), *customers]}
    return next((each for each in parsed["sites"] if domain(each) not in known), None)


def difference(state: State, parsed: ParsedMessage) -> str:
    """Describe what a message would change, from what to what."""
    site, icp = state.get("site"), state.get("icp")
    lines = []
    website = new_website(state, parsed)
    if site is not None and website is not None:
        lines.append(prompts.website_change(site["domain"], domain(website)))
    before = [each["domain"] for each in state.get("customers", [])]
    after = [domain(each) for each in new_customers(state.get("customers", []), parsed)]
    if set(before) != set(after):
        gone = [each for each in before if each not in after]
        lines.append(prompts.customers_change(gone, [each for each in after if each not in before]))
    lines.append(prompts.changes(icp, merge_icp(icp, parsed["icp"])))
    return "\n".join(filter(None, lines))


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
