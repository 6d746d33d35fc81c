"""Retention: remove old audit entries, and record that.

The removal writes an entry itself. It names the hashes of removed entries that remaining ones follow, so
that the chains still verify.
"""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import select, text

from langgraph_runtime_sql import clock
from langgraph_runtime_sql.audit import chain, triggers
from langgraph_runtime_sql.audit.entry import EPOCH, MICROSECOND, RETENTION, Actor, Note
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database

logger = structlog.stdlib.get_logger(__name__)

# Entries removed in one transaction.
PAGE = 2000
# Longer than `chain.MAX_IDLE`: a chain in memory must not continue a removed entry.
MIN_AGE = timedelta(days=1)
SWEEP_SECONDS = 3600.0


async def sweep(database: "Database", days: float) -> None:
    """Remove entries older than `days` regularly, until cancelled."""
    while True:
        try:
            if removed := await remove(database, clock.now() - timedelta(days=days)):
                logger.info("Removed old audit entries", action="audit_removed", count=removed)
        except Exception:
            logger.exception("Audit retention failed", action="audit_retention_failed")
        await asyncio.sleep(SWEEP_SECONDS)


async def remove(database: "Database", before: datetime) -> int:
    """Remove the entries before a date, and return their number."""
    removed = 0
    while count := await database.write(partial(remove_page, before=before)):
        removed += count
    return removed


def remove_page(conn: Connection, before: datetime) -> int:
    """Remove the oldest entries before a date, at most `PAGE`, and return their number.

    Raises:
        ValueError: the date is less than a day ago.
    """
    if clock.now() - before < MIN_AGE:
        raise ValueError("Audit entries are kept for at least one day")
    old = conn.fetchall(
        select(entries.c.seq, entries.c.chain, entries.c.number, entries.c.hash)
        .where(entries.c.at < before)
        .order_by(entries.c.seq)
        .limit(PAGE)
    )
    if not old:
        return 0
    detail = {"before": before.isoformat(), "removed": len(old), "followed": _followed(conn, old)}
    # Before the deletion, because it follows the newest entry.
    chain.append(conn, Actor(), [Note(None, None, RETENTION, detail=detail)])
    triggers.allow(conn, triggers.BEFORE, str((before - EPOCH) // MICROSECOND))
    conn.execute(entries.delete().where(entries.c.seq.in_([row["seq"] for row in old])))
    triggers.forbid(conn, triggers.BEFORE)
    return len(old)


def _followed(conn: Connection, old: list[Row]) -> list[str]:
    """Return the hashes of old entries that remaining ones may follow."""
    places = {(row["chain"], row["number"]) for row in old}
    last = {row["hash"] for row in old if (row["chain"], row["number"] + 1) not in places}
    starts = select(entries.c.previous, entries.c.chain, entries.c.number).where(
        text("number = 1"), entries.c.previous.in_([row["hash"] for row in old])
    )
    last |= {
        row["previous"]
        for row in conn.fetchall(starts)
        if (row["chain"], row["number"]) not in places
    }
    return sorted(last)
