"""Claiming runs: which may start, who works on them, and what becomes of those that lost him."""

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.dml import ReturningUpdate

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    Timestamp,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import Params, Prepared, Row
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import order as run_order
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import cancel_pending
from langgraph_runtime_sql.statuses import RunStatus

LEASE_SECONDS = 15.0
# How long a run on its last attempt must have lived before the next such may start.
APART_SECONDS = 30.0
_BEGINNING = datetime.fromtimestamp(0, UTC)
_END = datetime.max.replace(tzinfo=UTC)
# Who claims: one name for each start of the process.
OWNER = uuid.uuid4().hex
Whose = Literal["ours", "ended", "all"]
Rows = Callable[[], list[Row]]


class Claimed(NamedTuple):
    """Runs to start now with their attempts, when the next becomes due, and whether some wait.

    Those that wait are due, but for another run to end or for a free slot.

    Attributes:
        due_in: Seconds until the next run becomes due; None where there is none to come.
    """

    runs: list[tuple[Row, int]]
    due_in: float | None
    waiting: bool


@dataclass(slots=True)
class Turns:
    """How far the claims of a process have come, where many tenants wait.

    Attributes:
        reached: The last tenant whose turn it might have been, by name.
    """

    reached: str = ""


_STARTED: dict[str, Any] = {
    "status": RunStatus.RUNNING,
    "attempt": runs.c.attempt + 1,
    "claimed_by": bindparam("owner"),
    "lease_until": bindparam("lease"),
    "updated_at": bindparam("moment"),
}


def _claiming(first: Select[Any]) -> ReturningUpdate[Any]:
    """The statement that claims the runs with these numbers."""
    return (
        runs.update()
        .where(runs.c.seq.in_(first))
        .values(_STARTED)
        .returning(*run_rows.PUBLIC, runs.c.tenant, runs.c.attempt, runs.c.seq)
    )


def _locked(first: Select[Any]) -> Select[Any]:
    """These runs, found and locked once, however often the rest of the statement asks for them."""
    return select(first.cte("claimable").c.seq)


def _oldest_together() -> Select[Any]:
    return run_order.oldest().limit(bindparam("most")).with_for_update(skip_locked=True, of=runs)


_CLAIM = Prepared(lambda: _claiming(run_order.oldest().limit(1)))
_TENANTS = Prepared(run_order.tenants)
_CLAIM_FAIRLY = Prepared(lambda: _claiming(run_order.fairest()))
# Postgres: several at once, passing over those that another process is about to take.
_CLAIM_TOGETHER = Prepared(lambda: _claiming(_locked(_oldest_together())))
_CLAIM_FAIRLY_TOGETHER = Prepared(lambda: _claiming(_locked(run_order.fairest_together())))


def _counting(moment: ColumnElement[Any]) -> Prepared:
    """The statement that counts the runs that are due, as far as there is `room`."""
    due = select(runs.c.seq).where(runs.c.status == PENDING_LITERAL, runs.c.created_at <= moment)
    due = due.limit(bindparam("room"))
    return Prepared(select(func.count().label("due")).select_from(due.subquery()))


