"""The search for candidates: on the web, and where that is too little in a register of companies."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, records, register, scoring, ssic
from my_agent.icp_finder.diffs import basis, icp_hash
from my_agent.icp_finder.discovery import discover
from my_agent.icp_finder.heard import clean
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.model import Candidate, Company, Icp, Scored
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import Found, State
from my_agent.user import caller


async def normalize(
    state: State, config: RunnableConfig
) -> Command[Literal["refresh_icp", "decide_strategy"]]:
    """Brings the ICP into its usual form; saves what the user has agreed to search with.

    Without a new search there is nothing to save, and the candidates are those of the last one.
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
    """Searches the web, scores what it finds, and keeps it in the place of what there was."""
    company, icp = _asked(state)
    settings, which = IcpSettings.from_environment(), _which(state)
    candidates = await discover(company, icp, limit=settings.wanted)
    await records.save_discovery(
        caller(config).tenant_id,
        which["rule_name"],
        which["icp_hash"],
        basis(company, icp),
        await _scored(candidates, company, icp),
    )
    noted("icp_refreshed", state.get("thread_id"), candidates=len(candidates), **which)
    return {"discovery_ready": True, "last": which, "reported": None}


async def decide_strategy(
    state: State, config: RunnableConfig
) -> Command[Literal["ssic_fallback", "progress_report"]]:
    """Whether the candidates are enough, or the register has to help."""
    found, settings = state.get("found"), IcpSettings.from_environment()
    if found is None:
        return Command(goto="progress_report")
    count = await records.count_candidates(caller(config).tenant_id, **found)
    company, icp = _asked(state)
    # The candidates of another question get no companies of this one.
    is_current = found["icp_hash"] == icp_hash(basis(company, icp))
    falls_back = is_current and count < settings.run_now_limit
    noted("strategy", state.get("thread_id"), candidates=count, ssic_fallback=falls_back)
    return Command(goto="ssic_fallback" if falls_back else "progress_report")


async def ssic_fallback(state: State, config: RunnableConfig) -> dict[str, object]:
    """Finds companies of the ICP's industries in the register, by their SSIC codes."""
    (company, icp), which = _asked(state), _which(state)
    tenant_id, settings = caller(config).tenant_id, IcpSettings.from_environment()
    known = await records.best_candidates(tenant_id, **which, limit=settings.wanted)
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
        await records.add_candidates(tenant_id, **which, found=found)
    noted("ssic_fallback", state.get("thread_id"), codes=codes, candidates=len(candidates))
    notes = [*state.get("notes", []), prompts.fallback(len(candidates), codes)]
    return {"notes": notes, "reported": None if candidates else state.get("reported")}


def _asked(state: State) -> tuple[Company, Icp]:
    """What is searched for.

    Raises:
        ValueError: it is not known yet; the guard lets nothing through then.
    """
    site, icp = state.get("site"), state.get("icp")
    if site is None or icp is None:
        raise ValueError("There is nothing to search for: website or ICP are missing")
    return {"site": site, "customers": state.get("customers", [])}, icp


def _which(state: State) -> Found:
    """Whose candidates. Raises ValueError: nothing was searched for."""
    found = state.get("found")
    if found is None:
        raise ValueError("There is nothing to search for: the ICP is not confirmed")
    return found


async def _scored(candidates: Sequence[Candidate], company: Company, icp: Icp) -> list[Scored]:
    """The candidates with their scores, from a thread: many of them take a while."""

    def score() -> list[Scored]:
        return [Scored(each, scoring.score(each, company, icp)) for each in candidates]

    return await asyncio.to_thread(score)
