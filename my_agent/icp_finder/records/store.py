"""Records: store and load a tenant's company, its rules, and the candidates found for them.

Each function is one transaction. The domain identifies a company. Candidates belong to a rule and
to the hash of the ICP that they were found for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, and_, delete, func, select, update

from my_agent.icp_finder.model import (
    Basis,
    Candidate,
    Change,
    Changes,
    Company,
    Discovery,
    DiscoveryKey,
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
from my_agent.icp_finder.records.tables import (
    candidates,
    discoveries,
    discovery_versions,
    profiles,
    rules,
    scores,
)
from my_agent.tables import rows, run, upsert
from threadhold.tables import lock

T = TypeVar("T")

# Versions of a discovery that are kept.
VERSIONS = 20
# A difference of totals from which a candidate counts as changed.
CLEARLY = 0.05
# Answers of web and register that name all companies that they know.
_ANSWERED = ("found", "nothing", "empty", "no_codes", "elsewhere")
# Columns of a candidate that a search which finds it again leaves as they are.
_STAYS = ("details", "found_at", "enriched_at", "tried_at")

BEST = (scores.c.total.desc(), scores.c.proven.desc(), candidates.c.name, candidates.c.key)
"""The order of candidates: the best first, of equal ones those with more evidence, then by name."""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


# --- companies and rules --------------------------------------------------------


async def load_snapshot(tenant_id: str, *, domain: str | None, rule_name: str) -> Snapshot:
    """Load the stored data of a tenant's company.

    Args:
        tenant_id: the tenant.
        domain: domain of the company; None: the company saved last.
        rule_name: the preferred rule; if it is not stored, the rule saved last is loaded. A stored
            rule has the discoveries made for it, and no others.
    """

    def last(connection: Connection, of: Select[Any], *order: Any) -> Row[Any] | None:
        found = of.filter_by(tenant_id=tenant_id).order_by(*order).limit(1)
        return connection.execute(found).first()

    def work(connection: Connection) -> Snapshot:
        named = {} if domain is None else {"domain": domain}
        profile = last(
            connection, select(profiles).filter_by(**named), profiles.c.updated_at.desc()
        )
        about = domain or (profile.domain if profile else None)
        if about is None:
            return Snapshot()
        wanted = (rules.c.name == rule_name).desc()
        of_company = select(rules).filter_by(domain=about)
        rule = last(connection, of_company, wanted, rules.c.updated_at.desc())
        of_rule = {"rule_name": rule_name} if rule is not None and rule.name == rule_name else {}
        searches = select(discoveries).filter_by(domain=about, **of_rule)
        wanted = (discoveries.c.rule_name == rule_name).desc()
        found = last(connection, searches, wanted, discoveries.c.discovered_at.desc())
        discovery = None
        if found is not None:
            of = DiscoveryKey(tenant_id, found.rule_name, found.icp_hash)
            count = connection.execute(_count(of)).scalar_one()
            discovery = Discovery(found.rule_name, found.basis, count, found.discovered_at)
        return Snapshot(
            profile and _built(Profile, profile), rule and _built(Rule, rule), discovery
        )

    return await run(work, tenant_id)


async def save_profile(
    tenant_id: str, company: Company, *, confirmed: bool, was_read: bool = True
) -> None:
    """Save a tenant's company, and replace the stored one of the same domain.

    If its websites were not read, it is as old as before.
    """
    this = {"tenant_id": tenant_id, "domain": company["site"]["domain"]}
    row = {**this, "company": company, "confirmed": confirmed, "updated_at": now()}
    keep = () if was_read else ("updated_at",)
    await run(lambda to: upsert(to, profiles, [row], keep=keep), tenant_id, write=True)


async def save_rule(tenant_id: str, domain: str, name: str, icp: Icp, *, confirmed: bool) -> None:
    """Save the ICP of a tenant's company under the name of a rule, and replace that rule."""
    this = {"tenant_id": tenant_id, "domain": domain, "name": name}
    row = {**this, "icp": icp, "confirmed": confirmed, "updated_at": now()}
    await run(lambda to: upsert(to, rules, [row]), tenant_id, write=True)


async def forget(tenant_id: str, domain: str) -> None:
    """Delete a tenant's company and its rules. Candidates and feedback stay."""

    def work(connection: Connection) -> None:
        for table in (profiles, rules):
            connection.execute(delete(table).filter_by(tenant_id=tenant_id, domain=domain))

    await run(work, tenant_id, write=True)


