"""Records: store and load a tenant's company, its rules, and the candidates found for them.

Each function is one transaction. The domain identifies a company. Candidates belong to a rule and
to the hash of the ICP that they were found for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, select, update

from my_agent.icp_finder.model import (
    Basis,
    Candidate,
    Company,
    Discovery,
    Icp,
    Profile,
    Rule,
    Score,
    Scored,
    Snapshot,
)
from my_agent.icp_finder.statements import run, upsert
from my_agent.icp_finder.tables import candidates, discoveries, profiles, rules, scores


async def load_snapshot(tenant_id: str, *, domain: str | None, rule_name: str) -> Snapshot:
    """Load the stored data of a tenant's company.

    Args:
        tenant_id: the tenant.
        domain: domain of the company; None: the company saved last.
        rule_name: the preferred rule; if it is not stored, the rule saved last is loaded.
    """

    def work(connection: Connection) -> Snapshot:
        profile = connection.execute(_profile(tenant_id, domain)).first()
        about = domain or (profile.domain if profile else None)
        if about is None:
            return Snapshot()
        found = connection.execute(
            select(rules)
            .where(rules.c.tenant_id == tenant_id, rules.c.domain == about)
            .order_by((rules.c.name == rule_name).desc(), rules.c.updated_at.desc())
            .limit(1)
        ).first()
        return Snapshot(
            profile=None if profile is None else _profile_of(profile),
            rule=None if found is None else _rule_of(found),
            discovery=_latest(connection, tenant_id, about),
        )

    return await run(work, tenant_id)


async def save_profile(tenant_id: str, company: Company, *, confirmed: bool) -> None:
    """Save a tenant's company, and replace the stored one of the same domain.

    Args:
        tenant_id: the tenant.
        company: the company.
        confirmed: whether the user has confirmed it.
    """
    row = {
        "tenant_id": tenant_id,
        "domain": company["site"]["domain"],
        "company": company,
        "confirmed": confirmed,
        "updated_at": now(),
    }
    await run(lambda connection: upsert(connection, profiles, [row]), tenant_id, write=True)


async def save_rule(tenant_id: str, domain: str, name: str, icp: Icp, *, confirmed: bool) -> None:
    """Save the ICP of a tenant's company under the name of a rule, and replace that rule.

    Args:
        tenant_id: the tenant.
        domain: domain of the company.
        name: name of the rule.
        icp: the ICP.
        confirmed: whether the user has confirmed it.
    """
    row = {
        "tenant_id": tenant_id,
        "domain": domain,
        "name": name,
        "icp": icp,
        "confirmed": confirmed,
        "updated_at": now(),
    }
    await run(lambda connection: upsert(connection, rules, [row]), tenant_id, write=True)


async def save_discovery(
    tenant_id: str, rule_name: str, icp_hash: str, basis: Basis, found: Sequence[Scored]
) -> None:
    """Save a search and replace the candidates of the previous one.

    Details of a candidate that is found again stay, but the candidate is due for enrichment again.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the search.
        icp_hash: hash of `basis`.
        basis: the input of the search.
        found: the candidates.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    keys = [each.candidate.key for each in found]
    row = {
        **_named(discovery_key),
        "domain": basis["website"],
        "basis": basis,
        "discovered_at": now(),
    }

    def work(connection: Connection) -> None:
        for table in (scores, candidates):
            others = table.c.key.not_in(keys)
            connection.execute(delete(table).where(*_of(table, discovery_key), others))
        _keep(connection, discovery_key, found, keep=("details", "found_at"))
        upsert(connection, discoveries, [row])

    await run(work, tenant_id, write=True)


async def add_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, found: Sequence[Scored]
) -> None:
    """Add candidates to a discovery, and update those that it already has.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
        found: the candidates.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    stays = ("details", "found_at", "enriched_at")
    await run(
        lambda connection: _keep(connection, discovery_key, found, keep=stays),
        tenant_id,
        write=True,
    )


async def best_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, *, limit: int
) -> list[Scored]:
    """Return the candidates of a discovery with their scores, best first, then by name.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
        limit: maximum number of candidates.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    ask = with_scores(discovery_key).order_by(
        scores.c.total.desc(), candidates.c.name, candidates.c.key
    )
    return await run(
        lambda connection: [scored(row) for row in connection.execute(ask.limit(limit))],
        tenant_id,
    )


