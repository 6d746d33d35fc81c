"""Claims and leases of runs: claim due runs, renew their leases, recover runs without a worker."""

import os
import uuid
from collections.abc import Collection
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
from langgraph_runtime_sql.events.changes import changed
from langgraph_runtime_sql.ops.runs import announce, order
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import cancel_pending
from langgraph_runtime_sql.ops.runs.order import APART_SECONDS
from langgraph_runtime_sql.ops.runs.turns import TenantRotation, choose_runs
from langgraph_runtime_sql.statuses import RunStatus

LEASE_SECONDS = 15.0
_BEGINNING = datetime.fromtimestamp(0, UTC)
_END = datetime.max.replace(tzinfo=UTC)
# The name under which this process claims; each start of the process has its own.
OWNER = uuid.uuid4().hex
Include = Literal["own", "ended", "all"]


def _rename() -> None:
    """Give a forked process a name of its own. It would take the runs of its parent for its own."""
    global OWNER
    OWNER = uuid.uuid4().hex


os.register_at_fork(after_in_child=_rename)


class Claimed(NamedTuple):
    """The runs that a claim has started, and what remains in the queue.

    Attributes:
        runs: Each run with its attempt.
        due_in: Seconds until the next run becomes due, or None. 0 if this claim left tenants or
            runs out: another one may start more.
        waiting: Whether due runs remain. They wait for a free slot or for another run to end.
    """

    runs: list[tuple[Row, int]]
    due_in: float | None
    waiting: bool


_STARTED: dict[str, Any] = {
    "status": RunStatus.RUNNING,
    "attempt": runs.c.attempt + 1,
    "claimed_by": bindparam("owner"),
    "lease_until": bindparam("lease"),
    "build": bindparam("own_build"),
    "updated_at": bindparam("now"),
}


def _starting(which: Select[Any]) -> ReturningUpdate[Any]:
    """Return the statement that starts the runs with the numbers in `which`."""
    # The CTE finds and locks the runs once, however often the statement refers to them.
    return (
        runs.update()
        .where(runs.c.seq.in_(select(which.cte("claimable").c.seq)))
        .values(_STARTED)
        .returning(*run_rows.PUBLIC, runs.c.tenant, runs.c.attempt, runs.c.seq)
    )


def _counting(now: ColumnElement[Any]) -> Prepared:
    """Return the statement that counts due runs, up to `room`."""
    due = select(runs.c.seq).where(runs.c.status == PENDING_LITERAL, runs.c.created_at <= now)
    due = due.limit(bindparam("room"))
    return Prepared(select(func.count().label("due")).select_from(due.subquery()))


_COUNT_DUE = _counting(bindparam("now"))
# On Postgres, the server's clock lets the count go out together with the question for the time.
_COUNT_DUE_NOW = _counting(func.statement_timestamp())
_START_OLDEST = Prepared(lambda: _starting(order.oldest()))
_START = Prepared(lambda: _starting(order.numbered()))
_next_due = select(func.min(runs.c.created_at)).where(
    runs.c.status == PENDING_LITERAL, runs.c.created_at > bindparam("now")
)
_waits = select(runs.c.seq).where(
    runs.c.status == PENDING_LITERAL, runs.c.created_at <= bindparam("now")
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
        updated_at=bindparam("now"),
    )
    .returning(runs.c.run_id, runs.c.thread_id, runs.c.tenant, runs.c.kwargs, runs.c.cancel_action)
)
_renew = (
    runs.update()
    .where(runs.c.claimed_by == bindparam("owner"), runs.c.status == RUNNING_LITERAL)
    .values(lease_until=bindparam("lease"))
)
_RENEW = Prepared(_renew)
_RENEW_HELD = Prepared(
    _renew.returning(runs.c.run_id, runs.c.attempt, runs.c.cancel_action, runs.c.cancel_reason)
)
_OTHERS = Prepared(
    select(runs.c.claimed_by, func.min(runs.c.lease_until).label("ends"))
    .where(
        runs.c.status == RUNNING_LITERAL,
        runs.c.claimed_by != bindparam("owner"),
        runs.c.lease_until.is_not(None),
    )
    .group_by(runs.c.claimed_by)
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
    select(runs.c.seq, runs.c.run_id)
    .where(*_IS_LOST)
    .order_by(runs.c.seq)
    .limit(bindparam("limit"))
)
# Skip locked rows: another transaction is changing them, or a later sweep finds them. Since it
# never waits, this statement may lock runs and their threads in any order.
_TAKE_LOST = Prepared(
    select(runs)
    .join(threads)
    .where(*_IS_LOST, runs.c.seq <= bindparam("last"))
    .order_by(runs.c.seq)
    .with_for_update(key_share=True, skip_locked=True, of=[runs, threads])
)


