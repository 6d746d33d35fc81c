"""Node `profile_builder`: collect the company's website, its customers and the ICP."""

import asyncio

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from my_agent.icp_finder import prompts, thread
from my_agent.icp_finder.context import Context
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.message_parser import (
    NO_CONTENT,
    ParsedMessage,
    has_content,
    merge_icp,
    parse_values,
    set_fields,
)
from my_agent.icp_finder.reading.plan import Plan, plan
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions
from my_agent.icp_finder.search import proposing, ssic
from my_agent.icp_finder.search.website import read_site
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.user import caller
from my_agent.web.fetch import SiteRefused, SiteUnreadable


async def profile_builder(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Apply a message: validate and read websites, and propose an ICP.

    Problems are noted for the user, and the rest is kept. Unconfirmed data is saved at once, so
    that a new thread can continue from it.
    """
    parsed = state.get("heard", NO_CONTENT)
    planned = plan(state, parsed)
    site, customers, failed = await _read(planned, state)
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    company: Company | None = {"site": site, "customers": customers} if site else None
    icp = await _icp(state, parsed, company, planned.notes, context.model)
    update: State = {
        "messages": [],
        "unclear": _is_unclear(state, parsed) and icp == state.get("icp"),
        "site": site,
        "customers": customers,
        "icp": icp,
        "notes": [*state.get("notes", []), *planned.notes, *_difference(state, site, icp)],
    }
    if failed and state.get("confirmed"):
        # The requested change is impossible, so there is nothing to search for.
        reason = "the new website cannot be used"
        nothing: Decisions = {"use_cached": False, "rerun_icp": False, "reason": reason}
        return {**update, "consent": False, "decisions": nothing}
    if company is not None:
        await _save(state, company, icp, config)
    return update


def _difference(state: State, site: Site | None, icp: Icp | None) -> list[str]:
    """Return what a message has changed about a profile that was shown before."""
    old, before = state.get("icp"), state.get("site")
    if old is None or icp is None or before is None or site is None:
        return []
    lines = [prompts.changes(old, icp)]
    if before["domain"] != site["domain"]:
        lines.insert(0, prompts.website_change(before["domain"], site["domain"]))
    text = "\n".join(filter(None, lines))
    return [f"{prompts.CHANGED}\n\n{text}"] if text else []


async def _read(planned: Plan, state: State) -> tuple[Site | None, list[Site], bool]:
    """Read the new websites of a plan. The flag says whether one was refused."""
    thread_id = state.get("thread_id")
    new = [slot.website for slot in planned.customers if slot.is_new]
    wanted = [*([planned.own] if planned.own else []), *new]
    found = await asyncio.gather(*(_site(each, planned.notes, thread_id) for each in wanted))
    read = dict(zip(wanted, found, strict=True))
    site = (read[planned.own] if planned.own else None) or state.get("site")
    slots = [
        (read[slot.website] if slot.is_new else None) or slot.current for slot in planned.customers
    ]
    customers = [customer for customer in slots if customer is not None]
    return site, customers, None in found


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
        notes.append(prompts.unreadable(name, str(error)))
        return {"website": website, "domain": name, "name": name, "about": ""}


async def _icp(
    state: State,
    parsed: ParsedMessage,
    company: Company | None,
    notes: list[str],
    model: str | None,
) -> Icp | None:
    """Return the ICP after the message; propose one once all websites are known."""
    icp, given = state.get("icp"), parsed["icp"]
    words = "" if has_content(parsed) else parsed["text"].strip()
    is_side = state.get("turn", {}).get("kind") in ("question", "feedback", "talk")
    if is_side:
        words = ""
    if words and state.get("asked") == "industries":
        given = proposing.by_answer(words)
    is_whole = company is not None and len(company["customers"]) == CUSTOMERS
    if company is not None and is_whole and not given:
        if icp is None or not icp["industries"]:
            proposed = await _proposed(company, notes, model, state.get("thread_id"))
            return proposed if icp is None else merge_icp(proposed, set_fields(icp))
        if words and not state.get("confirmed") and _is_unclear(state, parsed):
            return _revised(icp, words, state)
    return merge_icp(icp, given) if given else icp


async def _proposed(
    company: Company, notes: list[str], model: str | None, thread_id: str | None
) -> Icp:
    """Propose an ICP from the websites: by the model, or by their words if the model fails."""
    try:
        read = await proposing.by_model(company, model)
    except proposing.ModelUnusableError as error:
        log_action("model_fallback", thread_id, problem=type(error.__cause__ or error).__name__)
        notes.append(prompts.WITHOUT_MODEL)
        read = None
    if read is not None:
        return read
    return await asyncio.to_thread(proposing.by_words, company)


def _revised(icp: Icp, words: str, state: State) -> Icp:
    """Revise the ICP by the user's free text.

    The text counts as industries if changes were asked for and it names known industries.
    """
    industries = parse_values("industries", words)
    if state.get("asked") == "icp" and ssic.codes(industries):
        return merge_icp(icp, {"industries": industries})
    return icp


def _is_unclear(state: State, parsed: ParsedMessage) -> bool:
    """Return whether the last message answered none of the questions."""
    is_side = state.get("turn", {}).get("kind") in ("question", "feedback", "talk")
    is_correction = state.get("asked") == "icp" and not is_side
    asked_again = is_correction and not has_content(parsed) and parsed["text"].strip()
    return state.get("unclear", False) or bool(asked_again)


async def _save(state: State, company: Company, icp: Icp | None, config: RunnableConfig) -> None:
    """Save new unconfirmed data, and write the company's website into the thread's metadata."""
    site = company["site"]
    known = (state.get("site"), state.get("customers", []), state.get("icp"))
    if not state.get("confirmed") and known != (site, company["customers"], icp):
        tenant_id = caller(config).tenant_id
        await store.save_profile(tenant_id, company, confirmed=False)
        if icp is not None:
            await store.save_rule(
                tenant_id, site["domain"], state["rule_name"], icp, confirmed=False
            )
    label = state.get("website")
    if label is None or domain(label) != site["domain"]:
        await thread.set_website(config, site["website"])
