"""Lost runs: those whose worker is gone, freed a page at a time so that another may claim them."""

from collections.abc import Collection
from functools import partial

import structlog

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.ops.runs import claim as run_claim

logger = structlog.stdlib.get_logger(__name__)

# So many in a transaction.
TOGETHER = 50


async def recover() -> list[str]:
    """At start-up: take back the runs that the last process was working on; their ids."""
    freed: list[str] = []
    after: int | None = 0
    whose: run_claim.Whose = "all" if runtime.current().database.alone else "ended"
    while after is not None:
        some, after = await free_some((), whose, after)
        freed += some
    return freed


async def free_some(
    working: Collection[str], whose: run_claim.Whose, after: int, *, counted: bool = True
) -> tuple[list[str], int | None]:
    """Free a page of lost runs: their ids, and the last one looked at if there may be more."""
    here = runtime.current().database
    page = partial(run_claim.lost, working=working, whose=whose, after=after, limit=TOGETHER)
    numbers, last = await here.read(page)
    free = partial(run_claim.recover, working=working, whose=whose, counted=counted)
    if not numbers:
        return [], last
    try:
        together = partial(free, first=numbers[0], last=numbers[-1])
        return await here.write(together, urgent=True), last
    except Exception as error:  # noqa: BLE001  # said in full for whichever it is, below
        logger.warning("Freeing lost runs one by one", why=str(error))
    freed: list[str] = []
    for number in numbers:
        try:
            freed += await here.write(partial(free, first=number, last=number), urgent=True)
        except Exception:
            logger.exception("Cannot free a lost run", action="recovery_failed", number=number)
    return freed, last