# --- discoveries ----------------------------------------------------------------


async def save_discovery(
    tenant_id: str,
    rule_name: str,
    icp_hash: str,
    basis: Basis,
    found: Sequence[Scored],
    *,
    sources: Sources | None = None,
) -> Version:
    """Save a search as the new version of the discovery with this `DiscoveryKey`.

    A candidate of an earlier version that its source does not name any more is gone: it is not
    shown, but its row and its enrichment stay, and count again once a search finds it. Candidates
    of a source that gave no answer stay. What is enriched stays enriched when it is found again.

    Args:
        tenant_id, rule_name, icp_hash: the key; the hash is that of `basis`.
        basis: the input of the search.
        found: the candidates.
        sources: what the sources answered; None: both have answered.
    """
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)
    keys = [each.candidate.key for each in found]
    sources = sources or {"web": "found", "register": "found"}
    answered = [name for name, answer in sources.items() if answer in _ANSWERED]

    def work(connection: Connection) -> Version:
        lock(connection, f"discovery:{':'.join(of)}")
        previous = connection.execute(select(discoveries).filter_by(**of._asdict())).first()
        timestamp, before = now(), _lines(connection, of)
        gone = (candidates.c.key.not_in(keys), candidates.c.source.in_(answered))
        shown = update(candidates).filter_by(**_current(of))
        connection.execute(shown.where(*gone).values(gone_at=timestamp))
        _keep(connection, of, found)
        after = _lines(connection, of)
        changes = compared(before, after) if previous else Changes(new=[], gone=[], changed=[])
        number = previous.version + 1 if previous else 1
        # A search that the web did not answer is as old as the last one that it did.
        is_partial = sources["web"] == "failed"
        at = previous.discovered_at if previous and is_partial else timestamp
        row = {"domain": basis["website"], "basis": basis, "discovered_at": at, "version": number}
        upsert(connection, discoveries, [{**of._asdict(), **row}])
        version = Version(number, sources, after, changes, timestamp)
        kept = {"sources": sources, "candidates": after, "changes": changes}
        at_once = {"version": number, "discovered_at": timestamp}
        upsert(connection, discovery_versions, [{**of._asdict(), **kept, **at_once}])
        old = discovery_versions.c.version <= number - VERSIONS
        connection.execute(delete(discovery_versions).filter_by(**of._asdict()).where(old))
        return version

    return await run(work, tenant_id, write=True)


async def versions(tenant_id: str, rule_name: str, icp_hash: str) -> list[Version]:
    """Return the stored versions of a discovery, the current one first."""
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)
    number, at = discovery_versions.c.version, discovery_versions.c.discovered_at
    ask = select(discovery_versions, number.label("number"), at.label("at"))
    found = await rows(ask.filter_by(**of._asdict()).order_by(number.desc()), tenant_id)
    return [_built(Version, row) for row in found]


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


def asked_for(connection: Connection, of: DiscoveryKey) -> tuple[Company, Icp] | None:
    """Return the company and ICP of a discovery; None if they are not stored any more."""
    same = [profiles.c[name] == discoveries.c[name] for name in ("tenant_id", "domain")]
    of_discovery = select(discoveries.c.basis).filter_by(**of._asdict())
    ask = of_discovery.join(profiles, and_(*same)).add_columns(profiles.c.company)
    found = connection.execute(ask).first()
    return found and (found.company, found.basis["icp"])


# --- candidates -----------------------------------------------------------------


