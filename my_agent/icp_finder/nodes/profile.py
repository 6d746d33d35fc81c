"""The company's website, its customers' and the ICP, as far as the user has told them."""

import asyncio

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from my_agent.icp_finder import prompts, records, ssic, thread, understanding
from my_agent.icp_finder.context import Context
from my_agent.icp_finder.decisions import Decisions
from my_agent.icp_finder.heard import NOTHING, Heard, given_fields, merged, says_something, values
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.plan import Plan, plan
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.icp_finder.website import SiteRefused, SiteUnreadable, read_site
from my_agent.user import caller


async def profile_builder(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Takes what a message tells: validates websites, reads them, and proposes an ICP.

    What is wrong is noted for the user, and everything else is kept. What is not confirmed yet is
    saved as it comes, so that a new thread goes on from there.
    """
    heard = state.get("heard", NOTHING)
    planned = plan(state, heard)
    site, customers, failed = await _read(planned, state)
    # langgraph's types deny it, but outside a server a run without a context has None here.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    company: Company | None = {"site": site, "customers": customers} if site else None
    icp = await _icp(state, heard, company, planned.notes, context.model)
    update: State = {
        "messages": [],
        "unclear": _is_unclear(state, heard) and icp == state.get("icp"),
        "site": site,
        "customers": customers,
        "icp": icp,
        "notes": [*state.get("notes", []), *planned.notes],
    }
    if failed and state.get("confirmed"):
        # The change that the user wanted is not possible: nothing to search for.
        reason = "the new website cannot be used"
        nothing: Decisions = {"use_cached": False, "rerun_icp": False, "reason": reason}
        return {**update, "consent": False, "decisions": nothing}
    if company is not None:
        await _keep(state, company, icp, config)
    return update


async def _read(planned: Plan, state: State) -> tuple[Site | None, list[Site], bool]:
    """The websites of a plan, read where they are new; whether one was refused."""
    thread_id = state.get("thread_id")
    new = [place.website for place in planned.customers if place.is_new]
    wanted = [*([planned.own] if planned.own else []), *new]
    found = await asyncio.gather(*(_site(each, planned.notes, thread_id) for each in wanted))
    read = dict(zip(wanted, found, strict=True))
    site = (read[planned.own] if planned.own else None) or state.get("site")
    places = [
        (read[place.website] if place.is_new else None) or place.before
        for place in planned.customers
    ]
    customers = [customer for customer in places if customer is not None]
    return site, customers, None in found


async def _site(website: str, notes: list[str], thread_id: str | None) -> Site | None:
    """A website as far as it can be read; None, and a note, if it is none to take."""
    name = domain(website)
    try:
        return await read_site(website)
    except SiteRefused as error:
        noted("site_refused", thread_id, site=name, problem=str(error))
        notes.append(str(error))
        return None
    except SiteUnreadable as error:
        # Many a good customer's website is down, or is all pictures: it counts all the same.
        noted("site_unreadable", thread_id, site=name, problem=str(error))
        notes.append(prompts.unreadable(name, str(error)))
        return {"website": website, "domain": name, "name": name, "about": ""}


async def _icp(
    state: State, heard: Heard, company: Company | None, notes: list[str], model: str | None
) -> Icp | None:
    """The ICP with what the message says of it; proposed once all websites are known."""
    icp, given = state.get("icp"), heard["icp"]
    words = "" if says_something(heard) else heard["text"].strip()
    if words and state.get("asked") == "industries":
        given = understanding.by_answer(words)
    is_whole = company is not None and len(company["customers"]) == CUSTOMERS
    if company is not None and is_whole and not given:
        if icp is None or not icp["industries"]:
            proposed = await _proposed(company, notes, model, state.get("thread_id"))
            return proposed if icp is None else merged(proposed, given_fields(icp))
        if words and not state.get("confirmed") and _is_unclear(state, heard):
            return await _revised(icp, company, words, model, state)
    return merged(icp, given) if given else icp


async def _proposed(
    company: Company, notes: list[str], model: str | None, thread_id: str | None
) -> Icp:
    """An ICP read from the websites: by the model, or by their words where that fails."""
    try:
        read = await understanding.by_model(company, model)
    except understanding.ModelUnusableError as error:
        noted("model_fallback", thread_id, problem=str(error))
        notes.append(prompts.WITHOUT_MODEL)
        read = None
    if read is not None:
        return read
    return await asyncio.to_thread(understanding.by_words, company)


async def _revised(icp: Icp, company: Company, words: str, model: str | None, state: State) -> Icp:
    """The ICP after the user's own words about it.

    A model understands them. Without one they are taken for industries, if changes were asked for
    and they are known as such.
    """
    revised = None
    try:
        revised = await understanding.by_model(company, model, words)
    except understanding.ModelUnusableError as error:
        noted("model_fallback", state.get("thread_id"), problem=str(error))
    industries = values("industries", words)
    if revised is None and state.get("asked") == "icp" and ssic.codes(industries):
        revised = merged(icp, {"industries": industries})
    return revised or icp


def _is_unclear(state: State, heard: Heard) -> bool:
    """Whether the last message answered nothing of what was asked."""
    asked_again = (
        state.get("asked") == "icp" and not says_something(heard) and heard["text"].strip()
    )
    return state.get("unclear", False) or bool(asked_again)


async def _keep(state: State, company: Company, icp: Icp | None, config: RunnableConfig) -> None:
    """Save what is new and not confirmed; have the thread say which company it is about."""
    site = company["site"]
    known = (state.get("site"), state.get("customers", []), state.get("icp"))
    if not state.get("confirmed") and known != (site, company["customers"], icp):
        tenant_id = caller(config).tenant_id
        await records.save_profile(tenant_id, company, confirmed=False)
        if icp is not None:
            await records.save_rule(
                tenant_id, site["domain"], state["rule_name"], icp, confirmed=False
            )
    label = state.get("website")
    if label is None or domain(label) != site["domain"]:
        await thread.tell_website(config, site["website"])
