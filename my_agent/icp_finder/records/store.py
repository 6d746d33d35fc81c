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
    Change,
    Changes,
    Company,
    Discovery,
    Icp,
    Line,
    Profile,
    Rule,
    Score,
    Scored,
    Snapshot,
    Sources,
    Version,
)
from my_agent.icp_finder.records.statements import run, upsert
from my_agent.icp_finder.records.tables import (
    candidates,
    discoveries,
    discovery_versions,
    profiles,
    rules,
    scores,
)
from threadhold.tables import lock

# Versions of a discovery that are kept.
VERSIONS = 20
# A difference of totals from which a candidate counts as changed.
CLEARLY = 0.05
# Answers of web and register that name all companies that they know.
_ANSWERED = ("found", "nothing", "empty", "no_codes", "elsewhere")


async def load_snapshot(tenant_id: str, *, domain: str | None, rule_name: str) -> Snapshot:
    """Load the stored data of a tenant's company.

    Args:
        tenant_id: the tenant.
        domain: domain of the company; None: the company saved last.
        rule_name: the preferred rule; if it is not stored, the rule saved last is loaded. A stored
            rule has the discoveries made for it, and no others.
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
            discovery=_latest(
                connection,
                tenant_id,
                about,
                rule_name,
                others=found is None or found.name != rule_name,
            ),
        )

    return await run(work, tenant_id)


async def save_profile(
    tenant_id: str, company: Company, *, confirmed: bool, was_read: bool = True
) -> None:
    """Save a tenant's company, and replace the stored one of the same domain.

    Args:
        tenant_id: the tenant.
        company: the company.
        confirmed: whether the user has confirmed it.
        was_read: whether websites were read for it; otherwise it is as old as before.
    """
    row = {
        "tenant_id": tenant_id,
        "domain": company["site"]["domain"],
        "company": company,
        "confirmed": confirmed,
        "updated_at": now(),
    }
    keep = () if was_read else ("updated_at",)
    await run(
        lambda connection: upsert(connection, profiles, [row], keep=keep), tenant_id, write=True
    )


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


async def forget(tenant_id: str, domain: str) -> None:
    """Delete a tenant's company and its rules. Candidates and feedback stay.

    Args:
        tenant_id: the tenant.
        domain: domain of the company.
    """

    def work(connection: Connection) -> None:
        for table in (profiles, rules):
            connection.execute(
                delete(table).where(table.c.tenant_id == tenant_id, table.c.domain == domain)
            )

    await run(work, tenant_id, write=True)


async def save_discovery(
    tenant_id: str,
    rule_name: str,
    icp_hash: str,
    basis: Basis,
    found: Sequence[Scored],
    *,
    sources: Sources | None = None,
) -> Version:
    """Save a search as the new version of a discovery.

    A candidate of an earlier version that its source does not name any more is gone: it is not
    shown, but its row and its enrichment stay, and count again once a search finds it. Candidates
    of a source that gave no answer stay. What is enriched stays enriched when it is found again.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the search.
        icp_hash: hash of `basis`.
        basis: the input of the search.
        found: the candidates.
        sources: what the sources answered; None: both have answered.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    keys = [each.candidate.key for each in found]
    sources = sources or {"web": "found", "register": "found"}
    answered = [name for name, answer in sources.items() if answer in _ANSWERED]

    def work(connection: Connection) -> Version:
        lock(connection, f"discovery:{':'.join(discovery_key)}")
        known = connection.execute(select(discoveries).where(*_of(discoveries, discovery_key)))
        previous, timestamp, before = known.first(), now(), _lines(connection, discovery_key)
        connection.execute(
            update(candidates)
            .where(
                *_of(candidates, discovery_key),
                candidates.c.key.not_in(keys),
                candidates.c.source.in_(answered),
                candidates.c.gone_at.is_(None),
            )
            .values(gone_at=timestamp)
        )
        _keep(connection, discovery_key, found)
        after = _lines(connection, discovery_key)
        changes = compared(before, after) if previous else Changes(new=[], gone=[], changed=[])
        number = previous.version + 1 if previous else 1
        # A search that the web did not answer is as old as the last one that it did.
        is_partial = sources["web"] == "failed"
        at = previous.discovered_at if previous and is_partial else timestamp
        row = {
            **_named(discovery_key),
            "domain": basis["website"],
            "basis": basis,
            "discovered_at": at,
            "version": number,
        }
        upsert(connection, discoveries, [row])
        version = {
            **_named(discovery_key),
            "version": number,
            "sources": sources,
            "candidates": after,
            "changes": changes,
            "discovered_at": timestamp,
        }
        upsert(connection, discovery_versions, [version])
        old = discovery_versions.c.version <= number - VERSIONS
        connection.execute(
            delete(discovery_versions).where(*_of(discovery_versions, discovery_key), old)
        )
        return Version(number, sources, after, changes, timestamp)

    return await run(work, tenant_id, write=True)


