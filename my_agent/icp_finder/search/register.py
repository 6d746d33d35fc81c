"""The register: rank the registered companies of an ICP's industries."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, select, union

from my_agent.companies import ssic
from my_agent.companies.tables import companies
from my_agent.companies.texts import plain_name
from my_agent.icp_finder.model import WEIGHTS, Candidate, Company, Icp, RegisterAnswer, Scored
from my_agent.icp_finder.search import likeness
from my_agent.icp_finder.search.scoring import SECONDARY, around_singapore, excluding, score, scored
from my_agent.tables import run
from threadhold.tables import SHARED

# Companies that are read at a time.
PAGE = 2000
# Activities that are compared with the customers, those of the best kinds of business first. The
# classification has a thousand.
ACTIVITIES = 300
# Companies whose own names are compared with the customers, for each wanted one.
FINALISTS = 2
# Totals that differ by less count as equal in the order of industries.
DIGITS = 2


@dataclass(frozen=True)
class Ranked:
    """The answer of the register."""

    answer: RegisterAnswer  # whether it gave companies, or why not
    codes: Sequence[str] = ()  # the SSIC codes that were asked for
    found: Sequence[Scored] = ()  # the companies with their scores, best first
    matching: int = 0  # number of companies that were ranked


Known = Mapping[str, Mapping[str, Any]]


async def rank(
    tenant_id: str,
    company: Company,
    icp: Icp,
    *,
    limit: int,
    without: Collection[str] = (),
    details: Known | None = None,
    feedback: Mapping[str, float] | None = None,
) -> Ranked:
    """Rank all active companies of the ICP's industries, and return the best.

    SQL gives every company whose main or other code is in an industry. What they do is rated once
    for each kind of business, then the best are rated by all that is known of them. Of equally good
    companies, those of different industries take turns, and the older one comes first.

    Args:
        tenant_id: the tenant; its own companies and the shared ones are ranked.
        company: the tenant's company; candidates should resemble its customers.
        icp: the ICP. If its regions exclude Singapore, nothing is found.
        limit: maximum number of companies.
        without: keys of candidates to leave out.
        details: what enrichment has found about candidates, by key.
        feedback: what the users think of candidates, from -1 to 1, by key.
    """
    codes = ssic.codes(icp["industries"])
    if not codes:
        return Ranked("no_codes")
    if limit < 1:
        return Ranked("not_asked", codes)
    if icp["regions"] and not around_singapore(icp["regions"]):
        return Ranked("elsewhere", codes)
    known = frozenset(without)

    def read(connection: Connection) -> list[Row[Any]] | None:
        holds = select(companies.c.uen).where(companies.c.tenant_id.in_((SHARED, tenant_id)))
        if connection.execute(holds.limit(1)).first() is None:
            return None
        found = connection.execution_options(yield_per=PAGE).execute(_matching(tenant_id, codes))
        # A company may occur twice: shared, and as the tenant's own, which counts.
        return list({row.uen: row for row in found if f"uen:{row.uen}" not in known}.values())

    rows = await run(read, tenant_id)
    if rows is None:
        return Ranked("empty", codes)
    found = await asyncio.to_thread(_best, rows, company, icp, limit, details or {}, feedback or {})
    return Ranked("found" if found else "nothing", codes, found, len(rows))


def _matching(tenant_id: str, codes: Sequence[str]) -> Select[Any]:
    """Select the active companies with a code in one of the industries."""
    unused = ("address", "postal_code", "updated_at", "status", "entity_type")
    needed = [column for column in companies.c if column.name not in unused]
    of_tenant = select(*needed).where(
        companies.c.tenant_id.in_((SHARED, tenant_id)), companies.c.is_live
    )
    asks = []
    for prefixes in map(ssic.prefixes, codes):
        # A range and not LIKE: every collation sorts digits alike, and the range can use an index.
        low, high = prefixes[0].ljust(5, "0"), prefixes[-1].ljust(5, "9")
        # Each condition is a query of its own, so that each can use its index.
        for column in (companies.c.primary_ssic, companies.c.secondary_ssic):
            asks.append(of_tenant.where(column.between(low, high)))
    found = union(*asks).subquery()
    # The tenant's own rows come last.
    return select(found).order_by(found.c.tenant_id, found.c.uen)


def _best(
    rows: Sequence[Row[Any]],
    company: Company,
    icp: Icp,
    limit: int,
    details: Known,
    feedback: Mapping[str, float],
) -> list[Scored]:
    """Return the best companies with their scores. Blocks."""
    if icp.get("exclusions"):
        is_excluded = excluding(icp)
        rows = [row for row in rows if not is_excluded(_candidate(row))]
    kinds = _kinds(rows, company, icp)
    of_rows = ((row, kinds[_kind(row)]) for row in rows)
    quick = [(-(kind.total + _said(row, kind.about, icp)),) for row, kind in of_rows]
    # Industries take turns here as well, so that each one has finalists.
    first = [rows[at] for at in _turns(rows, quick)[: FINALISTS * limit]]
    wanted = [row for row in rows if (key := f"uen:{row.uen}") in feedback or key in details]
    finalists = list({row.uen: row for row in (*first, *wanted)}.values())
    found = [_candidate(row) for row in finalists]
    told = [f"{each.about}. {plain_name(each.name)}" for each in found]
    # What all companies of the kind do counts as well as what this one's name says.
    alike = [
        _highest(kinds[_kind(row)].likeness, rating)
        for row, rating in zip(finalists, likeness.measure(told, company), strict=True)
    ]
    known = [replace(each, details=details.get(each.key, {})) for each in found]
    rated = scored(known, company, icp, alike, feedback)
    ratings = [(-each.score.total, -each.score.proven) for each in rated]
    return [rated[at] for at in _turns(finalists, ratings)[:limit]]


def _turns(rows: Sequence[Row[Any]], ratings: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the indexes of companies in the order of their ratings, the lowest first.

    Of companies with equal ratings, divisions take turns, so that none fills the list alone. The
    older one comes first; those without a date come last.
    """
    ages = [(row.registered_on or "9999", row.uen) for row in rows]
    turns: Counter[tuple[Any, ...]] = Counter()
    keys: list[tuple[Any, ...]] = []
    for at in sorted(range(len(rows)), key=lambda at: (ratings[at], ages[at])):
        level = tuple(round(each, DIGITS) for each in ratings[at])
        division = (level, (rows[at].primary_ssic or rows[at].secondary_ssic)[:2])
        turns[division] += 1
        keys.append((level, turns[division], ages[at], at))
    return [key[-1] for key in sorted(keys)]


