"""Runs of tenants in the queue, without HTTP and users."""

import asyncio
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops.assistants.assistants import system_id
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import create as run_create
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.runs.turns import TenantRotation
from langgraph_runtime_sql.runtime import current
from tests.support import runtime

KEY = "org"


async def api_kwargs() -> dict[str, Any]:
    """Return the arguments that the API derives from a request for a run."""
    made = await runtime.start_run(None, "echo", {"value": 1}, after_seconds=3600)
    await Runs.cancel(None, [made["run_id"]], thread_id=made["thread_id"])
    return {**made["kwargs"], "config": {}, "temporary": False}


def request(
    tenant: str | None,
    thread: UUID,
    kwargs: dict[str, Any],
    *,
    user: str | None = None,
    graph: str = "echo",
    firing: Any = None,
) -> run_create.RunRequest:
    """Return a request for a run of a tenant, as the API makes it."""
    return run_create.RunRequest(
        assistant_id=system_id(graph),
        run_id=uuid4(),
        thread_id=thread,
        kwargs=kwargs,
        metadata={} if tenant is None else {KEY: tenant},
        status="pending",
        multitask_strategy="enqueue",
        reject_if_in_flight=False,
        create_thread=True,
        after_seconds=0,
        user_id=None,
        langsmith_session_name=None,
        threads=reads.ALL,
        assistants=reads.ALL,
        caller=Caller(identity=user),
        firing=firing,
        checked_graph=None,
    )


async def queue_runs(
    tenant: str | None,
    count: int,
    thread: UUID | None = None,
    input: Any = None,
    **options: Any,
) -> list[UUID]:
    """Queue runs of a tenant, each on a new thread unless one is given.

    Args:
        options: As for `request`.
    """

    kwargs = await api_kwargs()
    if input is not None:
        kwargs["input"] = input

    def fn(number: int, conn: Connection) -> list[UUID]:
        asked = [request(tenant, thread or uuid4(), kwargs, **options) for _ in range(number)]
        for each in asked:
            run_create.create(conn, each)
        return [each.run_id for each in asked]

    parts = [partial(fn, min(500, count - start)) for start in range(0, count, 500)]
    made = await asyncio.gather(*(current().database.write(part) for part in parts))
    return [run_id for part in made for run_id in part]


async def claim(
    db: Database, limit: int, rotation: TenantRotation | None = None, *, reserved: int = 0
) -> list[str | None]:
    """Claim runs as the queue does: again as long as a claim leaves some out.

    Returns:
        The tenants of the runs, in the order of their starts.
    """
    rotation = rotation or TenantRotation()
    found: list[str | None] = []
    while len(found) < limit:
        free = limit - len(found)
        claimed = await db.write(
            lambda conn: run_claim.claim(conn, free, rotation, reserved=reserved)  # noqa: B023
        )
        found += [run["tenant"] for run, _ in claimed.runs]
        if claimed.due_in != 0:
            break
    return found


async def count(tenant: str, status: str) -> int:
    statement = select(func.count().label("n")).where(
        runs.c.tenant == tenant, runs.c.status == status
    )
    found: int = await current().database.read(lambda conn: conn.scalar(statement))
    return found
