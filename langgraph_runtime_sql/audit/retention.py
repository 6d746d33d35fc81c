"""Retention: remove old audit entries, and record that.

Only the oldest entries are removed, and only those that verify. So nobody can make the server remove
newer or changed ones. An entry with the key names the removed part of each chain. `verify` accepts only
such a removal.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import select, text

from langgraph_runtime_sql import clock
from langgraph_runtime_sql.audit import log as logs
from langgraph_runtime_sql.audit import recorder, triggers
from langgraph_runtime_sql.audit.entry import (
    EPOCH,
    LOG,
    MICROSECOND,
    RETENTION,
    Note,
    fault,
    unknown_key,
)
from langgraph_runtime_sql.audit.keys import Keyring
from langgraph_runtime_sql.audit.log import Log
from langgraph_runtime_sql.audit.removals import MIN_AGE
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import RuntimeSqlError

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database

logger = structlog.stdlib.get_logger(__name__)

# Entries removed in one transaction.
PAGE = 2000
SWEEP_SECONDS = 3600.0


class AuditBroken(RuntimeSqlError):
    """Old audit entries do not verify, so retention removes nothing."""


async def sweep(database: "Database", days: float) -> None:
    """Remove the entries older than `days`."""
    if removed := await remove(database, timedelta(days=days)):
        logger.info("Removed old audit entries", action="audit_removed", count=removed)


async def remove(database: "Database", age: timedelta) -> int:
    """Remove the entries older than `age`, and return their number.

    Raises:
        ValueError: the age is less than a day.
        AuditBroken: an entry to be removed does not verify.
    """
    removed = 0
    page = partial(remove_page, log=logs.of(database), age=age, before=clock.now() - age)
    while count := await database.write(page):
        removed += count
    return removed


def remove_page(conn: Connection, *, log: Log, age: timedelta, before: datetime) -> int:
    """Remove the oldest entries before a date, at most `PAGE`, and return their number.

    Args:
        conn: A transaction that writes and sees all entries.
        log: The log of the database.
        age: The minimum age of the entries.
        before: The date.

    Raises:
        ValueError: the age or the date is less than a day ago.
        AuditBroken: an entry does not verify.
    """
    if min(age, clock.now() - before) < MIN_AGE:
        raise ValueError("Audit entries are kept for at least one day")
    # In the order of their writing, up to the first that is not old: nothing that stays is older.
    oldest = conn.fetchall(select(entries).order_by(entries.c.seq).limit(PAGE))
    old = list(takewhile(lambda row: row["at"] < before, oldest))
    if not old:
        return 0
    detail = {
        "before": before.isoformat(),
        "days": age / timedelta(days=1),
        "removed": len(old),
        "newest": max(row["at"] for row in old).isoformat(),
        "chains": _parts(old, log.keyring(conn)),
        "followed": _followed(conn, old),
    }
    # Before the deletion, because it follows the newest entry.
    log.append(conn, recorder.current_actor(), [Note(LOG, None, RETENTION, detail=detail)])
    triggers.allow(conn, triggers.BEFORE, str((before - EPOCH) // MICROSECOND))
    conn.execute(entries.delete().where(entries.c.seq.in_([row["seq"] for row in old])))
    triggers.forbid(conn, triggers.BEFORE)
    return len(old)


def _parts(old: Iterable[Row], keys: Keyring) -> dict[str, list[Any]]:
    """Return the part of each chain: the numbers and hashes of its first and its last entry.

    Raises:
        AuditBroken: an entry was changed or is missing.
    """
    parts: dict[str, list[Any]] = {}
    for row in old:
        why = fault(row, keys)
        if why is None and (unknown := unknown_key(row, keys)) is not None:
            why = f"its key {unknown} is not configured"
        number, digest = row["number"], row["hash"]
        first, first_hash, last, last_hash = parts.get(
            row["chain"], (number, digest, number - 1, row["previous"])
        )
        if why is None and (number, row["previous"]) != (last + 1, last_hash):
            why = "the entry before it is missing"
        if why is not None:
            raise AuditBroken(
                f"Audit entry {row['seq']} is broken: {why}. Retention removes nothing until "
                "somebody has looked at it: `threadhold audit --verify`"
            )
        parts[row["chain"]] = [first, first_hash, number, digest]
    return parts


def _followed(conn: Connection, old: list[Row]) -> list[str]:
    """Return the hashes of old entries that the first entries of remaining chains follow."""
    places = {(row["chain"], row["number"]) for row in old}
    starts = select(entries.c.previous, entries.c.chain, entries.c.number).where(
        text("number = 1"), entries.c.previous.in_([row["hash"] for row in old])
    )
    return sorted(
        {
            row["previous"]
            for row in conn.fetchall(starts)
            if (row["chain"], row["number"]) not in places
        }
    )
