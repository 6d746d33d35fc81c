"""Firing: how a cron that is due gets exactly one run for each of its slots.

A scheduler claims the cron for a minute, the stock loop creates the run, and
the transaction that writes the run also moves the cron past the slot. So a
scheduler that dies in between leaves a claim that ends and a cron that is
still due; a second one that was slow finds the slot gone and creates nothing.
Slots that nobody was there for are not caught up: one firing stands for them.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import bindparam, or_, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import crons
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.ops.authorization import user_fields
from langgraph_runtime_sql.ops.crons import rows as cron_rows
from langgraph_runtime_sql.ops.crons import schedule as cron_schedule

logger = structlog.stdlib.get_logger(__name__)

# How long a scheduler may take to create the run before another one tries.
CLAIM = timedelta(seconds=60)
# How many due crons one poll takes on; the others are due at the next.
BATCH = 1000


@dataclass(slots=True)
class Firing:
    """One slot of one cron, while its run is being created.

    Attributes:
        slot: The date that is due.
        following: The date after it, or None if the schedule has no more.
        taken: A run creation has taken this firing on.
    """

    cron_id: UUID
    slot: datetime
    following: datetime | None
    taken: bool = field(default=False, repr=False)


def take_firing() -> Firing | None:
    """The firing that the run about to be created is for, or None.

    Given out once: what starts in this context and outlives it (a worker, a
    graph that creates runs of its own) must not count as the cron.
    """
    current: Firing | None = request_context.firing.get()
    if current is None or current.taken:
        return None
    current.taken = True
    return current


_ADVANCE = Prepared(
    crons.update()
    .where(
        crons.c.cron_id == bindparam("key"),
        crons.c.next_run_date == bindparam("slot"),
        crons.c.enabled.is_(True),
    )
    .values(
        next_run_date=bindparam("next_run_date"),
        enabled=bindparam("enabled"),
        claimed_until=None,
    )
)


def note_fired(conn: Connection, fired: Firing) -> None:
    """Move the cron past its slot, in the transaction that writes its run.

    Raises:
        HTTPException: (409) the slot has been fired, or the cron was changed,
            disabled or deleted since it was claimed: there must be no run.
    """
    moved = conn.execute(
        _ADVANCE,
        {
            "key": fired.cron_id,
            "slot": fired.slot,
            "next_run_date": fired.following or fired.slot,
            # A schedule that names years ends by itself.
            "enabled": fired.following is not None,
        },
    )
    if not moved:
        raise HTTPException(
            409, f"Cron {fired.cron_id} has already fired for {fired.slot.isoformat()}, or changed"
        )


_UNCLAIMED = or_(crons.c.claimed_until.is_(None), crons.c.claimed_until <= bindparam("now"))
_IS_DUE = (
    crons.c.enabled.is_(True),
    crons.c.next_run_date <= bindparam("now"),
    or_(crons.c.end_time.is_(None), crons.c.end_time >= bindparam("now")),
    _UNCLAIMED,
)
_DUE = Prepared(
    select(crons.c.cron_id)
    .where(*_IS_DUE)
    .order_by(crons.c.next_run_date)
    .limit(bindparam("limit"))
)
_CLAIM = Prepared(
    crons.update()
    .where(crons.c.cron_id == bindparam("key"), *_IS_DUE)
    .values(claimed_until=bindparam("claimed_until"))
)


def _claim(conn: Connection, cron_id: UUID) -> tuple[Row | None, datetime]:
    moment = conn.now()
    claimed = conn.execute(_CLAIM, {"key": cron_id, "now": moment, "claimed_until": moment + CLAIM})
    return cron_rows.find(conn, cron_id) if claimed else None, moment


async def due() -> AsyncIterator[Row]:
    """Claim the crons that are due, one at a time, and yield each for its run to be created.

    One at a time, so that an error over one leaves the others for the next poll.
    While a cron is out, `request_context.firing` and the authentication context are its own.
    """
    from langgraph_api.config import CRON_SCHEDULER_BATCH_SIZE
    from langgraph_api.utils import AuthContext

    request_context.firing.set(None)
    limit = CRON_SCHEDULER_BATCH_SIZE if CRON_SCHEDULER_BATCH_SIZE > 0 else BATCH
    waiting = await runtime.current().database.read(
        lambda conn: conn.fetchall(_DUE, {"now": conn.now(), "limit": limit})
    )
    try:
        for candidate in waiting:
            cron_id = candidate["cron_id"]
            row, moment = await runtime.current().database.write(partial(_claim, cron_id=cron_id))
            if row is None:
                # Another scheduler was quicker, or it was changed.
                continue
            request_context.firing.set(
                Firing(cron_id, row["next_run_date"], _following(row, moment))
            )
            # The scheduler leaves the last cron's user in place where the next has none.
            AuthContext.set(_context(row["creator"]))
            yield _handed_out(row, moment)
    finally:
        request_context.firing.set(None)
        AuthContext.set(None)


def _following(row: Row, moment: datetime) -> datetime | None:
    try:
        return cron_schedule.next_date(row["schedule"], moment, row["timezone"])
    except HTTPException as error:
        logger.warning("A cron has no further date", cron_id=str(row["cron_id"]), why=error.detail)
        return None


def _handed_out(row: Row, moment: datetime) -> Row:
    """A private copy with all that the scheduler reads; it changes the payload."""
    payload = cron_rows.payload_of(row["payload"], row["cron_id"])
    payload["metadata"] = payload.get("metadata") or {}
    # The scheduler believes what a payload says of its user.
    configurable = payload["config"]["configurable"]
    for name in [name for name in configurable if name.startswith("langgraph_auth_")]:
        del configurable[name]
    payload.setdefault("assistant_id", str(row["assistant_id"]))
    # Of a creator that is known whole, the scheduler must not make a user with a name only.
    user_id = row["user_id"] if row["creator"] is None else None
    return {**cron_rows.public(row), "payload": payload, "user_id": user_id, "now": moment}


# --- the creator ------------------------------------------------------------


def creator(ctx: Any) -> Row | None:
    """Who creates a cron, so that its runs can be theirs; None without authentication."""
    from langgraph_api.auth.noop import UnauthenticatedUser
    from langgraph_api.utils import get_auth_ctx

    base = ctx or get_auth_ctx()
    if base is None or isinstance(base.user, UnauthenticatedUser):
        return None
    return {
        "user": json_codec.plain(user_fields(base.user)),
        "permissions": list(base.permissions or []),
    }


def _context(stored: Row | None) -> Any:
    if stored is None:
        return None
    from langgraph_api.auth.custom import normalize_user
    from langgraph_sdk import Auth

    return Auth.types.BaseAuthContext(
        permissions=stored["permissions"], user=normalize_user(stored["user"])
    )