async def versions(tenant_id: str, rule_name: str, icp_hash: str) -> list[Version]:
    """Return the stored versions of a discovery, the current one first.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the search.
        icp_hash: hash of the ICP.
    """
    of = _of(discovery_versions, (tenant_id, rule_name, icp_hash))
    ask = select(discovery_versions).where(*of).order_by(discovery_versions.c.version.desc())

    def work(connection: Connection) -> list[Version]:
        return [
            Version(row.version, row.sources, row.candidates, row.changes, row.discovered_at)
            for row in connection.execute(ask)
        ]

    return await run(work, tenant_id)


def compared(before: Sequence[Line], after: Sequence[Line]) -> Changes:
    """Compare two versions of a discovery. Pure."""
    old, new = ({line["key"]: line for line in lines} for lines in (before, after))
    return {
        "new": [line for line in after if line["key"] not in old],
        "gone": [line for line in before if line["key"] not in new],
        "changed": [
            Change(**line, before=old[line["key"]]["total"])
            for line in after
            if line["key"] in old and abs(line["total"] - old[line["key"]]["total"]) >= CLEARLY
        ],
    }


async def known_details(tenant_id: str, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return what enrichment has found about companies in any search of the tenant, by key.

    Args:
        tenant_id: the tenant.
        keys: keys of candidates; those without details are left out.
    """
    filters = (candidates.c.tenant_id == tenant_id, candidates.c.key.in_(keys))
    # The newest comes last and wins.
    ask = select(candidates).where(*filters).order_by(candidates.c.tried_at)

    def work(connection: Connection) -> dict[str, Mapping[str, Any]]:
        return {row.key: row.details for row in connection.execute(ask) if row.details}

    return await run(work, tenant_id)


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
    await run(lambda connection: _keep(connection, discovery_key, found), tenant_id, write=True)


async def best_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, *, limit: int
) -> list[Scored]:
    """Return the candidates of a discovery with their scores, best first.

    Of equal scores, the one with more evidence comes first, then the name decides.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
        limit: maximum number of candidates.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    ask = with_scores(discovery_key).order_by(*BEST)
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


BEST = (scores.c.total.desc(), scores.c.proven.desc(), candidates.c.name, candidates.c.key)
"""The order of candidates: the best first, of equal ones those with more evidence."""


def with_scores(discovery_key: DiscoveryKey) -> Select[Any]:
    """Select the candidates of a discovery with their scores."""
    joined = candidates.join(
        scores,
        (candidates.c.tenant_id == scores.c.tenant_id)
        & (candidates.c.rule_name == scores.c.rule_name)
        & (candidates.c.icp_hash == scores.c.icp_hash)
        & (candidates.c.key == scores.c.key),
    )
    columns = (candidates, scores.c.total, scores.c.parts, scores.c.evidence, scores.c.proven)
    return select(*columns).select_from(joined).where(*_current(discovery_key))


def scored(row: Row[Any]) -> Scored:
    """Convert a row of `with_scores`."""
    # Rows of the version before have no evidence.
    return Scored(
        candidate(row), Score(row.total, row.parts, tuple(row.evidence or ()), row.proven)
    )


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
    """Return the rows of candidates by their keys; unknown ones and those gone are left out."""
    ask = select(candidates).where(*_current(discovery_key), candidates.c.key.in_(keys))
    return {row.key: row for row in connection.execute(ask)}


def save_details(
    connection: Connection,
    discovery_key: DiscoveryKey,
    key: str,
    details: Mapping[str, Any],
    score: Score | None = None,
    *,
    enriched: bool = True,
) -> None:
    """Store what enrichment has found about a candidate, and its new score if given.

    Args:
        connection: in a transaction that writes.
        discovery_key: the discovery.
        key: the candidate.
        details: what was found, or why nothing was.
        score: the new score.
        enriched: whether the website was read; otherwise the candidate stays due for enrichment.
    """
    timestamp = now()
    found = update(candidates).where(*_of(candidates, discovery_key), candidates.c.key == key)
    done = {"enriched_at": timestamp} if enriched else {}
    connection.execute(found.values(details=dict(details), tried_at=timestamp, **done))
    if score is not None:
        again = update(scores).where(*_of(scores, discovery_key), scores.c.key == key)
        connection.execute(again.values(**_score_columns(score), scored_at=timestamp))


def stored_feedback(connection: Connection, discovery_key: DiscoveryKey, key: str) -> float:
    """Return the part of a candidate's stored score that comes from feedback; 0 without one."""
    ask = select(scores.c.parts).where(*_of(scores, discovery_key), scores.c.key == key)
    return float((connection.execute(ask).scalar_one_or_none() or {}).get("feedback", 0.0))


def _score_columns(score: Score) -> dict[str, Any]:
    return {
        "total": score.total,
        "parts": dict(score.parts),
        "evidence": list(score.evidence),
        "proven": score.proven,
    }


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


# Of a candidate that is found again.
_STAYS = ("details", "found_at", "enriched_at", "tried_at")


def _keep(
    connection: Connection,
    discovery_key: DiscoveryKey,
    found: Iterable[Scored],
) -> None:
    timestamp = now()

    def enriched(details: Mapping[str, Any]) -> datetime | None:
        # By another search of the tenant.
        return timestamp if details.get("status") == "read" else None

    # If two candidates have the same key, the last one counts.
    unique = {each.candidate.key: each for each in found}.values()
    rows = [
        {
            **_named(discovery_key),
            **asdict(each.candidate),
            "ssic": list(each.candidate.ssic),
            "details": dict(each.candidate.details),
            "found_at": timestamp,
            "enriched_at": enriched(each.candidate.details),
            "gone_at": None,
            "tried_at": None,
        }
        for each in unique
    ]
    upsert(connection, candidates, rows, keep=_STAYS)
    totals = [
        {
            **_named(discovery_key),
            "key": each.candidate.key,
            **_score_columns(each.score),
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


def _latest(
    connection: Connection, tenant_id: str, domain: str, rule_name: str, *, others: bool
) -> Discovery | None:
    """Return the last discovery of a rule; if there is none and `others`, that of any rule."""
    of_rule = discoveries.c.rule_name == rule_name
    row = connection.execute(
        select(discoveries)
        .where(
            discoveries.c.tenant_id == tenant_id,
            discoveries.c.domain == domain,
            *(() if others else (of_rule,)),
        )
        .order_by(of_rule.desc(), discoveries.c.discovered_at.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    count = _count(connection, (tenant_id, row.rule_name, row.icp_hash))
    return Discovery(row.rule_name, row.basis, candidates=count, at=row.discovered_at)


def _count(connection: Connection, discovery_key: DiscoveryKey) -> int:
    ask = select(func.count()).select_from(candidates).where(*_current(discovery_key))
    return connection.execute(ask).scalar_one()


def _lines(connection: Connection, discovery_key: DiscoveryKey) -> list[Line]:
    found = connection.execute(with_scores(discovery_key).order_by(*BEST))
    return [Line(key=row.key, name=row.name, total=row.total) for row in found]


def _current(discovery_key: DiscoveryKey) -> tuple[Any, ...]:
    """Return the conditions for candidates of the current version."""
    return (*_of(candidates, discovery_key), candidates.c.gone_at.is_(None))


def _of(table: Any, discovery_key: DiscoveryKey) -> tuple[Any, ...]:
    tenant_id, rule_name, icp_hash = discovery_key
    return (
        table.c.tenant_id == tenant_id,
        table.c.rule_name == rule_name,
        table.c.icp_hash == icp_hash,
    )


def _named(discovery_key: DiscoveryKey) -> dict[str, str]:
    return dict(zip(("tenant_id", "rule_name", "icp_hash"), discovery_key, strict=True))
