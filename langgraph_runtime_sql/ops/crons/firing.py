"""Firing: create exactly one run for each due slot of a cron.

A scheduler claims a due cron for a minute. Then `langgraph_api` creates the run, and the same
transaction moves the cron to its next slot. If the scheduler dies in between, its claim expires
and the cron is still due. A slow second scheduler finds another slot and creates nothing.
What happens to slots that were missed while no server ran is the cron's choice: see `misfire`.
"""

from collections import deque
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
from langgraph_runtime_sql.audit.entry import POLICY, Note
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import crons
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.gate.caller import user_fields
from langgraph_runtime_sql.ops.crons import misfire
from langgraph_runtime_sql.ops.crons import rows as cron_rows
from langgraph_runtime_sql.ops.crons.misfire import Decision
from langgraph_runtime_sql.telemetry import metrics

logger = structlog.stdlib.get_logger(__name__)

# The time in which a scheduler must create the run. Then another one may claim the cron.
CLAIM = timedelta(seconds=60)
# The maximum number of crons in each poll.
BATCH = 1000


@dataclass(slots=True)
class Firing:
    """A due slot of a cron, while its run is being created.

    Attributes:
        slot: The due date.
        following: The date after it, or None if the schedule has no more.
        note: The entry of the audit log about the decision to fire.
        taken: Whether a run uses this firing.
    """

    cron_id: UUID
    slot: datetime
    following: datetime | None
    note: Note
    taken: bool = field(default=False, repr=False)


def count_fired(conn: Connection) -> None:
    """Count a run that a cron has started, once it is committed."""
    conn.after_commit(lambda: metrics.process().crons.inc())


def take_firing() -> Firing | None:
    """Return the firing of the run to be created, or None.

    Returned only once: a worker started in this context may create other runs.
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
        next_run_date=bindparam("next_run_date"), enabled=bindparam("enabled"), claimed_until=None
    )
)


def note_fired(conn: Connection, fired: Firing) -> None:
    """Move the cron past its slot, in the transaction that writes its run.

    Raises:
        HTTPException: (409) the slot was already fired, or the cron was changed, disabled or
            deleted after the claim.
    """
    moved = conn.execute(
        _ADVANCE,
        {
            "key": fired.cron_id,
            "slot": fired.slot,
            "next_run_date": fired.following or fired.slot,
            # A schedule with years may have no next date.
            "enabled": fired.following is not None,
        },
    )
    if moved:
        conn.notes.append(fired.note)
    else:
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


_DISABLE = Prepared(crons.update().where(crons.c.cron_id == bindparam("key")).values(enabled=False))


async def disable(fired: Firing, why: str) -> None:
    """Disable a cron whose runs are refused for good, so that it does not fire again."""

    def fn(conn: Connection) -> None:
        conn.execute(_DISABLE, {"key": fired.cron_id})

    await runtime.current().database.write(fn)
    logger.warning("Cron is disabled", action="cron_disabled", cron_id=str(fired.cron_id), why=why)


def _claim(conn: Connection, cron_id: UUID) -> tuple[Row | None, datetime, Decision | None]:
    """Claim a due cron if it fires now; otherwise move it past the slots that it skips."""
    now = conn.now()
    claimed = conn.execute(_CLAIM, {"key": cron_id, "now": now, "claimed_until": now + CLAIM})
    row = cron_rows.find(conn, cron_id) if claimed else None
    if row is None:
        return None, now, None
    if not row["payload"]:
        # Its key was erased, and with it the input and the user of its runs.
        conn.execute(_DISABLE, {"key": cron_id})
        return None, now, None
    decision = misfire.decide(row, now)
    if decision.following is None:
        logger.warning("Cron has ended", cron_id=str(cron_id))
    if decision.fires:
        return row, now, decision
    conn.execute(
        _ADVANCE,
        {
            "key": cron_id,
            "slot": row["next_run_date"],
            "next_run_date": decision.following or row["next_run_date"],
            "enabled": decision.following is not None,
        },
    )
    conn.notes.append(_note(row, decision))
    return None, now, decision


def _note(row: Row, decision: Decision) -> Note:
    """Return the entry of the audit log about a decision."""
    detail = {
        "slot": row["next_run_date"].isoformat(),
        "late_seconds": round(decision.late_seconds, 1),
        "missed": decision.missed,
        "policy": misfire.policy_of(row),
    }
    action = "fire" if decision.fires else "skip"
    return Note("cron", row["cron_id"], action, POLICY, tenant=row["tenant"], detail=detail)


async def due() -> AsyncIterator[tuple[Row, None]]:
    """Claim due crons one at a time, and yield each for its run to be created, as `Crons.next` does.

    After an error, the remaining crons are unclaimed and due at the next poll. Until the next
    iteration, `request_context.firing` and the authentication context are those of the cron.
    """
    from langgraph_api.config import CRON_SCHEDULER_BATCH_SIZE
    from langgraph_api.utils import AuthContext

    request_context.firing.set(None)
    limit = CRON_SCHEDULER_BATCH_SIZE if CRON_SCHEDULER_BATCH_SIZE > 0 else BATCH
    database = runtime.current().database
    candidates = deque(
        await database.read(lambda conn: conn.fetchall(_DUE, {"now": conn.now(), "limit": limit}))
    )
    looked = 0
    try:
        while candidates and looked < limit:
            looked += 1
            candidate = candidates.popleft()
            cron_id = candidate["cron_id"]
            row, now, decision = await database.write(partial(_claim, cron_id=cron_id))
            following = None if decision is None else decision.following
            if following is not None and following <= now:
                # Another slot is due. Other crons come first.
                candidates.append(candidate)
            if row is None or decision is None:
                # It skips, another scheduler was faster, or the cron was changed.
                continue
            slot = row["next_run_date"]
            note = _note(row, decision)
            request_context.firing.set(Firing(cron_id, slot, decision.following, note))
            # The scheduler does not remove the previous cron's user.
            AuthContext.set(_context(row["creator"]))
            yield _for_scheduler(row, now), None
    finally:
        request_context.firing.set(None)
        AuthContext.set(None)


def _for_scheduler(row: Row, now: datetime) -> Row:
    """Return a cron as the scheduler reads it, with a copy of the payload, which it changes."""
    payload = cron_rows.payload_of(row["payload"], row["cron_id"])
    payload["metadata"] = payload.get("metadata") or {}
    # The scheduler would trust a user in the payload, which a client has written.
    configurable = payload["config"]["configurable"]
    for name in [name for name in configurable if name.startswith("langgraph_auth_")]:
        del configurable[name]
    payload.setdefault("assistant_id", str(row["assistant_id"]))
    # With a user id, the scheduler would replace the creator by a user with only an identity.
    user_id = row["user_id"] if row["creator"] is None else None
    return {**cron_rows.public(row), "payload": payload, "user_id": user_id, "now": now}


# --- the creator ------------------------------------------------------------


def creator(ctx: Any) -> Row | None:
    """Return the creator of a cron, for the authentication of its runs, or None."""
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
