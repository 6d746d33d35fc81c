"""Nodes of the search: save what is searched for, search, and fill up from the register."""

from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, reports, values
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Company, Icp
from my_agent.icp_finder.nodes.undoing import save
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.decisions import is_older
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.search import register, searching
from my_agent.icp_finder.search.website import reread
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import Found, State, company_of
from my_agent.user import caller


async def normalize(
    state: State, config: RunnableConfig
) -> Command[Literal["refresh_icp", "decide_strategy"]]:
    """Normalize the ICP, and save what the user has agreed to search with.

    Without a new search there is nothing to save, and the candidates are those of the last search.
    """
    if not state.get("consent"):
        return Command(goto="decide_strategy")
    company, asked = _asked(state)
    fields = {name: values.clean(name, values.of(asked, name)) for name in values.FIELDS}
    icp, rule_name = values.merged(None, fields), state["rule_name"]
    tenant_id = caller(config).tenant_id
    company, notes, was_read = await _up_to_date(tenant_id, rule_name, company, state)
    await save(tenant_id, rule_name, company, icp, confirmed=True, was_read=was_read)
    found: Found = {"rule_name": rule_name, "icp_hash": icp_hash(basis(company, icp))}
    update = {**company, "icp": icp, "found": found, "confirmed": True}
    return Command(goto="refresh_icp", update={**update, "notes": [*state["notes"], *notes]})


async def _up_to_date(
    tenant_id: str, rule_name: str, company: Company, state: State
) -> tuple[Company, list[str], bool]:
    """Read the websites of a stale profile again.

    Returns:
        The company, sentences for the user, and whether the profile is as old as this moment.
    """
    domain, settings = company["site"]["domain"], IcpSettings.from_environment()
    stored = await store.load_snapshot(tenant_id, domain=domain, rule_name=rule_name)
    if stored.profile is None or stored.profile.company != company:
        # The websites were read in this conversation.
        return company, [], True
    if not is_older(stored.profile.updated_at, store.now(), settings.profile_staleness_days):
        return company, [], False
    again = await reread(company)
    counts = {"read": len(again.read), "unread": len(again.unread)}
    log_action("profile_reread", state.get("thread_id"), **counts)
    # If nothing could be read, the profile is as old as before.
    return again.company, [reports.reread(again)], bool(again.read)


async def refresh_icp(
    state: State, config: RunnableConfig
) -> Command[Literal["decide_strategy", "finalize"]]:
    """Search the web and the register, and make what was found the new version.

    Without a result, the candidates of the last search stay.
    """
    (company, icp), found, tenant_id = _asked(state), _found(state), caller(config).tenant_id
    said = feedback.weights(await feedback.feedback_of(tenant_id, found["rule_name"]))
    outcome = await searching.search(tenant_id, found["rule_name"], company, icp, feedback=said)
    version = outcome.version
    counts = {"candidates": outcome.kept, "version": version and version.number}
    log_action("icp_refreshed", state.get("thread_id"), **counts, **outcome.sources, **found)
    update: dict[str, Any] = {"notes": [*state["notes"], *reports.searched(outcome)]}
    if outcome.kept == 0:
        # The discovery that the thread has worked with so far is untouched.
        update |= {"found": None, "discovery_ready": False}
        return Command(goto="finalize", update=update)
    update |= {"discovery_ready": True, "last": found, **({"reported": None} if version else {})}
    return Command(goto="decide_strategy", update=update)


async def decide_strategy(
    state: State, config: RunnableConfig
) -> Command[Literal["ssic_fallback", "progress_report"]]:
    """Decide whether the candidates suffice or the register has to be searched."""
    found, settings = state.get("found"), IcpSettings.from_environment()
    if found is None:
        return Command(goto="progress_report")
    tenant_id, (company, icp) = caller(config).tenant_id, _asked(state)
    count = await store.count_candidates(tenant_id, **found)
    falls_back = (
        # Candidates of an older ICP must not be mixed with companies found for the current one.
        found["icp_hash"] == icp_hash(basis(company, icp))
        # A search of this run has asked the register already.
        and not state.get("consent")
        and count < settings.run_now_limit
        and not await _has_answered(tenant_id, found)
    )
    log_action("strategy", state.get("thread_id"), candidates=count, ssic_fallback=falls_back)
    return Command(goto="ssic_fallback" if falls_back else "progress_report")


async def ssic_fallback(state: State, config: RunnableConfig) -> dict[str, object]:
    """Search the register for companies of the ICP's industries, by SSIC code."""
    (company, icp), found, tenant_id = _asked(state), _found(state), caller(config).tenant_id
    wanted = IcpSettings.from_environment().wanted
    known = await store.best_candidates(tenant_id, **found, limit=wanted)
    said = await feedback.feedback_of(tenant_id, found["rule_name"])
    given = await register.rank(
        tenant_id,
        company,
        icp,
        limit=wanted - len(known),
        without=[each.candidate.key for each in known],
        feedback=feedback.weights(said),
    )
    count = len(given.found)
    log_action("ssic_fallback", state.get("thread_id"), codes=given.codes, candidates=count)
    if not count:
        return {}
    await store.add_candidates(tenant_id, **found, found=given.found)
    added = prompts.FALLBACK.format(reports.counted(count), ", ".join(given.codes))
    return {"notes": [*state["notes"], added], "reported": None}


async def _has_answered(tenant_id: str, found: Found) -> bool:
    """Return whether the register was asked for the current version and had companies."""
    versions = await store.versions(tenant_id, **found)
    return bool(versions) and versions[0].sources["register"] not in ("not_asked", "empty")


def _asked(state: State) -> tuple[Company, Icp]:
    """Return the company and the ICP to search for.

    Raises:
        ValueError: one of them is unknown, which `journey_guard` prevents.
    """
    site, customers, icp = company_of(state)
    if site is None or icp is None:
        raise ValueError("There is nothing to search for: website or ICP is missing")
    return {"site": site, "customers": customers}, icp


def _found(state: State) -> Found:
    """Return the key of the candidates. Raises ValueError if nothing was searched for."""
    found = state.get("found")
    if found is None:
        raise ValueError("There is nothing to search for: the ICP is not confirmed")
    return found