_COUNT_DUE = _counting(bindparam("moment"))
# Postgres: by its own clock, so that it can be asked for together with the time.
_COUNT_DUE_NOW = _counting(func.statement_timestamp())
_next_due = select(func.min(runs.c.created_at)).where(
    runs.c.status == PENDING_LITERAL, runs.c.created_at > bindparam("moment")
)
_waits = select(runs.c.seq).where(
    runs.c.status == PENDING_LITERAL, runs.c.created_at <= bindparam("moment")
)
_LEFT = Prepared(select(_next_due.scalar_subquery().label("due"), _waits.exists().label("waits")))
_RELEASE = Prepared(
    runs.update()
    .where(
        runs.c.run_id == bindparam("id"),
        runs.c.attempt == bindparam("held"),
        runs.c.status == RUNNING_LITERAL,
    )
    .values(
        status=RunStatus.PENDING,
        attempt=runs.c.attempt - bindparam("uncounted"),
        claimed_by=None,
        lease_until=None,
        updated_at=bindparam("moment"),
    )
    .returning(runs.c.run_id, runs.c.thread_id, runs.c.kwargs, runs.c.cancel_action)
)
_RENEW = Prepared(
    runs.update()
    .where(runs.c.claimed_by == bindparam("owner"), runs.c.status == RUNNING_LITERAL)
    .values(lease_until=bindparam("lease"))
)
_RENEW_HELD = Prepared(
    runs.update()
    .where(runs.c.claimed_by == bindparam("owner"), runs.c.status == RUNNING_LITERAL)
    .values(lease_until=bindparam("lease"))
    .returning(runs.c.run_id, runs.c.attempt, runs.c.cancel_action, runs.c.cancel_reason)
)
_IS_LOST = (
    runs.c.status == RUNNING_LITERAL,
    runs.c.seq > bindparam("after"),
    or_(
        runs.c.claimed_by == bindparam("owner"),
        func.coalesce(runs.c.lease_until, bindparam("never", _BEGINNING, type_=Timestamp))
        < bindparam("ended_before", type_=Timestamp),
    ),
)
_LOST = Prepared(
    select(runs.c.seq, runs.c.run_id).where(*_IS_LOST).order_by(runs.c.seq).limit(bindparam("most"))
)
# Nobody is waited for: who holds one of them is at it, or will be found by a later sweep. So
# runs may be locked together with their threads, in any order.
_TAKE_LOST = Prepared(
    select(runs)
    .join(threads)
    .where(*_IS_LOST, runs.c.seq <= bindparam("last"))
    .order_by(runs.c.seq)
    .with_for_update(key_share=True, skip_locked=True, of=[runs, threads])
)


def claim(conn: Connection, limit: int, turns: Turns | None = None) -> Claimed:
    """Mark up to `limit` due runs as running by us; which come first says `run_order`.

    Args:
        turns: Those of the queue. Without them the first tenants by name are chosen among.
    """
    conn.ask_now()
    fairly = _has_turns(conn, limit)
    moment = conn.now()
    values: Params = {
        "moment": moment,
        "since": _BEGINNING,
        "owner": OWNER,
        "lease": moment + timedelta(seconds=LEASE_SECONDS),
        "last": _attempts_before_last(),
        "apart": moment - timedelta(seconds=APART_SECONDS),
    }
    if fairly:
        values = {**values, **_turns(conn, limit, turns or Turns())}
    take = (_claim_together if conn.locks else _claim_each)(conn, limit, values, fairly)
    asked = conn.ask(_LEFT, {"moment": moment})
    found = take()
    for row in found:
        announce.started(conn, row)
    left = asked.one() or {"due": None, "waits": False}
    due_in = None if left["due"] is None else (left["due"] - moment).total_seconds()
    claimed = [(run_rows.claimed(row), row["attempt"]) for row in found]
    return Claimed(claimed, due_in, bool(left["waits"]))


def _has_turns(conn: Connection, limit: int) -> bool:
    """Whether more runs are due than there is room for, and tenants are told apart."""
    if runtime.current().options.tenant_key is None:
        return False
    if conn.locks:
        due: int = conn.scalar(_COUNT_DUE_NOW, {"room": limit + 1})
    else:
        due = conn.scalar(_COUNT_DUE, {"moment": conn.now(), "room": limit + 1})
    return due > limit


def _turns(conn: Connection, limit: int, turns: Turns) -> Params:
    """Which tenants `run_order` has to choose among, and go on behind them next time."""
    among = max(run_order.TENANTS_AT_LEAST, run_order.TENANTS_EACH * limit)
    values = {"reached": turns.reached, "among": among}
    found = conn.fetchall(_TENANTS, values)
    if len(found) == among:
        turns.reached = found[-1]["tenant"]
    return values


def _claim_each(conn: Connection, limit: int, values: Params, fairly: bool) -> Rows:
    found: list[Row] = []
    while len(found) < limit:
        row = conn.fetchone(_CLAIM_FAIRLY if fairly else _CLAIM, values)
        if row is not None:
            found.append(row)
            if not fairly:
                values = {**values, "since": row["created_at"]}
        elif fairly:
            # Of these tenants nobody has one that may start: no room is left unused.
            fairly = False
        else:
            break
    return lambda: found


