"""Listing: find audit entries, the newest first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import audit_entries as entries
from langgraph_runtime_sql.database.statements import Row

ADVICE = "Ask for fewer entries: name a tenant, or a shorter time."


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Conditions of entries; None means any.

    Attributes:
        tenant, user, decision, action: As in the entry.
        kind: The kind of the object.
        object_id: The id of the object.
        since, until: The period, with its start and without its end.
        before: Entries with a smaller `seq`, to continue a listing.
        limit: The maximum number of entries.
    """

    tenant: str | None = None
    user: str | None = None
    decision: str | None = None
    action: str | None = None
    kind: str | None = None
    object_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    limit: int = 100


def find(conn: Connection, wanted: Wanted) -> list[dict[str, Any]]:
    """Return the wanted entries, the newest first."""
    query = select(entries).order_by(entries.c.seq.desc()).limit(wanted.limit)
    equal = {
        "tenant": wanted.tenant,
        "user_id": wanted.user,
        "decision": wanted.decision,
        "action": wanted.action,
        "object_kind": wanted.kind,
        "object_id": wanted.object_id,
    }
    for name, value in equal.items():
        if value is not None:
            query = query.where(entries.c[name] == value)
    if wanted.since is not None:
        query = query.where(entries.c.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(entries.c.at < wanted.until)
    if wanted.before is not None:
        query = query.where(entries.c.seq < wanted.before)
    return [shown(row) for row in conn.fetchall(query)]


def shown(row: Row) -> dict[str, Any]:
    """Return an entry as people read it."""
    return {
        "seq": row["seq"],
        "at": row["at"].isoformat(),
        "tenant": row["tenant"],
        "user": row["user_id"],
        "roles": (row["roles"] or "").split(),
        "address": row["address"],
        "method": row["method"],
        "route": row["route"],
        "action": row["action"],
        "object": {"kind": row["object_kind"], "id": row["object_id"]},
        "decision": row["decision"],
        "status": row["status"],
        "detail": orjson.loads(row["detail"]) if row["detail"] else {},
        "chain": row["chain"],
        "number": row["number"],
        "previous": row["previous"],
        "hash": row["hash"],
    }
