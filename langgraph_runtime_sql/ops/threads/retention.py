"""Retention of threads: delete checkpoints that `sql.retention.checkpoints` does not keep.

A pass goes through all threads in small steps, beside requests and runs. A thread with a run in
flight is passed over: the run may start from any of its checkpoints.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import bindparam, or_, select

from langgraph_runtime_sql.checkpoint import retention
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.gate import entries
from langgraph_runtime_sql.gate.operations import THREAD_PRUNE
from langgraph_runtime_sql.retention_rules import KeepRule, rule_of
from langgraph_runtime_sql.statuses import ThreadStatus

logger = structlog.stdlib.get_logger(__name__)

# Seconds between two passes, and the rest after each step of a pass.
PASS_SECONDS, REST_SECONDS = 300.0, 0.05
# Threads that one step reads.
PAGE = 200

_FIRST = UUID(int=0)
_c = threads.c
_NEXT = Prepared(
    select(_c.thread_id, _c.metadata)
    .where(_c.thread_id > bindparam("after"))
    .order_by(_c.thread_id)
    .limit(PAGE)
)
_in_flight = select(runs.c.run_id).where(
    runs.c.thread_id == _c.thread_id,
    or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL),
)
_AT_REST = Prepared(
    select(_c.thread_id, _c.tenant, _c.metadata)
    .where(
        _c.thread_id == bindparam("thread"), _c.status != ThreadStatus.BUSY, ~_in_flight.exists()
    )
    # A locked thread is in use.
    .with_for_update(key_share=True, skip_locked=True)
)


async def sweep(database: Database, rules: Sequence[KeepRule]) -> None:
    """Apply the rules to all threads, with rests."""
    if deleted := await apply(database, rules, rest=REST_SECONDS):
        logger.info("Old checkpoints deleted", action="checkpoints_expired", count=deleted)


async def apply(database: Database, rules: Sequence[KeepRule], *, rest: float = 0.0) -> int:
    """Apply the rules to all threads once, and return how many checkpoints were deleted.

    Args:
        database: The database, with all tenants in scope.
        rules: The rules; the first matching rule applies.
        rest: Seconds between two steps.
    """
    deleted, after = 0, _FIRST
    while page := await database.read(lambda conn, at=after: conn.fetchall(_NEXT, {"after": at})):  # type: ignore[misc]
        for row in page:
            if rule_of(rules, row["metadata"]) is None:
                continue
            while count := await database.write(partial(_thin, row["thread_id"], rules)):
                deleted += count
                await asyncio.sleep(rest)
        after = page[-1]["thread_id"]
        await asyncio.sleep(rest)
    return deleted


def at_rest(conn: Connection, thread_id: UUID) -> Row | None:
    """Return a thread that no run uses and no other transaction locks."""
    return conn.fetchone(_AT_REST, {"thread": thread_id})


def _thin(thread_id: UUID, rules: Sequence[KeepRule], conn: Connection) -> int:
    """Delete some checkpoints of a thread, unless it is in use."""
    row = at_rest(conn, thread_id)
    rule = None if row is None else rule_of(rules, row["metadata"])
    if row is None or rule is None:
        return 0
    count = retention.thin(conn, str(thread_id), rule)
    if count:
        entries.record(conn, THREAD_PRUNE, thread_id, tenant=row["tenant"])
    return count