def _claim_together(conn: Connection, limit: int, values: Params, fairly: bool) -> Rows:
    found: list[Row] = []
    if fairly:
        found = conn.fetchall(_CLAIM_FAIRLY_TOGETHER, {**values, "most": limit})
    # Some of those whose turn it was may be another process's by now: no room is left unused.
    rest = conn.ask(_CLAIM_TOGETHER, {**values, "most": limit - len(found)})
    return lambda: sorted([*found, *rest.all()], key=lambda row: (row["created_at"], row["seq"]))


def _attempts_before_last() -> int:
    from langgraph_api.config import BG_JOB_MAX_RETRIES

    # With a single attempt there is none that tells a danger from a victim.
    return BG_JOB_MAX_RETRIES - 1 if BG_JOB_MAX_RETRIES > 1 else -1


def release(
    conn: Connection,
    run_id: Any,
    attempt: int,
    *,
    counted: bool = True,
    owner: str | None = None,
) -> bool:
    """Put a run that we hold back into the queue; False if we no longer hold it.

    One that was told to stop, before its worker was lost or stopped, stops now.

    Args:
        counted: Whether this attempt counts towards the most a run may have.
            One that a shutdown cut short does not.
        owner: Whose attempt it is. Another process may have taken one with the same
            number, where the last was not counted.
    """
    run_rows.lock_thread(conn, run_id)
    if conn.locks and not run_rows.is_held(conn, run_id, attempt, owner):
        return False
    released = conn.fetchone(
        _RELEASE,
        {"id": run_id, "held": attempt, "uncounted": 0 if counted else 1, "moment": conn.now()},
    )
    if released is None:
        return False
    if released["cancel_action"]:
        cancel_pending(conn, released, released["cancel_action"])
    else:
        announce.wake(conn)
    return True


def renew(conn: Connection) -> None:
    """Extend the leases of everything we hold."""
    conn.execute(_RENEW, {"owner": OWNER, "lease": conn.now() + timedelta(seconds=LEASE_SECONDS)})


def renew_held(conn: Connection) -> list[Row]:
    """The same, where others might have taken some over: what is still ours, and told to stop."""
    return conn.fetchall(
        _RENEW_HELD, {"owner": OWNER, "lease": conn.now() + timedelta(seconds=LEASE_SECONDS)}
    )


def lost(
    conn: Connection, working: Collection[str], whose: Whose, after: int, limit: int
) -> tuple[list[int], int | None]:
    """Runs that are marked as running and that nobody works on, a page of those there are.

    No claim of this process may be under way meanwhile: its runs would look lost.

    Args:
        working: The ids of the runs that this process works on.
        whose: Beside runs that this process has claimed: those of others whose lease has
            `ended`, `all` where no other process works with the database, or `ours` alone.
        after: The last run of the page before, by its number.
        limit: How many runs to look at.

    Returns:
        The numbers of the runs, and of the last one looked at if there may be more.
    """
    rows = conn.fetchall(_LOST, {**_given_up(conn, whose), "after": after, "most": limit})
    numbers = [row["seq"] for row in rows if str(row["run_id"]) not in working]
    return numbers, rows[-1]["seq"] if len(rows) == limit else None


def recover(
    conn: Connection,
    working: Collection[str],
    whose: Whose,
    first: int,
    last: int,
    *,
    counted: bool = True,
) -> list[str]:
    """Free the lost runs with these numbers, but for those that somebody holds; their ids.

    Args:
        working, whose: As for `lost`.
        first, last: Numbers of runs.
        counted: As for `release`.
    """
    rows = conn.fetchall(_TAKE_LOST, {**_given_up(conn, whose), "after": first - 1, "last": last})
    return [
        str(row["run_id"])
        for row in rows
        if str(row["run_id"]) not in working
        # The end of another of them may have deleted its thread.
        and release(conn, row["run_id"], row["attempt"], counted=counted, owner=row["claimed_by"])
    ]


def _given_up(conn: Connection, whose: Whose) -> dict[str, Any]:
    """Before when a lease must have ended for its run to be taken from another process."""
    moment = {"ours": _BEGINNING, "all": _END}.get(whose) or conn.now()
    return {"owner": OWNER, "ended_before": moment}
