"""Jobs: enrich candidates while the user waits, or in a background run.

A rule and an ICP have at most one job, however often it is requested (`enrichment_jobs` has a
unique key). The row names the thread that works on the job; runs on other threads must not. If the
run has failed, was cancelled or is gone, the next request restarts the job. Candidates that are
already enriched stay enriched.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from sqlalchemy import Connection, Row, Update, insert, select, update

from my_agent.icp_finder.enrichment import background
from my_agent.icp_finder.enrichment.background import JobError
from my_agent.icp_finder.enrichment.enriching import enrich
from my_agent.icp_finder.model import Candidate, Company, DiscoveryKey, Failure, Icp, Job
from my_agent.icp_finder.records.store import (
    asked_for,
    candidate,
    find_candidates,
    now,
    save_details,
    stored_feedback,
)
from my_agent.icp_finder.records.tables import jobs
from my_agent.icp_finder.search import likeness
from my_agent.icp_finder.search.scoring import FEEDBACK, score
from my_agent.tables import run
from my_agent.user import User, caller
from threadhold.tables import lock

__all__ = ["JobError", "enqueue", "enrich_now", "find", "stop"]

# Websites that are read concurrently while the user waits.
MAX_CONCURRENT = 5
# Until the run is created, the row has no run id. After this time the start is considered failed.
START_TIMEOUT = timedelta(seconds=60)
# A user cannot see another user's run, only updates of the job's row. Without an update for this
# time, the run is considered dead.
SILENCE_TIMEOUT = timedelta(minutes=10)


async def find(tenant_id: str, rule_name: str, icp_hash: str) -> Job | None:
    """Return the job with this `DiscoveryKey`, or None."""
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)

    def work(connection: Connection) -> Job | None:
        row = _find(connection, of)
        if row is None:
            return None
        # Not as the last step has stored it: the candidate of that step may have been tried since.
        step = _step(connection, row)
        return replace(_job(row), done=step.done, failures=step.failures)

    return await run(work, tenant_id)


async def enrich_now(
    tenant_id: str, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> list[Candidate]:
    """Enrich candidates concurrently, and return them. Unknown ones are left out.

    Candidates that are already enriched are skipped. Those that could not be read before are tried
    again. Each result is a progress event.
    """
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)

    def read(connection: Connection) -> dict[str, Row[Any]]:
        return find_candidates(connection, of, keys)

    due = [row for row in (await run(read, tenant_id)).values() if row.enriched_at is None]
    free, done = asyncio.Semaphore(MAX_CONCURRENT), itertools.count(1)

    async def one(row: Row[Any]) -> None:
        async with free:
            details = await _enrich(of, candidate(row))
        _emit(row.key, row.name, details, next(done), len(due))

    await asyncio.gather(*map(one, due))
    rows = await run(read, tenant_id)
    return [candidate(rows[key]) for key in dict.fromkeys(keys) if key in rows]


async def enqueue(
    config: RunnableConfig, *, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> Job:
    """Enrich candidates in the background. Repeated calls use the same job.

    New candidates are added to the job. A finished job restarts if any of the candidates is not
    enriched. The job belongs to the user of the calling run.

    Raises:
        JobError: the run cannot be started.
    """
    user = caller(config)
    of = DiscoveryKey(user.tenant_id, rule_name, icp_hash)

    def claim(dead: Row[Any] | None = None) -> Awaitable[tuple[Row[Any], bool]]:
        return run(lambda c: _claim(c, of, user, keys, dead), of.tenant_id, write=True)

    row, starts_run = await claim()
    if not starts_run and not await _is_alive(row, user):
        row, starts_run = await claim(dead=row)
    if not starts_run:
        return _job(row)
    # Of a restarted job, what is enriched already is done.
    due = await find(*of) or _job(row)
    try:
        run_id = await background.start(row.job_id, row.thread_id)
    except JobError as error:
        await _note(*_working(row), status="failed", reason=str(error))
        raise
    await _note(*_working(row), run_id=run_id)
    return replace(due, created=True)


async def stop(tenant_id: str, rule_name: str, icp_hash: str) -> bool:
    """Stop the job with this `DiscoveryKey`, and return whether it was under way.

    What is enriched stays enriched. The next request goes on with the rest.
    """
    of = DiscoveryKey(tenant_id, rule_name, icp_hash)
    row = await run(lambda connection: _find(connection, of), tenant_id)
    if row is None or row.status not in ("queued", "running"):
        return False
    if row.run_id is not None:
        await background.cancel(row.thread_id, row.run_id)
    # Also if the run does not answer: its next step finds the job with another thread.
    end = {"status": "cancelled", "thread_id": str(uuid4()), "run_id": None}
    await _note(*_working(row), **end)
    return True


# --- steps of the background run ---------------------------------------------


@dataclass(frozen=True)
class Step:
    """The next step of a job."""

    of: DiscoveryKey  # of the candidates
    candidate: Candidate | None  # the next one; None if all are tried
    done: int  # number of candidates that were tried or are enriched
    total: int
    failures: Sequence[Failure]  # candidates that were tried and could not be enriched


async def next_step(tenant_id: str, job_id: str, thread_id: str, run_id: str | None) -> Step:
    """Return the next step of a job for a run on a thread. Without a candidate the job is done.

    The job's row is updated.

    Raises:
        JobError: the tenant has no such job, or the job belongs to another thread.
    """

    def work(connection: Connection) -> Step:
        ask = select(jobs).filter_by(tenant_id=tenant_id, job_id=job_id).with_for_update()
        row = connection.execute(ask).first()
        if row is None or row.thread_id != thread_id:
            raise JobError("The job does not exist, or another thread has restarted it.")
        step = _step(connection, row)
        status = "running" if step.candidate else "done"
        # The process that started the run may have crashed before it stored the run's id.
        changes = {"status": status, "done": step.done, "reason": None, "run_id": run_id}
        connection.execute(_updating(tenant_id, job_id, thread_id, **changes))
        return step

    return await run(work, tenant_id, write=True)


async def enrich_step(step: Step) -> None:
    """Enrich the candidate of a step, and send a progress event."""
    if (target := step.candidate) is not None:
        details = await _enrich(step.of, target, patient=True)
        _emit(target.key, target.name, details, step.done + 1, step.total)


@asynccontextmanager
async def recording_the_end(tenant_id: str, job_id: str, thread_id: str) -> AsyncIterator[None]:
    """Record in the job's row if the enclosed code fails or is cancelled."""
    job = (tenant_id, job_id, thread_id)
    try:
        yield
    except asyncio.CancelledError:
        await asyncio.shield(_note(*job, status="cancelled", reason=None))
        raise
    except Exception as error:
        await _note(*job, status="failed", reason=str(error) or type(error).__name__)
        raise