def claim(
    conn: Connection, limit: int, rotation: TenantRotation | None = None, *, reserved: int = 0
) -> Claimed:
    """Claim up to `limit` due runs for this process, in the order of `order`.

    Args:
        rotation: The queue's position among the tenants. Default: before the first tenant.
        reserved: How many of the process's slots only a tenant without running runs may take.
            It has no effect without tenants.
    """
    conn.prefetch_now()
    options = runtime.current().options
    unreserved = limit if options.tenant_key is None else max(0, limit - reserved)
    # Tenants that all get a slot need not take turns.
    in_turn = options.limits.order_claims or (
        options.tenant_key is not None and _are_more_due_than(conn, unreserved)
    )
    rotation = rotation or TenantRotation()
    values: Params = {"own_build": options.build, "last": _attempts_before_last()}
    if in_turn:
        known = values if conn.locks else {**values, **_clock(conn)}
        numbers, unfinished = choose_runs(
            conn, options.limits, known, rotation, free=limit, unreserved=unreserved
        )
        start, which = _START, [{"number": number} for number in numbers]
    else:
        start, which, unfinished = _START_OLDEST, [{"limit": unreserved}], False
    values = {**values, **_clock(conn), **_lease(conn)}
    started = [conn.prefetch(start, {**values, **each}) for each in which]
    remaining = conn.prefetch(_LEFT, values)
    found = [row for each in started for row in each.all()]
    found.sort(key=lambda row: (row["created_at"], row["seq"]))
    for row in found:
        announce.started(conn, row)
    left = remaining.one() or {"due": None, "waits": False}
    due_in = None if left["due"] is None else (left["due"] - values["now"]).total_seconds()
    if len(found) < unreserved and rotation.goes_on(len(found), unfinished):
        due_in = 0.0
    claimed = [(run_rows.claimed(row), row["attempt"]) for row in found]
    return Claimed(claimed, due_in, bool(left["waits"]))


def _are_more_due_than(conn: Connection, slots: int) -> bool:
    """Return whether more than `slots` runs are due."""
    if conn.locks:
        due: int = conn.scalar(_COUNT_DUE_NOW, {"room": slots + 1})
    else:
        due = conn.scalar(_COUNT_DUE, {"now": conn.now(), "room": slots + 1})
    return due > slots


def _clock(conn: Connection) -> Params:
    now = conn.now()
    return {"now": now, "apart": now - timedelta(seconds=APART_SECONDS)}


def _attempts_before_last() -> int:
    from langgraph_api.config import BG_JOB_MAX_RETRIES

    # With a single attempt, no earlier attempt shows which run ends its process.
    return BG_JOB_MAX_RETRIES - 1 if BG_JOB_MAX_RETRIES > 1 else -1


def release(
    conn: Connection, run_id: Any, attempt: int, *, counted: bool = True, owner: str | None = None
) -> bool:
    """Return a claimed run to the queue, or cancel it if its cancellation was requested.

    Args:
        counted: Whether this attempt counts towards the maximum. An attempt that a shutdown
            cut short does not count.
        owner: The process that made the attempt. After an uncounted attempt, another process
            may make one with the same number.

    Returns:
        False if the attempt no longer holds the run.
    """
    run_rows.lock_thread(conn, run_id)
    if conn.locks and not run_rows.is_held(conn, run_id, attempt, owner):
        return False
    released = conn.fetchone(
        _RELEASE,
        {"id": run_id, "held": attempt, "uncounted": 0 if counted else 1, "now": conn.now()},
    )
    if released is None:
        return False
    if released["cancel_action"]:
        cancel_pending(conn, released, released["cancel_action"])
    else:
        announce.wake(conn)
        changed(conn, released)
    return True


def renew(conn: Connection) -> None:
    """Renew the leases of all runs of this process."""
    conn.execute(_RENEW, _lease(conn))


def renew_held(conn: Connection) -> list[Row]:
    """Renew the leases of this process, and return its runs with their stop requests."""
    return conn.fetchall(_RENEW_HELD, _lease(conn))


def _lease(conn: Connection) -> Params:
    return {"owner": OWNER, "lease": conn.now() + timedelta(seconds=LEASE_SECONDS)}


def lost(
    conn: Connection, working: Collection[str], include: Include, after: int, limit: int
) -> tuple[list[int], int | None]:
    """Find a page of lost runs: marked as running, but without a worker.

    This process must not claim meanwhile, because a newly claimed run would look lost.

    Args:
        working: The ids of the runs that this process works on.
        include: `own` finds only runs claimed by this process. `ended` adds runs whose lease
            has expired. `all` adds the runs of all other processes.
        after: The number of the last run of the previous page.
        limit: The page size.

    Returns:
        The numbers of the lost runs, and the number to continue after, or None at the end.
    """
    rows = conn.fetchall(_LOST, {**_expiry(conn, include), "after": after, "limit": limit})
    numbers = [row["seq"] for row in rows if str(row["run_id"]) not in working]
    return numbers, rows[-1]["seq"] if len(rows) == limit else None


def recover(
    conn: Connection,
    working: Collection[str],
    include: Include,
    first: int,
    last: int,
    *,
    counted: bool = True,
) -> list[str]:
    """Release the lost runs from number `first` to `last`, except locked ones.

    Args:
        working, include: As for `lost`.
        counted: As for `release`.

    Returns:
        The ids of the released runs.
    """
    rows = conn.fetchall(_TAKE_LOST, {**_expiry(conn, include), "after": first - 1, "last": last})
    # The commit locks the counters of tenants in this order, as claims do.
    rows.sort(key=lambda row: row["tenant"] or "")
    return [
        str(row["run_id"])
        for row in rows
        if str(row["run_id"]) not in working
        # False if the release of another run of the page has deleted the thread.
        and release(conn, row["run_id"], row["attempt"], counted=counted, owner=row["claimed_by"])
    ]


def others(conn: Connection) -> dict[str, datetime]:
    """Return the other processes that have running runs, each with the end of its first lease."""
    rows = conn.fetchall(_OTHERS, {"owner": OWNER})
    return {row["claimed_by"]: row["ends"] for row in rows}


def end_leases(conn: Connection, owners: Collection[str]) -> None:
    """End the leases of processes that have certainly ended."""
    for owner in sorted(owners):
        conn.execute(_RENEW, {"owner": owner, "lease": _BEGINNING})


def _expiry(conn: Connection, include: Include) -> dict[str, Any]:
    ended_before = {"own": _BEGINNING, "all": _END}.get(include) or conn.now()
    return {"owner": OWNER, "ended_before": ended_before}