async def known_details(tenant_id: str, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return what enrichment has found about companies in any search of the tenant, by key.

    Keys of candidates without details are left out.
    """
    filters = (candidates.c.tenant_id == tenant_id, candidates.c.key.in_(keys))
    # The newest comes last and wins.
    ask = select(candidates).where(*filters).order_by(candidates.c.tried_at)
    return {row.key: row.details for row in await rows(ask, tenant_id) if row.details}


async def add_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, found: Sequence[Scored]
) -> None:
    """Add candidates to a discovery, and update those that it already has."""
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)
    await run(lambda connection: _keep(connection, of, found), tenant_id, write=True)


async def best_candidates(
    tenant_id: str, rule_name: str, icp_hash: str, *, limit: int
) -> list[Scored]:
    """Return at most `limit` candidates of a discovery with their scores, in the order of `BEST`."""
    ask = with_scores(DiscoveryKey(tenant_id, rule_name, icp_hash)).order_by(*BEST).limit(limit)
    # Rows of an earlier release have no evidence.
    return [
        Scored(candidate(row), replace(_built(Score, row), evidence=tuple(row.evidence or ())))
        for row in await rows(ask, tenant_id)
    ]


async def count_candidates(tenant_id: str, rule_name: str, icp_hash: str) -> int:
    """Return the number of candidates of a discovery."""
    [(count,)] = await rows(_count(DiscoveryKey(tenant_id, rule_name, icp_hash)), tenant_id)
    return int(count)


def with_scores(of: DiscoveryKey) -> Select[Any]:
    """Select the candidates of a discovery with their scores."""
    same = and_(*(candidates.c[column.name] == column for column in scores.primary_key))
    rated = (scores.c.total, scores.c.parts, scores.c.evidence, scores.c.proven)
    return select(candidates).filter_by(**_current(of)).join(scores, same).add_columns(*rated)


def candidate(row: Row[Any]) -> Candidate:
    """Convert a row of the candidates' table."""
    return _built(Candidate, row)


def _built(kind: type[T], row: Row[Any]) -> T:
    """Build a dataclass from the columns with the names of its fields."""
    return kind(**{each.name: getattr(row, each.name) for each in fields(kind)})  # type: ignore[arg-type]


def find_candidates(
    connection: Connection, of: DiscoveryKey, keys: Sequence[str]
) -> dict[str, Row[Any]]:
    """Return the rows of candidates by their keys; unknown ones and those gone are left out."""
    ask = select(candidates).filter_by(**_current(of)).where(candidates.c.key.in_(keys))
    return {row.key: row for row in connection.execute(ask)}


def save_details(
    connection: Connection,
    of: DiscoveryKey,
    key: str,
    details: Mapping[str, Any],
    score: Score | None = None,
    *,
    enriched: bool = True,
) -> None:
    """Store what enrichment has found about a candidate, and its new score if given.

    `enriched` says whether the website was read; otherwise the candidate stays due for enrichment.
    """
    timestamp, this = now(), {**of._asdict(), "key": key}
    done = {"enriched_at": timestamp} if enriched else {}
    new = {"details": dict(details), "tried_at": timestamp, **done}
    connection.execute(update(candidates).filter_by(**this).values(new))
    if score is not None:
        again = {**asdict(score), "scored_at": timestamp}
        connection.execute(update(scores).filter_by(**this).values(again))


def stored_feedback(connection: Connection, of: DiscoveryKey, key: str) -> float:
    """Return the part of a candidate's stored score that comes from feedback; 0 without one."""
    ask = select(scores.c.parts).filter_by(**of._asdict(), key=key)
    return float((connection.execute(ask).scalar_one_or_none() or {}).get("feedback", 0.0))


def _keep(connection: Connection, of: DiscoveryKey, found: Sequence[Scored]) -> None:
    timestamp, columns = now(), of._asdict()
    # If two candidates have the same key, the last one counts.
    unique = {each.candidate.key: each for each in found}.values()
    found_rows = [
        {
            **columns,
            **asdict(each.candidate),
            "found_at": timestamp,
            # By another search of the tenant.
            "enriched_at": timestamp if each.candidate.details.get("status") == "read" else None,
            "gone_at": None,
            "tried_at": None,
        }
        for each in unique
    ]
    upsert(connection, candidates, found_rows, keep=_STAYS)
    totals = [
        {**columns, "key": each.candidate.key, **asdict(each.score), "scored_at": timestamp}
        for each in unique
    ]
    upsert(connection, scores, totals)


def _count(of: DiscoveryKey) -> Select[Any]:
    return select(func.count()).select_from(candidates).filter_by(**_current(of))


def _lines(connection: Connection, of: DiscoveryKey) -> list[Line]:
    found = connection.execute(with_scores(of).order_by(*BEST))
    return [Line(key=row.key, name=row.name, total=row.total) for row in found]


def _current(of: DiscoveryKey) -> dict[str, Any]:
    """Return what the candidates of the current version have in common."""
    return {**of._asdict(), "gone_at": None}