def _emit(key: str, name: str, details: Mapping[str, Any], done: int, total: int) -> None:
    """Send a progress event about a candidate to the streams of the run, if there is one."""
    try:
        send = get_stream_writer()
    except RuntimeError:
        # Outside of a graph, as in tests and scripts, no stream takes events.
        return
    event = {"type": "enrichment", "key": key, "name": name, "status": details["status"]}
    found = sorted({"about", "emails", "phones", "size"} & details.keys())
    why = {"note": details["note"]} if "note" in details else {"found": found}
    send({**event, **why, "done": done, "total": total})


async def _enrich(
    of: DiscoveryKey, target: Candidate, *, patient: bool = False
) -> Mapping[str, Any]:
    """Enrich a candidate, and store its details and its new score. Return the details.

    If nothing could be read, what an earlier enrichment has found stays, with the reason.
    """
    new = await enrich(target, patient=patient)
    enriched = new["status"] == "read"
    details = new if enriched else {**target.details, **new}
    known = replace(target, details=details)

    def read(connection: Connection) -> tuple[tuple[Company, Icp] | None, float]:
        return asked_for(connection, of), stored_feedback(connection, of, target.key)

    asked, feedback = await run(read, of.tenant_id)
    again = None
    # Without news the score stays.
    if asked is not None and enriched:
        [rating] = await asyncio.to_thread(likeness.measure, [known.text], asked[0])
        again = score(known, *asked, likeness=rating, feedback=feedback / FEEDBACK)

    def work(connection: Connection) -> None:
        save_details(connection, of, target.key, details, again, enriched=enriched)

    await run(work, of.tenant_id, write=True)
    return details


