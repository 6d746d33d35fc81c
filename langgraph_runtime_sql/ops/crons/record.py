"""Record: what the scheduler decided about the last due dates of each cron."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import cron_decisions as table
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row

Decision = Literal["fired", "fired_once", "caught_up", "skipped"]
"""In time; late, for all missed dates; late, for each of them; not at all."""

# The decisions that are kept of each cron.
KEPT = 100

_INSERT = Prepared(InsertNew(table))
_OLDEST_KEPT = Prepared(
    select(table.c.slot)
    .where(table.c.cron_id == bindparam("id"))
    .order_by(table.c.slot.desc())
    .offset(KEPT)
    .limit(1)
)
_DELETE = Prepared(
    table.delete().where(table.c.cron_id == bindparam("id"), table.c.slot <= bindparam("last"))
)
_OF_CRON = Prepared(
    select(table).where(table.c.cron_id == bindparam("id")).order_by(table.c.slot.desc())
)


def add(
    conn: Connection,
    cron_id: UUID,
    slot: datetime,
    decision: Decision,
    run_id: UUID | None,
    tenant: str | None,
) -> None:
    """Add a decision, in the transaction that carries it out, and forget the oldest."""
    now = conn.now()
    conn.execute(
        _INSERT,
        {
            "cron_id": cron_id,
            "slot": slot,
            "decision": decision,
            "late_seconds": max(0.0, (now - slot).total_seconds()),
            "run_id": run_id,
            "decided_at": now,
            "tenant": tenant,
        },
    )
    if (last := conn.scalar(_OLDEST_KEPT, {"id": cron_id})) is not None:
        conn.execute(_DELETE, {"id": cron_id, "last": last})


def of_cron(conn: Connection, cron_id: UUID) -> list[Row]:
    """Return the decisions about a cron, the newest first."""
    return conn.fetchall(_OF_CRON, {"id": cron_id})
