"""Jobs: candidates enriched while the user waits, and many more in a background run.

There is one job for what was asked for under one rule (`enrichment_jobs` has a unique key), however
often it is asked for. The row says which thread works on it; a run on any other may not. Where the
run has failed, was cancelled or is gone, whoever asks next starts the job again: what is enriched
stays so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from sqlalchemy import Connection, Row, insert, select, update

from my_agent.database import lock
from my_agent.icp_finder import background
from my_agent.icp_finder.background import JobError
from my_agent.icp_finder.enriching import enrich
from my_agent.icp_finder.model import Candidate, Job
from my_agent.icp_finder.records import (
    Which,
    asked_for,
    candidate,
    find_candidates,
    now,
    save_details,
)
from my_agent.icp_finder.scoring import score
from my_agent.icp_finder.statements import run
from my_agent.icp_finder.tables import jobs
from my_agent.user import User, caller

__all__ = ["JobError", "enqueue", "enrich_now", "find"]

# Websites that are read at a time while the user waits.
AT_ONCE = 5
# Starting a run takes a moment, in which the row names none.
STARTING = timedelta(seconds=60)
# Who may not see the run of another user can only see that the job goes on.
SILENT = timedelta(minutes=10)


async def find(tenant_id: str, rule_name: str, icp_hash: str) -> Job | None:
    """The job for what was asked for under a rule, as it is now.

    Args:
        tenant_id: whose.
        rule_name: the rule.
        icp_hash: of what was asked for.
    """
    row = await run(
        lambda connection: _find(connection, (tenant_id, rule_name, icp_hash)), tenant_id
    )
    return None if row is None else _job(row)


async def enrich_now(
    tenant_id: str, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> list[Candidate]:
    """Enrich candidates, a few at a time; what is enriched already is not done again.

    Args:
        tenant_id: whose.
        rule_name: the rule that they were found for.
        icp_hash: of what was asked for.
        keys: of the candidates; those that are not there are left out of the answer.
    """
    which = (tenant_id, rule_name, icp_hash)
    rows = await run(lambda connection: find_candidates(connection, which, keys), tenant_id)
    free = asyncio.Semaphore(AT_ONCE)

    async def one(row: Row[Any]) -> None:
        async with free:
            await _enrich(which, candidate(row))

    await asyncio.gather(*(one(row) for row in rows.values() if row.enriched_at is None))
    rows = await run(lambda connection: find_candidates(connection, which, keys), tenant_id)
    return [candidate(rows[key]) for key in dict.fromkeys(keys) if key in rows]


async def enqueue(
    config: RunnableConfig, *, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> Job:
    """Have candidates enriched in the background; once, however often it is asked for.

    Candidates that the job does not have yet are added to it. One that is done starts again where
    any of them is not enriched.

    Args:
        config: of the run that asks; the job is its user's.
        rule_name: the rule that they were found for.
        icp_hash: of what was asked for.
        keys: of the candidates.

    Returns:
        The job; it is `created` if this call has started its run.

    Raises:
        JobError: no run can be started here.
    """
    user = caller(config)
    which = (user.tenant_id, rule_name, icp_hash)
    claim = await run(lambda c: _claim(c, which, user, keys, dead=None), user.tenant_id, write=True)
    if not claim.mine and not await _is_alive(claim.row, user):
        dead = claim.row
        claim = await run(
            lambda c: _claim(c, which, user, keys, dead=dead), user.tenant_id, write=True
        )
    if not claim.mine:
        return _job(claim.row)
    row = claim.row
    try:
        run_id = await background.start(row.job_id, row.thread_id)
    except JobError as error:
        await run(_setting(row, status="failed", reason=str(error)), row.tenant_id, write=True)
        raise
    await run(_setting(row, run_id=run_id), row.tenant_id, write=True)
    return _job(row, created=True)


# --- what the background run does -------------------------------------------


@dataclass(frozen=True)
class Step:
    """What is next in a job.

    Attributes:
        which: whose candidates.
        candidate: the next one; None: all are done.
        done: how many are, of `total`.
    """

    which: Which
    candidate: Candidate | None
    done: int
    total: int


async def next_step(tenant_id: str, job_id: str, thread_id: str, run_id: str | None) -> Step:
    """What a job's run does next; where all is done, the job is.

    Args:
        tenant_id: whose.
        job_id: the job.
        thread_id: of the run.
        run_id: the run, if it has an id.

    Raises:
        JobError: there is no such job, or it is another thread's.
    """

    def work(connection: Connection) -> Step:
        mine = (jobs.c.tenant_id == tenant_id, jobs.c.job_id == job_id)
        row = connection.execute(select(jobs).where(*mine).with_for_update()).first()
        if row is None or row.thread_id != thread_id:
            raise JobError("There is no such job, or it has been started again elsewhere.")
        which = (row.tenant_id, row.rule_name, row.icp_hash)
        found = find_candidates(connection, which, row.candidate_keys)
        # One that is not found any more was replaced by a new search, and counts as done.
        left = [
            key for key in row.candidate_keys if key in found and found[key].enriched_at is None
        ]
        done = len(row.candidate_keys) - len(left)
        status = "running" if left else "done"
        # Who has started the run may have died before it could write down which it is.
        _setting(row, status=status, done=done, reason=None, run_id=run_id)(connection)
        upcoming = candidate(found[left[0]]) if left else None
        return Step(which, upcoming, done, len(row.candidate_keys))

    return await run(work, tenant_id, write=True)


async def take(step: Step) -> None:
    """Enrich the step's candidate."""
    if step.candidate is not None:
        await _enrich(step.which, step.candidate)


