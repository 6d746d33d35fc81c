"""Nodes of the search: on the web first, and in the register if the web finds too few companies."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, records, register, scoring, ssic
from my_agent.icp_finder.diffs import basis, icp_hash
from my_agent.icp_finder.discovery import discover
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.message_parser import clean
from my_agent.icp_finder.model import Candidate, Company, Icp, Scored
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import Found, State
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
    icp: Icp = {
        "industries": clean("industries", asked["industries"]),
        "sizes": clean("sizes", asked["sizes"]),
        "regions": clean("regions", asked["regions"]),
        "keywords": clean("keywords", asked["keywords"]),
    }
    tenant_id, rule_name = caller(config).tenant_id, state["rule_name"]
    domain = company["site"]["domain"]
    await records.save_profile(tenant_id, company, confirmed=True)
    await records.save_rule(tenant_id, domain, rule_name, icp, confirmed=True)
    found: Found = {"rule_name": rule_name, "icp_hash": icp_hash(basis(company, icp))}
    return Command(goto="refresh_icp", update={"icp": icp, "found": found, "confirmed": True})


async def refresh_icp(state: State, config: RunnableConfig) -> dict[str, object]:
    """Search the web, score the results, and replace the stored candidates by them."""
    company, icp = _asked(state)
    settings, discovery_key = IcpSettings.from_environment(), _discovery_key(state)
    candidates = await discover(company, icp, limit=settings.wanted)
    await records.save_discovery(
        caller(config).tenant_id,
        discovery_key["rule_name"],
        discovery_key["icp_hash"],
        basis(company, icp),
        await _scored(candidates, company, icp),
    )
    log_action("icp_refreshed", state.get("thread_id"), candidates=len(candidates), **discovery_key)
    return {"discovery_ready": True, "last": discovery_key, "reported": None}


async def decide_strategy(
    state: State, config: RunnableConfig
) -> Command[Literal["ssic_fallback", "progress_report"]]:
    """Decide whether the candidates suffice or the register has to be searched."""
    found, settings = state.get("found"), IcpSettings.from_environment()
    if found is None:
        return Command(goto="progress_report")
    count = await records.count_candidates(caller(config).tenant_id, **found)
    company, icp = _asked(state)
    # Candidates of an older ICP must not be mixed with companies found for the current one.
    is_current = found["icp_hash"] == icp_hash(basis(company, icp))
    falls_back = is_current and count < settings.run_now_limit
    log_action("strategy", state.get("thread_id"), candidates=count, ssic_fallback=falls_back)
    return Command(goto="ssic_fallback" if falls_back else "progress_report")


async def ssic_fallback(state: State, config: RunnableConfig) -> dict[str, object]:
    """Search the register for companies of the ICP's industries, by SSIC code."""
    (company, icp), discovery_key = _asked(state), _discovery_key(state)
    tenant_id, settings = caller(config).tenant_id, IcpSettings.from_environment()
    known = await records.best_candidates(tenant_id, **discovery_key, limit=settings.wanted)
    codes = ssic.codes(icp["industries"])
    candidates = (
        await register.find(
            tenant_id,
            codes,
            icp,
            limit=settings.wanted - len(known),
            without=[each.candidate.key for each in known],
        )
        if codes
        else []
    )
    if candidates:
        found = await _scored(candidates, company, icp)
        await records.add_candidates(tenant_id, **discovery_key, found=found)
    log_action("ssic_fallback", state.get("thread_id"), codes=codes, candidates=len(candidates))
    notes = [*state.get("notes", []), prompts.fallback(len(candidates), codes)]
    return {"notes": notes, "reported": None if candidates else state.get("reported")}


def _asked(state: State) -> tuple[Company, Icp]:
    """Return the company and the ICP to search for.

    Raises:
        ValueError: one of them is unknown, which `journey_guard` prevents.
    """
    site, icp = state.get("site"), state.get("icp")
    if site is None or icp is None:
        raise ValueError("There is nothing to search for: website or ICP is missing")
    return {"site": site, "customers": state.get("customers", [])}, icp


def _discovery_key(state: State) -> Found:
    """Return the key of the candidates. Raises ValueError if nothing was searched for."""
    found = state.get("found")
    if found is None:
        raise ValueError("There is nothing to search for: the ICP is not confirmed")
    return found


async def _scored(candidates: Sequence[Candidate], company: Company, icp: Icp) -> list[Scored]:
    """Score the candidates in a thread, because many of them take a while."""

    def score() -> list[Scored]:
        return [Scored(each, scoring.score(each, company, icp)) for each in candidates]

    return await asyncio.to_thread(score)
