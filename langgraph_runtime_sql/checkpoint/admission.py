"""Admission: what must hold, inside its transaction, for a write of a run to be let in."""

from collections.abc import Callable

from sqlalchemy import Integer, Text, bindparam, func, literal, select

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import RUNNING_LITERAL, runs
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.statuses import IN_FLIGHT

_owned_run = select(runs.c.attempt, runs.c.claimed_by).where(
    runs.c.run_id == bindparam("run_id"),
    runs.c.attempt == bindparam("claimed_attempt"),
    runs.c.status == RUNNING_LITERAL,
)
_OWNED = Prepared(_owned_run)
_LAST_ATTEMPT = Prepared(
    select(runs.c.attempt, runs.c.claimed_by, runs.c.status)
    .where(runs.c.run_id == bindparam("run_id"))
    .with_for_update(read=True)
)
# Until the write is committed nobody else takes the run over: he would miss it.
_HELD = Prepared(_owned_run.with_for_update(read=True))
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
    """The checks that the calling task's writes must pass.

    Args:
        checkpoint_id: Of the checkpoint that is put.

    Taken where the caller is, because the database's threads have contexts of
    their own. The returned function raises SupersededAttempt, or whatever the
    guard does. Where others write at the same time, what follows it may be sent to the database
    before it has answered, which then does none of it, and the write ends with SupersededAttempt.
    """
    owner, guard = request_context.claim.get(), request_context.write_guard.get()

    def admit(conn: Connection) -> None:
        if owner is not None and conn.locks:
            held = {"run_id": owner.run_id, "claimed_attempt": owner.attempt, "owner": owner.owner}
            asked = conn.ask(_HOLD, held)
            if guard is not None:
                asked.one()
        elif owner is not None and not _owned(conn, owner):
            raise SupersededAttempt(
                f"Attempt {owner.attempt} of run {owner.run_id} no longer owns the run: "
                "it has ended, or another attempt has taken over."
            )
        if guard is not None:
            guard(conn, checkpoint_id)

    return admit


def _owned(conn: Connection, owner: Claim) -> bool:
    statement = _HELD if conn.locks else _OWNED
    found = conn.fetchone(statement, {"run_id": owner.run_id, "claimed_attempt": owner.attempt})
    return found is not None and owner.owner in (None, found["claimed_by"])


def not_superseded() -> Callable[[Connection], None]:
    """The check that the calling task's writes to the store must pass.

    Unlike a checkpoint, what a graph remembers may well be written once its run has ended. But not
    by an attempt after which there was another. The returned function raises SupersededAttempt.
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
