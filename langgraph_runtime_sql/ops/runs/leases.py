"""Leases: whether an attempt at a run still has it.

A process that was stopped for a while goes on where it was, and its runs may have been
taken over meanwhile. The database refuses its writes; what it publishes is checked here,
and only where its lease may have ended.
"""

from langgraph_runtime_sql import checkpoint
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.rows import is_held

# When a renewal that succeeded was begun, by the clock that no one can set, and of what.
_renewed: tuple[float, frozenset[tuple[str, int]]] = 0.0, frozenset()


def renewed(moment: float, held: frozenset[tuple[str, int]]) -> None:
    """Note that leases were renewed, of these runs and attempts.

    Args:
        moment: When the write began that did it, by `clock.elapsed`.
        held: The runs and attempts.
    """
    global _renewed
    _renewed = moment, held


def is_sure(claim: checkpoint.Claim) -> bool:
    """Whether nobody can have taken over yet what an attempt had."""
    if database.current().alone:
        return True
    moment, held = _renewed
    since = max(claim.since, moment if (claim.run_id, claim.attempt) in held else 0.0)
    return elapsed() - since < run_claim.LEASE_SECONDS


async def check(claim: checkpoint.Claim) -> None:
    """Raise unless an attempt still has its run.

    Raises:
        SupersededAttempt: it has not.
    """
    if is_sure(claim):
        return

    def fn(conn: Connection) -> bool:
        return is_held(conn, claim.run_id, claim.attempt, claim.owner)

    if not await database.current().read(fn):
        raise SupersededAttempt(
            f"Attempt {claim.attempt} of run {claim.run_id} no longer owns the run"
        )
