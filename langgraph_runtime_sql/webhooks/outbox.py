"""Outbox: store a webhook in the transaction that ends its run.

The row is deleted when its receiver has answered with success. After a day, or the answer 410, it
is a dead letter, which stays until an operator replays it, or for `KEEP_DEAD`.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import bindparam, func, or_, select

from langgraph_runtime_sql import json_codec, request_context, runtime
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import webhooks
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.encryption import seal_row

GIVE_UP = timedelta(days=1)
KEEP_DEAD = timedelta(days=30)
# Longer than a request may take. Then another process may deliver the webhook.
CLAIM = timedelta(seconds=60)
# How long the end of a stateless run waits for the values, which its worker has.
VALUES = timedelta(seconds=5)
MAX_ERROR = 300

Status = Literal["pending", "dead"]

_COLUMNS = [column for column in webhooks.c if column.name != "message"]
_INSERT = Prepared(webhooks.insert())
_CLAIM = Prepared(
    webhooks.update()
    .where(
        webhooks.c.webhook_id == bindparam("key"),
        webhooks.c.status == "pending",
        webhooks.c.due_at <= bindparam("now"),
        or_(webhooks.c.claimed_until.is_(None), webhooks.c.claimed_until <= bindparam("now")),
    )
    .values(claimed_until=bindparam("until"), attempts=webhooks.c.attempts + 1)
)
_BY_ID = Prepared(select(webhooks).where(webhooks.c.webhook_id == bindparam("key")))
_BY_RUN = Prepared(
    select(webhooks).where(
        webhooks.c.run_id == bindparam("key"),
        webhooks.c.attempts == 0,
        webhooks.c.status == "pending",
    )
)
# An attempt that was superseded changes nothing.
_OF_ATTEMPT = (
    webhooks.c.webhook_id == bindparam("key"),
    webhooks.c.attempts == bindparam("attempt"),
    webhooks.c.status == "pending",
)
_DELIVERED = Prepared(webhooks.delete().where(*_OF_ATTEMPT))
_FAILED = Prepared(
    webhooks.update()
    .where(*_OF_ATTEMPT)
    .values(
        status=bindparam("new_status"),
        due_at=bindparam("new_due"),
        error=bindparam("new_error"),
        claimed_until=None,
    )
)
_NEXT = Prepared(
    select(func.min(webhooks.c.due_at).label("due_at")).where(
        webhooks.c.status == "pending",
        or_(webhooks.c.claimed_until.is_(None), webhooks.c.claimed_until <= bindparam("now")),
    )
)
_UNCLAIM = Prepared(
    webhooks.update()
    .where(webhooks.c.status == "pending", webhooks.c.claimed_until.is_not(None))
    .values(claimed_until=None)
)
_EXPIRE = Prepared(
    webhooks.delete().where(
        webhooks.c.status == "dead", webhooks.c.give_up_at <= bindparam("before")
    )
)


def add(
    conn: Connection, run: Row, shown: Row, tenant: str | None, outcome: Mapping[str, Any]
) -> None:
    """Add the webhook of a run that ends in this transaction, if it has one.

    Args:
        run: The run as stored.
        shown: The run as the API shows it.
        tenant: Its tenant.
        outcome: `status`, and if known `values` and `error`.
    """
    url = run["kwargs"].get("webhook")
    if not url or _disabled():
        return
    now = conn.now()
    claim = request_context.claim.get()
    began = now if claim is None else now - timedelta(seconds=max(0.0, elapsed() - claim.since))
    body = {
        **shown,
        "status": outcome["status"],
        "run_started_at": began.isoformat(),
        "run_ended_at": now.isoformat(),
        "values": outcome.get("values"),
    }
    if outcome.get("error") is not None:
        body["error"] = outcome["error"]
    # Later, the worker of a stateless run brings the values; see `complete`.
    waits = VALUES if run["kwargs"].get("temporary") else timedelta(0)
    webhook_id = uuid.uuid4()
    row = {
        "webhook_id": webhook_id,
        "run_id": run["run_id"],
        "status": "pending",
        "message": {"url": url, "body": json_codec.plain(body)},
        "attempts": 0,
        "created_at": now,
        "due_at": now + waits,
        "give_up_at": now + GIVE_UP,
        "claimed_until": None,
        "error": None,
        "tenant": tenant,
    }
    conn.execute(_INSERT, seal_row(conn, webhooks, webhook_id, tenant, row))
    if (wake := runtime.current().deliver_webhooks) is not None:
        conn.after_commit(wake)


def complete(conn: Connection, run_id: UUID, outcome: Mapping[str, Any]) -> None:
    """Add to the webhook of an ended stateless run what its worker knows, and make it due."""
    for row in conn.fetchall(_BY_RUN, {"key": run_id}):
        body = {**row["message"]["body"], **json_codec.plain(dict(outcome))}
        document = {"message": {**row["message"], "body": body}}
        sealed = seal_row(conn, webhooks, row["webhook_id"], row["tenant"], document)
        conn.execute(
            webhooks.update()
            .where(webhooks.c.webhook_id == row["webhook_id"], webhooks.c.attempts == 0)
            .values(due_at=conn.now(), **sealed)
        )
    if (wake := runtime.current().deliver_webhooks) is not None:
        conn.after_commit(wake)


def claim(conn: Connection, limit: int, active: Mapping[str, int], most: int) -> list[Row]:
    """Claim due webhooks, the longest due first.

    Args:
        limit: The maximum number.
        active: The number of deliveries under way of each tenant.
        most: The maximum of deliveries under way of one tenant, with the claimed ones.
    """
    now = conn.now()
    counts = Counter(active)
    won: list[UUID] = []
    while len(won) < limit:
        before = len(won)
        for tenant, key in _due(conn, limit - before, [t for t in counts if counts[t] >= most]):
            # Another process may have been faster.
            if (tenant is None or counts[tenant] < most) and conn.execute(
                _CLAIM, {"key": key, "now": now, "until": now + CLAIM}
            ):
                won.append(key)
                if tenant is not None:
                    counts[tenant] += 1
        if len(won) == before:
            break
    found = (conn.fetchone(_BY_ID, {"key": key}) for key in won)
    return [row for row in found if row is not None]


def _due(conn: Connection, limit: int, busy: Collection[str]) -> list[tuple[str | None, UUID]]:
    """Return tenant and id of due webhooks, the longest due first, except of `busy` tenants."""
    now = conn.now()
    rows = conn.fetchall(
        select(webhooks.c.tenant, webhooks.c.webhook_id)
        .where(
            webhooks.c.status == "pending",
            webhooks.c.due_at <= now,
            or_(webhooks.c.claimed_until.is_(None), webhooks.c.claimed_until <= now),
            *(or_(webhooks.c.tenant.is_(None), webhooks.c.tenant != each) for each in busy),
        )
        .order_by(webhooks.c.due_at)
        .limit(limit)
    )
    return [(row["tenant"], row["webhook_id"]) for row in rows]


def delivered(conn: Connection, row: Row) -> None:
    """Delete a claimed webhook that was delivered."""
    conn.execute(_DELIVERED, {"key": row["webhook_id"], "attempt": row["attempts"]})


def failed(conn: Connection, row: Row, error: str, retry_in: float | None) -> Status:
    """Note a failed attempt. Return whether the webhook is now `pending` or `dead`.

    Args:
        row: The claimed webhook.
        error: Why it failed.
        retry_in: Seconds until the next attempt; None if there must be none.
    """
    now = conn.now()
    due = now if retry_in is None else now + timedelta(seconds=retry_in)
    status: Status = "dead" if retry_in is None or due > row["give_up_at"] else "pending"
    conn.execute(
        _FAILED,
        {
            "key": row["webhook_id"],
            "attempt": row["attempts"],
            "new_status": status,
            "new_due": due,
            "new_error": error[:MAX_ERROR],
        },
    )
    return status


def next_due(conn: Connection) -> float | None:
    """Return the seconds until the next webhook is due, or None without one."""
    now = conn.now()
    due: datetime | None = conn.scalar(_NEXT, {"now": now})
    return None if due is None else (due - now).total_seconds()


def free_claims(conn: Connection) -> None:
    """Free the claims of a process that has ended. Only for the only process on a database."""
    conn.execute(_UNCLAIM)


def expire(conn: Connection) -> None:
    """Delete old dead letters."""
    conn.execute(_EXPIRE, {"before": conn.now() - KEEP_DEAD})


def listed(conn: Connection, status: Status, tenant: str | None, limit: int) -> list[Row]:
    """Return webhooks without their messages, the newest first.

    Args:
        status: Which ones.
        tenant: Only those of this tenant; None means all.
        limit: The maximum number.
    """
    query = select(*_COLUMNS).where(webhooks.c.status == status)
    if tenant is not None:
        query = query.where(webhooks.c.tenant == tenant)
    return conn.fetchall(query.order_by(webhooks.c.created_at.desc()).limit(limit))


def replay(conn: Connection, keys: Collection[UUID] | None, tenant: str | None) -> int:
    """Make dead letters pending again, for another day. Return how many.

    Args:
        keys: Their ids; None means all.
        tenant: Only those of this tenant; None means all.
    """
    now = conn.now()
    change = webhooks.update().where(webhooks.c.status == "dead")
    if keys is not None:
        change = change.where(webhooks.c.webhook_id.in_(list(keys)))
    if tenant is not None:
        change = change.where(webhooks.c.tenant == tenant)
    return conn.execute(
        change.values(status="pending", due_at=now, give_up_at=now + GIVE_UP, claimed_until=None)
    )


def _disabled() -> bool:
    from langgraph_api.config import HTTP_CONFIG

    return bool(HTTP_CONFIG and HTTP_CONFIG.get("disable_webhooks"))
