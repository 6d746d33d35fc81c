"""Export: a tenant's latest scores as CSV."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Row, select

from my_agent.icp_finder.model import WEIGHTS, DiscoveryKey
from my_agent.icp_finder.records.feedback import Feedback, feedback_of
from my_agent.icp_finder.records.store import BEST, with_scores
from my_agent.icp_finder.records.tables import candidates, discoveries, scores
from my_agent.spreadsheets import as_csv
from my_agent.tables import rows

COLUMNS = (
    *("company", "rule", "rank", "name", "uen", "website", "region", "industry", "ssic", "score"),
    *(f"score_{name}" for name in (*WEIGHTS, "feedback")),
    *("source", "enrichment", "size", "emails", "phones", "scored_at", "verdict"),
)
VERDICTS = {"rejected": "rejected", "kept": "accepted", "liked": "accepted"}
BATCH = 500


async def latest_scores(tenant_id: str) -> AsyncIterator[str]:
    """Yield CSV: the header, then the candidates of each company and rule, best first.

    The candidates are those of the last search. Each batch is read in a short transaction of its
    own, so that a slow client blocks nothing. Each candidate occurs once, even if rows change
    meanwhile.
    """
    yield as_csv([COLUMNS])
    ask = select(discoveries).filter_by(tenant_id=tenant_id).order_by(discoveries.c.discovered_at)
    latest = {(row.domain, row.rule_name): row.icp_hash for row in await rows(ask, tenant_id)}
    for (domain, rule_name), icp_hash in sorted(latest.items()):
        async for lines in _discovery(domain, DiscoveryKey(tenant_id, rule_name, icp_hash)):
            yield lines


async def scores_of(domain: str, of: DiscoveryKey | None) -> AsyncIterator[str]:
    """Yield CSV: the header, then the candidates of one search for a company, best first.

    Args:
        domain: domain of the company.
        of: the search; None: nothing was searched.
    """
    yield as_csv([COLUMNS])
    if of is not None:
        async for lines in _discovery(domain, of):
            yield lines


async def _discovery(domain: str, of: DiscoveryKey) -> AsyncIterator[str]:
    ask = with_scores(of)
    ordered = ask.with_only_columns(candidates.c.key).order_by(*BEST)
    order = [row.key for row in await rows(ordered, of.tenant_id)]
    said = await feedback_of(of.tenant_id, of.rule_name)
    for start in range(0, len(order), BATCH):
        keys = order[start : start + BATCH]
        batch = ask.add_columns(scores.c.scored_at).where(candidates.c.key.in_(keys))
        found = {row.key: row for row in await rows(batch, of.tenant_id)}
        ranked = ((start + at, found[key]) for at, key in enumerate(keys, 1) if key in found)
        yield as_csv(_line(domain, of.rule_name, rank, row, said) for rank, row in ranked)


def _line(domain: str, rule: str, rank: int, row: Row[Any], said: dict[str, Feedback]) -> list[Any]:
    known, given = row.details, said.get(row.key)
    return [
        *(domain, rule, rank, row.name, row.uen, row.website or known.get("website")),
        *(row.region, row.industry, " ".join(row.ssic), row.total),
        *(row.parts.get(name) for name in (*WEIGHTS, "feedback")),
        *(row.source, known.get("status"), known.get("size")),
        *(" ".join(known.get("emails", ())), "; ".join(known.get("phones", ()))),
        *(row.scored_at.isoformat(), given and VERDICTS[given.verdict]),
    ]
