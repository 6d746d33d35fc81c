"""Leases: whether an attempt at a run still has it.

A process that was stopped for a while goes on where it was, and its runs may have been
taken over meanwhile. The database refuses its writes; what it publishes is checked here,
and only where its lease may have ended.
"""

from dataclasses import dataclass

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.rows import is_held


@dataclass(frozen=True, slots=True)
class Renewal:
    """The last renewal of leases that succeeded.

    Attributes:
        began: When the write began that did it, by `clock.elapsed`.
        held: The runs and attempts whose leases it renewed.
    """

    began: float = 0.0
    held: frozenset[tuple[str, int]] = frozenset()


def is_sure(claim: Claim) -> bool:
    """Whether nobody can have taken over yet what an attempt had."""
    here = runtime.current()
    if here.database.alone:
        return True
    renewal = Renewal() if here.queue is None else here.queue.renewal
    is_renewed = (claim.run_id, claim.attempt) in renewal.held
    since = max(claim.since, renewal.began if is_renewed else 0.0)
    return elapsed() - since < run_claim.LEASE_SECONDS


async def check(claim: Claim) -> None:
    """Raise unless an attempt still has its run.

    Raises:
        SupersededAttempt: it has not.
    """
    if is_sure(claim):
        return

    def fn(conn: Connection) -> bool:
        return is_held(conn, claim.run_id, claim.attempt, claim.owner)

    if not await runtime.current().database.read(fn):
        raise SupersededAttempt(
            f"Attempt {claim.attempt} of run {claim.run_id} no longer owns the run"
        )
