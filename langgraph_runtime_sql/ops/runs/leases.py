"""Leases: check that an attempt still owns its run before it publishes.

After a pause, the leases of a process may have expired and other processes may have claimed its
runs. The database refuses its writes. This module refuses its events.
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
        began: When its write began, by `clock.elapsed`.
        held: The runs and attempts whose leases it renewed.
    """

    began: float = 0.0
    held: frozenset[tuple[str, int]] = frozenset()


def is_sure(claim: Claim) -> bool:
    """Return whether the lease of an attempt is certainly valid, without a query."""
    current = runtime.current()
    if current.database.alone:
        return True
    renewal = Renewal() if current.queue is None else current.queue.renewal
    is_renewed = (claim.run_id, claim.attempt) in renewal.held
    since = max(claim.since, renewal.began if is_renewed else 0.0)
    return elapsed() - since < run_claim.LEASE_SECONDS


async def check(claim: Claim) -> None:
    """Check that an attempt still owns its run.

    Raises:
        SupersededAttempt: another attempt owns it, or the run has ended.
    """
    if is_sure(claim):
        return

    def fn(conn: Connection) -> bool:
        return is_held(conn, claim.run_id, claim.attempt, claim.owner)

    if not await runtime.current().database.read(fn):
        raise SupersededAttempt(
            f"Attempt {claim.attempt} of run {claim.run_id} no longer owns the run"
        )
