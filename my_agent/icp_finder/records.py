"""Records: what is known of a tenant's company, its rules, and the candidates found for them.

Each function is one transaction. A company is told apart by its domain; candidates belong to a rule
and to the hash of what was asked for.
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
    """What is known of a tenant's company.

    Args:
        tenant_id: whose.
        domain: of the company; None: the one saved last.
        rule_name: of the rule that is looked for; where it is not there, the one saved last.
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
    """Save a tenant's company, in the place of what was known of its domain.

    Args:
        tenant_id: whose.
        company: the company.
        confirmed: whether the user has said that it is right.
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
    """Save an ICP of a tenant's company under the name of a rule, in the place of that rule.

    Args:
        tenant_id: whose.
        domain: of the company.
        name: of the rule.
        icp: the ICP.
        confirmed: whether the user has said that it is right.
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
    """Note a search for candidates, and keep what it found in the place of what the last one did.

    What enrichment has found of a candidate that is found again stays until it is enriched again,
    for which it is due now.

    Args:
        tenant_id: whose.
        rule_name: the rule that it was for.
        icp_hash: of `basis`.
        basis: what was asked for.
        found: the candidates.
    """
    which = (tenant_id, rule_name, icp_hash)
    keys = [each.candidate.key for each in found]
    note = {**_named(which), "domain": basis["website"], "basis": basis, "discovered_at": now()}

    def work(connection: Connection) -> None:
        for table in (scores, candidates):
            others = table.c.key.not_in(keys)
            connection.execute(delete(table).where(*_of(table, which), others))
        _keep(connection, which, found, keep=("details", "found_at"))
        upsert(connection, discoveries, [note])

    await run(work, tenant_id, write=True)


async def add_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, found: Sequence[Scored]
) -> None:
    """Add candidates to a discovery's; one that is there already is brought up to date.

    Args:
        tenant_id: whose.
        rule_name: the rule that they are for.
        icp_hash: of what was asked for.
        found: the candidates.
    """
    which = (tenant_id, rule_name, icp_hash)
    stays = ("details", "found_at", "enriched_at")
    await run(lambda connection: _keep(connection, which, found, keep=stays), tenant_id, write=True)


async def best_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, *, limit: int
) -> list[Scored]:
    """The candidates of a discovery with their scores, best first, then by name.

    Args:
        tenant_id: whose.
        rule_name: the rule that they are for.
        icp_hash: of what was asked for.
        limit: how many at most.
    """
    which = (tenant_id, rule_name, icp_hash)
    ask = with_scores(which).order_by(scores.c.total.desc(), candidates.c.name, candidates.c.key)
    return await run(
        lambda connection: [scored(row) for row in connection.execute(ask.limit(limit))],
        tenant_id,
    )


async def count_candidates(tenant_id: str, rule_name: str, icp_hash: str) -> int:
    """How many candidates a discovery has.

    Args:
        tenant_id: whose.
        rule_name: the rule that they are for.
        icp_hash: of what was asked for.
    """
    which = (tenant_id, rule_name, icp_hash)
    return await run(lambda connection: _count(connection, which), tenant_id)


# --- for the modules beside this one ----------------------------------------

Which = tuple[str, str, str]
"""Tenant, rule and hash: whose candidates."""


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def with_scores(which: Which) -> Select[Any]:
    """Candidates with their scores."""
    joined = candidates.join(
        scores,
        (candidates.c.tenant_id == scores.c.tenant_id)
        & (candidates.c.rule_name == scores.c.rule_name)
        & (candidates.c.icp_hash == scores.c.icp_hash)
        & (candidates.c.key == scores.c.key),
    )
    columns = (candidates, scores.c.total, scores.c.parts)
    return select(*columns).select_from(joined).where(*_of(candidates, which))


def scored(row: Row[Any]) -> Scored:
    """A row of `with_scores`."""
    return Scored(candidate(row), Score(row.total, row.parts))


def candidate(row: Row[Any]) -> Candidate:
    """A row of candidates."""
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
    connection: Connection, which: Which, keys: Sequence[str]
) -> dict[str, Row[Any]]:
    """The rows of candidates by their keys; those that are not there are missing."""
    ask = select(candidates).where(*_of(candidates, which), candidates.c.key.in_(keys))
    return {row.key: row for row in connection.execute(ask)}


def save_details(
    connection: Connection,
    which: Which,
    key: str,
    details: Mapping[str, Any],
    score: Score | None = None,
) -> None:
    """Keep what enrichment has found of a candidate, and its new score if there is one."""
    moment = now()
    found = update(candidates).where(*_of(candidates, which), candidates.c.key == key)
    connection.execute(found.values(details=dict(details), enriched_at=moment))
    if score is not None:
        again = update(scores).where(*_of(scores, which), scores.c.key == key)
        parts = dict(score.parts)
        connection.execute(again.values(total=score.total, parts=parts, scored_at=moment))


def asked_for(connection: Connection, which: Which) -> tuple[Company, Icp] | None:
    """The company and ICP that candidates were found for; None where nobody knows any more."""
    found = connection.execute(
        select(discoveries.c.basis, profiles.c.company)
        .join(
            profiles,
            (profiles.c.tenant_id == discoveries.c.tenant_id)
            & (profiles.c.domain == discoveries.c.domain),
        )
        .where(*_of(discoveries, which))
    ).first()
    return found and (found.company, found.basis["icp"])


def _keep(
    connection: Connection, which: Which, found: Iterable[Scored], *, keep: tuple[str, ...]
) -> None:
    moment = now()
    # Of two with one key the last counts.
    unique = {each.candidate.key: each for each in found}.values()
    rows = [
        {
            **_named(which),
            **asdict(each.candidate),
            "ssic": list(each.candidate.ssic),
            "details": dict(each.candidate.details),
            "found_at": moment,
            "enriched_at": None,
        }
        for each in unique
    ]
    upsert(connection, candidates, rows, keep=keep)
    totals = [
        {
            **_named(which),
            "key": each.candidate.key,
            "total": each.score.total,
            "parts": dict(each.score.parts),
            "scored_at": moment,
        }
        for each in unique
    ]
    upsert(connection, scores, totals)


def _profile(tenant_id: str, domain: str | None) -> Select[Any]:
    mine = select(profiles).where(profiles.c.tenant_id == tenant_id)
    if domain is not None:
        return mine.where(profiles.c.domain == domain)
    return mine.order_by(profiles.c.updated_at.desc()).limit(1)


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


def _count(connection: Connection, which: Which) -> int:
    ask = select(func.count()).select_from(candidates).where(*_of(candidates, which))
    return connection.execute(ask).scalar_one()


def _of(table: Any, which: Which) -> tuple[Any, ...]:
    tenant_id, rule_name, icp_hash = which
    return (
        table.c.tenant_id == tenant_id,
        table.c.rule_name == rule_name,
        table.c.icp_hash == icp_hash,
    )


def _named(which: Which) -> dict[str, str]:
    return dict(zip(("tenant_id", "rule_name", "icp_hash"), which, strict=True))
