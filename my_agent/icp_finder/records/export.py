"""Export: a tenant's latest scores as CSV."""

import csv
import io
import unicodedata
from collections.abc import AsyncIterator, Iterable
from typing import Any

from sqlalchemy import Row, select

from my_agent.icp_finder.model import WEIGHTS, DiscoveryKey
from my_agent.icp_finder.records.store import BEST, with_scores
from my_agent.icp_finder.records.tables import candidates, discoveries, scores
from my_agent.tables import rows

COLUMNS = (
    *("company", "rule", "rank", "name", "uen", "website", "region", "industry", "ssic", "score"),
    *(f"score_{name}" for name in (*WEIGHTS, "feedback")),
    *("source", "enrichment", "size", "emails", "phones", "scored_at"),
)
BATCH = 500
# Characters that begin a formula in a spreadsheet, after NFKC (full-width and small forms).
_FORMULA = ("=", "+", "-", "@", "\u2212")
# Categories of characters without a visible form: control, format (with BOM and zero-width space),
# surrogates, unassigned, private, separators, combining marks.
_INVISIBLE = ("C", "Z", "M")
# Letters and symbols without a visible form: Hangul fillers and the empty Braille pattern.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"


async def latest_scores(tenant_id: str) -> AsyncIterator[str]:
    """Yield CSV: the header, then the candidates of each company and rule, best first.

    The candidates are those of the last search. Each batch is read in a short transaction of its
    own, so that a slow client blocks nothing. Each candidate occurs once, even if rows change
    meanwhile.
    """
    yield _lines([COLUMNS])
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
    yield _lines([COLUMNS])
    if of is not None:
        async for lines in _discovery(domain, of):
            yield lines


async def _discovery(domain: str, of: DiscoveryKey) -> AsyncIterator[str]:
    ask = with_scores(of)
    ordered = ask.with_only_columns(candidates.c.key).order_by(*BEST)
    order = [row.key for row in await rows(ordered, of.tenant_id)]
    for start in range(0, len(order), BATCH):
        keys = order[start : start + BATCH]
        batch = ask.add_columns(scores.c.scored_at).where(candidates.c.key.in_(keys))
        found = {row.key: row for row in await rows(batch, of.tenant_id)}
        ranked = ((start + at, found[key]) for at, key in enumerate(keys, 1) if key in found)
        yield _lines(_cells(domain, of.rule_name, rank, row) for rank, row in ranked)


def _cells(domain: str, rule: str, rank: int, row: Row[Any]) -> list[object]:
    known = row.details
    return [
        *(domain, rule, rank, row.name, row.uen, row.website or known.get("website")),
        *(row.region, row.industry, " ".join(row.ssic), row.total),
        *(row.parts.get(name) for name in (*WEIGHTS, "feedback")),
        *(row.source, known.get("status"), known.get("size")),
        *(" ".join(known.get("emails", ())), "; ".join(known.get("phones", ()))),
        row.scored_at.isoformat(),
    ]


def _lines(lines: Iterable[Iterable[object]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([harmless(cell) for cell in line] for line in lines)
    return text.getvalue()


def harmless(cell: object) -> object:
    """Escape a cell that a spreadsheet would evaluate as a formula. Pure.

    Cells contain text from the web or from a file, which may be malicious. An apostrophe is put in
    front of anything that looks like a formula, also behind characters that are not visible: a
    spreadsheet or a later import may remove them.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "")
    first = next((letter for letter in text if not _is_invisible(letter)), "")
    is_formula = unicodedata.normalize("NFKC", first).startswith(_FORMULA)
    return f"'{text}" if is_formula or _is_invisible(text[:1]) else text


def _is_invisible(letter: str) -> bool:
    return bool(letter) and (letter in _BLANK or unicodedata.category(letter)[0] in _INVISIBLE)
