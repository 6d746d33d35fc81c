"""Searching: ask the web and the register, rank what both give, and keep it as a new version.

A search never destroys. Only a search that found companies makes a new version; otherwise the stored
candidates stay, and the outcome says why there is no new version.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from my_agent.icp_finder.model import (
    Candidate,
    Company,
    DiscoveryKey,
    Icp,
    Scored,
    Sources,
    Version,
)
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.search import likeness, register
from my_agent.icp_finder.search.discovery import discover
from my_agent.icp_finder.search.scoring import excluding, scored, with_feedback
from my_agent.icp_finder.settings import IcpSettings

# The most candidates that a discovery has; settings allow 1100.
MOST = 2000


@dataclass(frozen=True)
class Outcome:
    """The outcome of a search."""

    sources: Sources  # what web and register answered
    codes: Sequence[str]  # the SSIC codes that the register was asked for
    version: Version | None  # None if nothing was found, and nothing has changed
    kept: int  # number of candidates that are stored for the profile
    added: int  # number of candidates that the register gave


async def search(
    tenant_id: str,
    rule_name: str,
    company: Company,
    icp: Icp,
    *,
    feedback: Mapping[str, float] | None = None,
) -> Outcome:
    """Search for companies that fit an ICP.

    The register is asked if the web gives fewer companies than are enriched at once.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the search.
        company: the tenant's company.
        icp: the ideal customer profile.
        feedback: what the users think of companies, from -1 to 1, by the key of the candidate.
    """
    settings, feedback = IcpSettings.from_environment(), feedback or {}
    asked = basis(company, icp)
    of = DiscoveryKey(tenant_id, rule_name, icp_hash(asked))
    web = await discover(company, icp, limit=settings.wanted)
    found = await _scored(tenant_id, web.candidates, company, icp, feedback)
    given = register.Ranked("not_asked")
    if len(found) < settings.run_now_limit:
        given = await register.rank(
            tenant_id,
            company,
            icp,
            limit=settings.wanted - len(found),
            details=await _known_of_register(of),
            feedback=feedback,
        )
    sources: Sources = {"web": web.answer, "register": given.answer}
    everything, version = [*found, *given.found], None
    if everything:
        version = await store.save_discovery(*of, asked, everything, sources=sources)
    kept = await store.count_candidates(*of)
    return Outcome(sources, given.codes, version, kept, len(given.found))


async def apply_feedback(
    tenant_id: str, rule_name: str, icp_hash: str, feedback: Mapping[str, float]
) -> None:
    """Let feedback move the stored candidates of a discovery, without a search.

    Candidates without an entry lose the feedback that they had.
    """
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)
    old = await store.best_candidates(*of, limit=MOST)
    new = [
        replace(each, score=with_feedback(each.score, feedback.get(each.candidate.key, 0.0)))
        for each in old
    ]
    changed = [each for each, before in zip(new, old, strict=True) if each != before]
    await store.add_candidates(*of, changed)


async def _scored(
    tenant_id: str,
    candidates: Sequence[Candidate],
    company: Company,
    icp: Icp,
    feedback: Mapping[str, float],
) -> list[Scored]:
    """Score candidates, with what enrichment has found about them in earlier searches.

    What the profile excludes is left out.
    """
    is_excluded = await asyncio.to_thread(excluding, icp)
    wanted = [each for each in candidates if not is_excluded(each)]
    if not wanted:
        return []
    details = await store.known_details(tenant_id, [each.key for each in wanted])
    known = [replace(each, details=details.get(each.key, each.details)) for each in wanted]
    # In threads, because many of them take a while.
    alike = await asyncio.to_thread(likeness.measure, [each.text for each in known], company)
    return await asyncio.to_thread(scored, known, company, icp, alike, feedback)


async def _known_of_register(of: DiscoveryKey) -> register.Known:
    """Return what is known of the register's companies that an earlier search has found."""
    best = await store.best_candidates(*of, limit=MOST)
    keys = [each.candidate.key for each in best if each.candidate.source == "register"]
    return await store.known_details(of.tenant_id, keys)
