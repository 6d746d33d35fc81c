"""Admission: the checks that a run's write must pass inside its transaction."""

from collections.abc import Callable

from sqlalchemy import Integer, Text, bindparam, func, literal, select

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import RUNNING_LITERAL, runs
from langgraph_runtime_sql.database.statements import LockingSelect, Prepared
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.statuses import IN_FLIGHT

# The lock keeps other processes from taking the run over before the commit: they would miss
# the write.
_OWNED = LockingSelect(
    select(runs.c.attempt, runs.c.claimed_by).where(
        runs.c.run_id == bindparam("run_id"),
        runs.c.attempt == bindparam("claimed_attempt"),
        runs.c.status == RUNNING_LITERAL,
    ),
    shared=True,
)
_LAST_ATTEMPT = Prepared(
    select(runs.c.attempt, runs.c.claimed_by, runs.c.status)
    .where(runs.c.run_id == bindparam("run_id"))
    .with_for_update(read=True)
)
_HOLD = Prepared(
    select(literal(1).label("one")).select_from(
        func.hold_run(
            bindparam("run_id", type_=runs.c.run_id.type),
            bindparam("claimed_attempt", type_=Integer),
            bindparam("owner", type_=Text),
        )
    )
)


def admission(checkpoint_id: str | None = None) -> Callable[[Connection], None]:
    """Return the checks for writes of the calling task.

    The database's threads have contexts of their own, so the caller's task is asked here. The
    returned function raises SupersededAttempt, or an error of the guard. On Postgres it may return
    before the answer; the write then ends with SupersededAttempt, and nothing is stored.

    Args:
        checkpoint_id: The id of the checkpoint to put.
    """
    owner, guard = request_context.claim.get(), request_context.write_guard.get()

    def admit(conn: Connection) -> None:
        if owner is not None and conn.locks:
            held = {"run_id": owner.run_id, "claimed_attempt": owner.attempt, "owner": owner.owner}
            queued = conn.prefetch(_HOLD, held)
            if guard is not None:
                queued.one()
        elif owner is not None and not _owned(conn, owner):
            raise SupersededAttempt(
                f"Attempt {owner.attempt} of run {owner.run_id} no longer owns the run: "
                "it has ended, or another attempt has taken over."
            )
        if guard is not None:
            guard(conn, checkpoint_id)

    return admit


def _owned(conn: Connection, owner: Claim) -> bool:
    found = conn.fetchone(_OWNED, {"run_id": owner.run_id, "claimed_attempt": owner.attempt})
    return found is not None and owner.owner in (None, found["claimed_by"])


def not_superseded() -> Callable[[Connection], None]:
    """Return the check for writes of the calling task to the store.

    Unlike a checkpoint, an item may be written after the end of its run, but not by an attempt
    that a later one has replaced. The returned function raises SupersededAttempt.
    """
    owner = request_context.claim.get()

    def admit(conn: Connection) -> None:
        if owner is None:
            return
        run = conn.fetchone(_LAST_ATTEMPT, {"run_id": owner.run_id})
        if run is None or run["status"] not in IN_FLIGHT:
            superseded = run is not None and run["attempt"] != owner.attempt
        else:
            superseded = not _owned(conn, owner)
        if superseded:
            raise SupersededAttempt(
                f"Attempt {owner.attempt} of run {owner.run_id} no longer owns the run: "
                "another attempt has taken over."
            )

    return admit