async def count_candidates(tenant_id: str, rule_name: str, icp_hash: str) -> int:
    """Return the number of candidates of a discovery.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    return await run(lambda connection: _count(connection, discovery_key), tenant_id)


# --- shared with jobs and export ---------------------------------------------

DiscoveryKey = tuple[str, str, str]
"""Tenant, rule and ICP hash: identify a discovery and its candidates."""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def with_scores(discovery_key: DiscoveryKey) -> Select[Any]:
    """Select the candidates of a discovery with their scores."""
    joined = candidates.join(
        scores,
        (candidates.c.tenant_id == scores.c.tenant_id)
        & (candidates.c.rule_name == scores.c.rule_name)
        & (candidates.c.icp_hash == scores.c.icp_hash)
        & (candidates.c.key == scores.c.key),
    )
    columns = (candidates, scores.c.total, scores.c.parts)
    return select(*columns).select_from(joined).where(*_of(candidates, discovery_key))


def scored(row: Row[Any]) -> Scored:
    """Convert a row of `with_scores`."""
    return Scored(candidate(row), Score(row.total, row.parts))


def candidate(row: Row[Any]) -> Candidate:
    """Convert a row of the candidates' table."""
    return Candidate(
        key=row.key,
        name=row.name,
        source=row.source,
        website=row.website,
        uen=row.uen,
        ssic=row.ssic,
        industry=row.industry,
        region=row.region,
        about=row.about,
        details=row.details,
    )


def find_candidates(
    connection: Connection, discovery_key: DiscoveryKey, keys: Sequence[str]
) -> dict[str, Row[Any]]:
    """Return the rows of candidates by their keys; unknown keys are left out."""
    ask = select(candidates).where(*_of(candidates, discovery_key), candidates.c.key.in_(keys))
    return {row.key: row for row in connection.execute(ask)}


def save_details(
    connection: Connection,
    discovery_key: DiscoveryKey,
    key: str,
    details: Mapping[str, Any],
    score: Score | None = None,
) -> None:
    """Store what enrichment has found about a candidate, and its new score if given."""
    timestamp = now()
    found = update(candidates).where(*_of(candidates, discovery_key), candidates.c.key == key)
    connection.execute(found.values(details=dict(details), enriched_at=timestamp))
    if score is not None:
        again = update(scores).where(*_of(scores, discovery_key), scores.c.key == key)
        parts = dict(score.parts)
        connection.execute(again.values(total=score.total, parts=parts, scored_at=timestamp))


def asked_for(connection: Connection, discovery_key: DiscoveryKey) -> tuple[Company, Icp] | None:
    """Return the company and ICP of a discovery; None if they are not stored any more."""
    found = connection.execute(
        select(discoveries.c.basis, profiles.c.company)
        .join(
            profiles,
            (profiles.c.tenant_id == discoveries.c.tenant_id)
            & (profiles.c.domain == discoveries.c.domain),
        )
        .where(*_of(discoveries, discovery_key))
    ).first()
    return found and (found.company, found.basis["icp"])


def _keep(
    connection: Connection,
    discovery_key: DiscoveryKey,
    found: Iterable[Scored],
    *,
    keep: tuple[str, ...],
) -> None:
    timestamp = now()
    # If two candidates have the same key, the last one counts.
    unique = {each.candidate.key: each for each in found}.values()
    rows = [
        {
            **_named(discovery_key),
            **asdict(each.candidate),
            "ssic": list(each.candidate.ssic),
            "details": dict(each.candidate.details),
            "found_at": timestamp,
            "enriched_at": None,
        }
        for each in unique
    ]
    upsert(connection, candidates, rows, keep=keep)
    totals = [
        {
            **_named(discovery_key),
            "key": each.candidate.key,
            "total": each.score.total,
            "parts": dict(each.score.parts),
            "scored_at": timestamp,
        }
        for each in unique
    ]
    upsert(connection, scores, totals)


def _profile(tenant_id: str, domain: str | None) -> Select[Any]:
    of_tenant = select(profiles).where(profiles.c.tenant_id == tenant_id)
    if domain is not None:
        return of_tenant.where(profiles.c.domain == domain)
    return of_tenant.order_by(profiles.c.updated_at.desc()).limit(1)


def _profile_of(row: Row[Any]) -> Profile:
    return Profile(row.company, confirmed=row.confirmed, updated_at=row.updated_at)


def _rule_of(row: Row[Any]) -> Rule:
    return Rule(row.name, row.icp, confirmed=row.confirmed, updated_at=row.updated_at)


def _latest(connection: Connection, tenant_id: str, domain: str) -> Discovery | None:
    row = connection.execute(
        select(discoveries)
        .where(discoveries.c.tenant_id == tenant_id, discoveries.c.domain == domain)
        .order_by(discoveries.c.discovered_at.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    count = _count(connection, (tenant_id, row.rule_name, row.icp_hash))
    return Discovery(row.rule_name, row.basis, candidates=count, at=row.discovered_at)


def _count(connection: Connection, discovery_key: DiscoveryKey) -> int:
    ask = select(func.count()).select_from(candidates).where(*_of(candidates, discovery_key))
    return connection.execute(ask).scalar_one()


def _of(table: Any, discovery_key: DiscoveryKey) -> tuple[Any, ...]:
    tenant_id, rule_name, icp_hash = discovery_key
    return (
        table.c.tenant_id == tenant_id,
        table.c.rule_name == rule_name,
        table.c.icp_hash == icp_hash,
    )


def _named(discovery_key: DiscoveryKey) -> dict[str, str]:
    return dict(zip(("tenant_id", "rule_name", "icp_hash"), discovery_key, strict=True))