@asynccontextmanager
async def noting_the_end(tenant_id: str, job_id: str, thread_id: str) -> AsyncIterator[None]:
    """Has the job's row say that its run was cancelled or has failed, if it does so in here."""

    async def note(status: str, reason: str | None) -> None:
        mine = (
            jobs.c.tenant_id == tenant_id,
            jobs.c.job_id == job_id,
            jobs.c.thread_id == thread_id,
        )
        end = update(jobs).where(*mine).values(status=status, reason=reason, updated_at=now())
        await run(lambda connection: connection.execute(end), tenant_id, write=True)

    try:
        yield
    except asyncio.CancelledError:
        await asyncio.shield(note("cancelled", None))
        raise
    except Exception as error:
        await note("failed", str(error) or type(error).__name__)
        raise


# --- rows -------------------------------------------------------------------


@dataclass(frozen=True)
class _Claim:
    """A job's row, and whether its run is now mine to start."""

    row: Row[Any]
    mine: bool


def _claim(
    connection: Connection, which: Which, user: User, keys: Sequence[str], dead: Row[Any] | None
) -> _Claim:
    """Make the job, or add to it; start it again if its run is over, or is `dead`.

    Of several who find the same run dead only the first gets it.
    """
    lock(connection, f"enrichment:{':'.join(which)}")
    row = _find(connection, which)
    if row is None:
        connection.execute(insert(jobs).values(**_new(which, user, keys)))
        return _Claim(_found(connection, which), mine=True)
    more = [key for key in dict.fromkeys(keys) if key not in row.candidate_keys]
    is_over = row.status in ("failed", "cancelled")
    if row.status == "done":
        # New ones, and those that a later search has found again.
        due = find_candidates(connection, which, keys).values()
        is_over = any(each.enriched_at is None for each in due)
        more = more if is_over else []
    mine = is_over or (dead is not None and row.thread_id == dead.thread_id)
    changes: dict[str, Any] = {"candidate_keys": [*row.candidate_keys, *more]} if more else {}
    if mine:
        again = {"status": "queued", "thread_id": str(uuid4()), "run_id": None, "reason": None}
        changes = {**changes, **again, "user_id": user.user_id}
    if changes:
        _setting(row, **changes)(connection)
    return _Claim(_found(connection, which), mine=mine)


async def _is_alive(row: Row[Any], user: User) -> bool:
    """Whether a job is done, or somebody is at it."""
    if row.status == "done":
        return True
    silent = now() - row.updated_at
    if row.run_id is None:
        return bool(silent < STARTING)
    if row.user_id != user.user_id:
        return bool(silent < SILENT)
    return await background.state(row.thread_id, row.run_id) != "over"


async def _enrich(which: Which, who: Candidate) -> None:
    """Find a candidate's details and keep them, with the score that they make."""
    details = await enrich(who)
    known = replace(who, details=details)

    def work(connection: Connection) -> None:
        asked = asked_for(connection, which)
        again = None if asked is None else score(known, *asked)
        save_details(connection, which, who.key, details, again)

    await run(work, which[0], write=True)


def _new(which: Which, user: User, keys: Sequence[str]) -> dict[str, Any]:
    tenant_id, rule_name, icp_hash = which
    return {
        "job_id": str(uuid4()),
        "tenant_id": tenant_id,
        "user_id": user.user_id,
        "rule_name": rule_name,
        "icp_hash": icp_hash,
        "status": "queued",
        "candidate_keys": list(dict.fromkeys(keys)),
        "done": 0,
        "thread_id": str(uuid4()),
        "created_at": now(),
        "updated_at": now(),
    }


def _find(connection: Connection, which: Which) -> Row[Any] | None:
    tenant_id, rule_name, icp_hash = which
    mine = (
        jobs.c.tenant_id == tenant_id,
        jobs.c.icp_hash == icp_hash,
        jobs.c.rule_name == rule_name,
    )
    return connection.execute(select(jobs).where(*mine)).first()


def _found(connection: Connection, which: Which) -> Row[Any]:
    row = _find(connection, which)
    if row is None:
        raise LookupError("The job that was just written is not there")
    return row


def _setting(row: Row[Any], **changes: Any) -> Callable[[Connection], None]:
    """Change a job, unless it has been started again since."""
    same = (jobs.c.job_id == row.job_id, jobs.c.thread_id == row.thread_id)
    statement = update(jobs).where(*same).values(**changes, updated_at=now())

    def work(connection: Connection) -> None:
        connection.execute(statement)

    return work


def _job(row: Row[Any], *, created: bool = False) -> Job:
    return Job(
        id=row.job_id,
        status=row.status,
        created=created,
        done=row.done,
        total=len(row.candidate_keys),
    )
