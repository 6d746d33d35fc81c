"""Recovery: return runs without a worker to the queue, a page at a time."""

from collections.abc import Collection
from functools import partial

import structlog

from langgraph_runtime_sql import alive, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.ops.runs import claim as run_claim

logger = structlog.stdlib.get_logger(__name__)

# Runs per transaction.
PAGE_SIZE = 50


async def recover() -> list[str]:
    """Recover the lost runs of earlier processes at start-up, and return their ids."""
    freed: list[str] = []
    after: int | None = 0
    include: run_claim.Include = "all"
    if not runtime.current().database.alone:
        include = "ended"
        await end_leases_of_the_dead()
    while after is not None:
        some, after = await free_some((), include, after)
        freed += some
    return freed


async def end_leases_of_the_dead() -> None:
    """End the leases of processes of this machine that have certainly ended.

    A process that only lost the database keeps its leases: it may still execute nodes.
    """
    database = runtime.current().database
    found = await database.read(run_claim.others)
    if dead := [owner for owner in found if alive.has_ended(owner)]:
        await database.write(partial(run_claim.end_leases, owners=dead), urgent=True)


async def next_lease_end() -> float | None:
    """Return the seconds until the first lease of another process ends, or None without one.

    It is negative if the lease has ended.
    """

    def fn(conn: Connection) -> float | None:
        ends = run_claim.others(conn).values()
        return (min(ends) - conn.now()).total_seconds() if ends else None

    return await runtime.current().database.read(fn)


async def free_some(
    working: Collection[str], include: run_claim.Include, after: int, *, counted: bool = True
) -> tuple[list[str], int | None]:
    """Recover a page of lost runs.

    Args:
        working, include, after: As for `claim.lost`.
        counted: As for `claim.release`.

    Returns:
        The ids of the recovered runs, and the number to continue after, or None at the end.
    """
    database = runtime.current().database
    page = partial(run_claim.lost, working=working, include=include, after=after, limit=PAGE_SIZE)
    numbers, last = await database.read(page)
    free = partial(run_claim.recover, working=working, include=include, counted=counted)
    if not numbers:
        return [], last
    try:
        together = partial(free, first=numbers[0], last=numbers[-1])
        return await database.write(together, urgent=True), last
    except Exception as error:  # noqa: BLE001  # the loop below logs the failing run
        logger.warning("Recovery of a page failed, recovering each run", why=type(error).__name__)
    freed: list[str] = []
    for number in numbers:
        try:
            freed += await database.write(partial(free, first=number, last=number), urgent=True)
        except Exception:
            logger.exception("Recovery of a run failed", action="recovery_failed", number=number)
    return freed, last
