"""Changes: what a message would change about a confirmed company. Pure functions."""

from typing import Any

from typing_extensions import TypedDict

from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.prompts import MOST_CUSTOMERS
from my_agent.icp_finder.reading.heard import Heard
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


def new_website(state: State, heard: Heard) -> str | None:
    """Return the website that a message calls the company's own, if it is a new one.

    None while the company is unknown. Websites of the company and its customers are not new.
    """
    site = state.get("site")
    if site is None:
        return None
    known = {site["domain"], *(each["domain"] for each in state.get("customers", []))}
    website = heard["website"]
    return website if website and domain(website) not in known else None


def new_customers(state: State, heard: Heard) -> list[str]:
    """Return the customers' websites after a message."""
    known = state.get("customers", [])
    kept = [each["website"] for each in known if each["domain"] not in heard["without"]]
    there = {domain(each) for each in kept}
    return [*kept, *(each for each in heard["customers"] if domain(each) not in there)][
        :MOST_CUSTOMERS
    ]


def changed_parts(state: State, heard: Heard) -> tuple[str, ...]:
    """Return the `diffs.PARTS` that a message would change."""
    site, icp = state.get("site"), state.get("icp")
    if site is None or icp is None:
        return ()
    website = new_website(state, heard)
    old = basis({"site": site, "customers": state.get("customers", [])}, icp)
    new = basis({"site": site, "customers": []}, values.merged(icp, heard["icp"]))
    new["website"] = domain(website) if website else old["website"]
    new["customers"] = sorted({domain(each) for each in new_customers(state, heard)})
    return changed(old, new)


def difference(state: State, heard: Heard) -> str:
    """Describe what a message would change, from what to what."""
    site, icp = state.get("site"), state.get("icp")
    lines = []
    website = new_website(state, heard)
    if site is not None and website is not None:
        lines.append(prompts.website_change(site["domain"], domain(website)))
    before = [each["domain"] for each in state.get("customers", [])]
    after = [domain(each) for each in new_customers(state, heard)]
    if set(before) != set(after):
        gone = [each for each in before if each not in after]
        lines.append(prompts.customers_change(gone, [each for each in after if each not in before]))
    lines.append(prompts.changes(icp, values.merged(icp, heard["icp"])))
    return "\n".join(filter(None, lines))


def next_session(state: State, heard: Heard) -> Session:
    """Build the request that opens a new session for the change.

    For another website, the request replaces this thread. For another ICP, it creates a thread for
    the same company, which closes this one. Whoever resumes this one is led to that thread.
    """
    website = new_website(state, heard)
    site = state.get("site")
    payload: dict[str, Any] = {**heard["icp"]}
    customers = new_customers(state, heard)
    if customers != [each["website"] for each in state.get("customers", [])]:
        payload["customers"] = customers
    if website is not None:
        body: dict[str, Any] = {"website": website}
        path = f"/threads/{state.get('thread_id')}/resume"
    else:
        website = site["website"] if site else ""
        path, body = "/threads", {"agent": "icp_finder", "website": website}
        body["resumed_from"] = state.get("thread_id")
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