# --- rows -------------------------------------------------------------------


def _claim(
    connection: Connection,
    of: DiscoveryKey,
    user: User,
    keys: Sequence[str],
    dead: Row[Any] | None,
) -> tuple[Row[Any], bool]:
    """Create the job, or add to it. Restart it if its run is over or is the `dead` one.

    If several callers find the same run dead, only the first one gets the claim.

    Returns:
        The job's row, and whether the caller has to start its run.
    """
    lock(connection, f"enrichment:{':'.join(of)}")
    row, fresh = _find(connection, of), {"status": "queued", "thread_id": str(uuid4())}
    if row is None:
        first = {**of._asdict(), **fresh, "job_id": str(uuid4()), "user_id": user.user_id}
        progress = {"candidate_keys": list(dict.fromkeys(keys)), "done": 0}
        times = dict.fromkeys(("started_at", "created_at", "updated_at"), now())
        new = insert(jobs).values(**first, **progress, **times)
        return connection.execute(new.returning(jobs)).one(), True
    more = [key for key in dict.fromkeys(keys) if key not in row.candidate_keys]
    is_over = row.status in ("failed", "cancelled")
    if row.status == "done":
        # The job is due again for new candidates, and for those that could not be read.
        due = find_candidates(connection, of, keys).values()
        is_over = any(each.enriched_at is None for each in due)
        more = more if is_over else []
    starts_run = is_over or (dead is not None and row.thread_id == dead.thread_id)
    changes: dict[str, Any] = {"candidate_keys": [*row.candidate_keys, *more]} if more else {}
    if starts_run:
        again = {"run_id": None, "reason": None, "started_at": now(), "user_id": user.user_id}
        changes |= {**fresh, **again}
    if changes:
        connection.execute(_updating(*_working(row), **changes))
        row = _find(connection, of) or row
    return row, starts_run


async def _is_alive(row: Row[Any], user: User) -> bool:
    """Return whether a job is done or its run is still active."""
    if row.status == "done":
        return True
    silent = now() - row.updated_at
    if row.run_id is None:
        return bool(silent < START_TIMEOUT)
    if row.user_id != user.user_id:
        return bool(silent < SILENCE_TIMEOUT)
    return not await background.is_over(row.thread_id, row.run_id)


def _step(connection: Connection, job: Row[Any]) -> Step:
    """Return the next step of a job.

    A candidate that was tried before the current run started is tried again. A missing candidate
    was replaced by a newer search and counts as done.
    """
    of = DiscoveryKey(job.tenant_id, job.rule_name, job.icp_hash)
    found = find_candidates(connection, of, job.candidate_keys)
    started = job.started_at or job.created_at
    left, failures = [], []
    for row in (found[key] for key in job.candidate_keys if key in found):
        if row.enriched_at is not None:
            continue
        if row.tried_at is None or row.tried_at < started:
            left.append(row)
        else:
            failures.append(Failure(row.key, row.name, str(row.details.get("note", ""))))
    total = len(job.candidate_keys)
    upcoming = candidate(left[0]) if left else None
    return Step(of, upcoming, total - len(left), total, failures)


def _find(connection: Connection, of: DiscoveryKey) -> Row[Any] | None:
    return connection.execute(select(jobs).filter_by(**of._asdict())).first()


def _working(row: Row[Any]) -> tuple[str, str, str]:
    return row.tenant_id, row.job_id, row.thread_id


def _updating(tenant: str, job: str, thread: str, /, **changes: Any) -> Update:
    """Return an update of a job's row that does nothing if the job has been restarted since."""
    this = update(jobs).filter_by(tenant_id=tenant, job_id=job, thread_id=thread)
    return this.values(**changes, updated_at=now())


async def _note(tenant: str, job: str, thread: str, /, **changes: Any) -> None:
    statement = _updating(tenant, job, thread, **changes)
    await run(lambda connection: connection.execute(statement), tenant, write=True)


def _job(row: Row[Any]) -> Job:
    total = len(row.candidate_keys)
    return Job(id=row.job_id, status=row.status, created=False, done=row.done, total=total)