class _Kind(NamedTuple):
    """What the companies of one kind of business have in common."""

    about: str
    total: float
    likeness: float | None


def _kinds(rows: Sequence[Row[Any]], company: Company, icp: Icp) -> dict[tuple[str, ...], _Kind]:
    """Rate the kinds of business of companies: without what their own names say."""
    firsts: dict[tuple[str, ...], Row[Any]] = {}
    for row in rows:
        firsts.setdefault(_kind(row), row)
    examples = {
        kind: replace(_candidate(row), key="", name="", uen=None) for kind, row in firsts.items()
    }
    plain = {kind: score(each, company, icp).total for kind, each in examples.items()}
    closest = sorted(examples, key=lambda kind: -plain[kind])
    activities = dict.fromkeys(each for kind in closest for each in _activities(examples[kind]))
    different = list(activities)[:ACTIVITIES]
    ratings = dict(zip(different, likeness.measure(different, company), strict=True))
    found = {}
    for kind, each in examples.items():
        # The second activity counts less.
        rated = [ratings.get(name) for name in _activities(each)]
        alike = _highest(*rated[:1], *(rating and rating * SECONDARY for rating in rated[1:]))
        total = score(each, company, icp, likeness=alike).total
        found[kind] = _Kind(each.about, total, alike)
    return found


def _kind(row: Row[Any]) -> tuple[str, ...]:
    return (row.primary_ssic, row.secondary_ssic, row.primary_activity, row.secondary_activity)


def _activities(candidate: Candidate) -> list[str]:
    return candidate.about.split("; ") if candidate.about else []


def _said(row: Row[Any], about: str, icp: Icp) -> float:
    """Rate the keywords and industries that only the company's name says."""
    name, known = row.name.casefold(), about.casefold()
    wanted = [(word, WEIGHTS["keywords"]) for word in icp["keywords"] if word.strip()]
    wanted += [(word, WEIGHTS["industry"]) for word in icp["industries"]]
    words = [(word.casefold(), weight) for word, weight in wanted]
    hits = sum(weight for word, weight in words if word in name and word not in known)
    return hits / max(len(wanted), 1)


def _highest(*ratings: float | None) -> float | None:
    return max((each for each in ratings if each is not None), default=None)


def _candidate(row: Row[Any]) -> Candidate:
    told = (row.primary_activity, row.secondary_activity)
    # The public register is in capital letters.
    activities = [each.capitalize() if each.isupper() else each for each in told if each]
    return Candidate(
        key=f"uen:{row.uen}",
        name=row.name,
        source="register",
        uen=row.uen,
        ssic=[code for code in (row.primary_ssic, row.secondary_ssic) if code],
        industry=(activities or [ssic.title(row.primary_ssic)])[0],
        region="Singapore",
        about="; ".join(activities),
    )
