"""Node `profile_builder`: collect the company's website, its customers and the ICP."""

import asyncio

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from my_agent.context import Context
from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.nodes.changes import Plan, described, plan
from my_agent.icp_finder.nodes.undoing import save, with_profile
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.records.decisions import Decisions
from my_agent.icp_finder.search import proposing
from my_agent.icp_finder.search.website import read_site
from my_agent.icp_finder.state import State, company_of
from my_agent.threads import thread
from my_agent.user import caller
from my_agent.web.fetch import SiteRefused, SiteUnreadable
from my_agent.web.sites import domain
from my_agent.web.websites import readable


async def profile_builder(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Apply a message: validate and read websites, and propose an ICP.

    Problems are noted for the user, and the rest is kept. Unconfirmed data is saved at once, so
    that a new thread can continue from it.
    """
    heard = state["heard"]
    planned = plan(state, heard)
    site, customers, failed = await _read(planned, state)
    company: Company | None = {"site": site, "customers": customers} if site else None
    icp = await _icp(state, heard, company, planned.notes, config, runtime)
    update: State = {
        "messages": [],
        "site": site,
        "customers": customers,
        "icp": icp,
        "fresh": state.get("fresh", False) and site is None,
        "notes": [*state["notes"], *planned.notes, *_difference(state, company, icp)],
        "undo": with_profile(state, site, customers, icp),
    }
    if failed and state.get("confirmed"):
        # The requested change is impossible, so there is nothing to search for.
        reason = "the new website cannot be used"
        nothing_to_do: Decisions = {"use_cached": False, "rerun_icp": False, "reason": reason}
        return {**update, "consent": False, "decisions": nothing_to_do}
    if company is not None:
        await _save(state, company, icp, config)
    return update


def _difference(state: State, company: Company | None, icp: Icp | None) -> list[str]:
    """Return what a message has changed about a profile that was shown before."""
    if not (company and icp and state.get("site") and state.get("icp")):
        return []
    domains = [each["domain"] for each in company["customers"]]
    text = described(state, company["site"]["domain"], domains, icp)
    return [prompts.CHANGED.format(text)] if text else []


async def _read(planned: Plan, state: State) -> tuple[Site | None, list[Site], bool]:
    """Read the new websites of a plan. The flag says whether one was refused."""
    thread_id = state.get("thread_id")
    wanted = [*([planned.own] if planned.own else []), *planned.new]
    found = await asyncio.gather(*(_site(each, planned.notes, thread_id) for each in wanted))
    read = dict(zip(wanted, found, strict=True))
    site = (read[planned.own] if planned.own else None) or state.get("site")
    new = [customer for each in planned.new if (customer := read[each]) is not None]
    return site, [*planned.kept, *new], None in found


async def _site(website: str, notes: list[str], thread_id: str | None) -> Site | None:
    """Read a website as far as possible. Note the reason and return None if it is refused."""
    name = domain(website)
    try:
        return await read_site(website)
    except SiteRefused as error:
        log_action("site_refused", thread_id, site=name, problem=type(error).__name__)
        notes.append(str(error))
        return None
    except SiteUnreadable as error:
        # A customer counts even if its website is down or has no text.
        log_action("site_unreadable", thread_id, site=name, problem=type(error).__name__)
        notes.append(prompts.UNREADABLE.format(readable(name), error))
        return {"website": website, "domain": name, "name": name, "about": ""}


async def _icp(
    state: State,
    heard: Heard,
    company: Company | None,
    notes: list[str],
    config: RunnableConfig,
    runtime: Runtime[Context],
) -> Icp | None:
    """Return the ICP after the message; propose one once all websites are known."""
    icp = state.get("icp")
    has_industries = (icp and icp["industries"]) or heard["icp"].get("industries")
    customers = company["customers"] if company else []
    is_whole = len(customers) >= CUSTOMERS or state.get("enough") or heard["enough"]
    if company and customers and is_whole and not has_industries:
        # langgraph's types exclude None, but a run without a context gets None outside a server.
        context = runtime.context or Context()  # type: ignore[truthy-bool]
        found, problem = await proposing.propose(company, context.model, config)
        if problem:
            log_action("model_fallback", state.get("thread_id"), problem=problem, what="profile")
            notes.append(prompts.WITHOUT_MODEL)
        icp = found if icp is None else values.merged(found, values.given(icp))
    return values.merged(icp, heard["icp"]) if heard["icp"] else icp


async def _save(state: State, company: Company, icp: Icp | None, config: RunnableConfig) -> None:
    """Save new unconfirmed data, and write the company's website into the thread's metadata."""
    site, rule_name, label = company["site"], state["rule_name"], state.get("website")
    if not state.get("confirmed") and company_of(state) != (site, company["customers"], icp):
        await save(caller(config).tenant_id, rule_name, company, icp, confirmed=False)
    if label is None or domain(label) != site["domain"]:
        await thread.set_website(config, site["website"])
