"""Export: a tenant's latest scores as lines of CSV."""

import csv
import io
from collections.abc import AsyncIterator, Iterable
from typing import Any

from sqlalchemy import Connection, Row, select

from my_agent.icp_finder.records import Which, with_scores
from my_agent.icp_finder.scoring import WEIGHTS
from my_agent.icp_finder.statements import run
from my_agent.icp_finder.tables import candidates, discoveries, scores

COLUMNS = (
    *("company", "rule", "rank", "name", "uen", "website", "region", "industry", "ssic", "score"),
    *(f"score_{name}" for name in WEIGHTS),
    *("source", "enrichment", "size", "emails", "phones", "scored_at"),
)
BATCH = 500
# What a spreadsheet would take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


async def latest_scores(tenant_id: str) -> AsyncIterator[str]:
    """Lines of CSV: the names of the columns, then the candidates of each company and rule.

    Those are the ones of the last search, best first. Each line is read in a short transaction of
    its batch, so that a slow reader holds up nothing, and comes once whatever is written meanwhile.

    Args:
        tenant_id: whose.
    """
    yield _lines([COLUMNS])
    for domain, which in await run(lambda connection: _latest(connection, tenant_id), tenant_id):
        order = await run(lambda connection, of=which: _order(connection, of), tenant_id)  # type: ignore[misc]
        for start in range(0, len(order), BATCH):
            keys = order[start : start + BATCH]
            rows = await run(lambda c, of=which, some=keys: _rows(c, of, some), tenant_id)  # type: ignore[misc]
            ranked = ((start + at, rows[key]) for at, key in enumerate(keys, 1) if key in rows)
            yield _lines(_cells(domain, which[1], rank, row) for rank, row in ranked)


def _latest(connection: Connection, tenant_id: str) -> list[tuple[str, Which]]:
    """The last search of each company under each rule."""
    mine = select(discoveries).where(discoveries.c.tenant_id == tenant_id)
    found: dict[tuple[str, str], tuple[str, Which]] = {}
    for row in connection.execute(mine.order_by(discoveries.c.discovered_at)):
        which = (tenant_id, row.rule_name, row.icp_hash)
        found[row.domain, row.rule_name] = (row.domain, which)
    return [found[key] for key in sorted(found)]


def _order(connection: Connection, which: Which) -> list[str]:
    ask = with_scores(which).with_only_columns(candidates.c.key)
    best = (scores.c.total.desc(), candidates.c.name, candidates.c.key)
    return list(connection.scalars(ask.order_by(*best)))


def _rows(connection: Connection, which: Which, keys: list[str]) -> dict[str, Row[Any]]:
    ask = with_scores(which).add_columns(scores.c.scored_at).where(candidates.c.key.in_(keys))
    return {row.key: row for row in connection.execute(ask)}


def _cells(domain: str, rule: str, rank: int, row: Row[Any]) -> list[object]:
    known = row.details
    return [
        *(domain, rule, rank, row.name, row.uen, row.website or known.get("website")),
        *(row.region, row.industry, " ".join(row.ssic), row.total),
        *(row.parts.get(name) for name in WEIGHTS),
        *(row.source, known.get("status"), known.get("size")),
        *(" ".join(known.get("emails", ())), "; ".join(known.get("phones", ()))),
        row.scored_at.isoformat(),
    ]


def _lines(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: what looks like one begins with an apostrophe.

    The text is a stranger's, from the web or a file. Pure.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "")
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text[:1].isspace() else text
