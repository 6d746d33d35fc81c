"""Jobs: enrich candidates while the user waits, or in a background run.

A rule and an ICP have at most one job, however often it is requested (`enrichment_jobs` has a
unique key). The row names the thread that works on the job; runs on other threads must not. If the
run has failed, was cancelled or is gone, the next request restarts the job. Candidates that are
already enriched stay enriched.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from sqlalchemy import Connection, Row, insert, select, update

from my_agent.icp_finder.enrichment import background
from my_agent.icp_finder.enrichment.background import JobError
from my_agent.icp_finder.enrichment.enriching import enrich
from my_agent.icp_finder.model import Candidate, Company, Failure, Icp, Job
from my_agent.icp_finder.records.statements import run
from my_agent.icp_finder.records.store import (
    DiscoveryKey,
    asked_for,
    candidate,
    find_candidates,
    now,
    save_details,
    stored_feedback,
)
from my_agent.icp_finder.records.tables import jobs
from my_agent.icp_finder.search import likeness
from my_agent.icp_finder.search.scoring import FEEDBACK, score, text_of
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
    """Return the job of a rule and an ICP, or None.

    Args:
        tenant_id: the tenant.
        rule_name: the rule.
        icp_hash: hash of the ICP.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)

    def work(connection: Connection) -> Job | None:
        row = _find(connection, discovery_key)
        if row is None:
            return None
        # Not as the last step has stored it: the candidate of that step may have been tried since.
        done = len(row.candidate_keys) - len(_left(connection, row))
        return replace(_job(row), done=done, failures=_failures(connection, row))

    return await run(work, tenant_id)


async def enrich_now(
    tenant_id: str, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> list[Candidate]:
    """Enrich candidates concurrently. Candidates that are already enriched are skipped.

    Those that could not be read before are tried again. Each result is a progress event.

    Args:
        tenant_id: the tenant.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
        keys: keys of the candidates. Unknown keys are left out of the result.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    rows = await run(lambda connection: find_candidates(connection, discovery_key, keys), tenant_id)
    free = asyncio.Semaphore(MAX_CONCURRENT)

    due, done = [row for row in rows.values() if row.enriched_at is None], itertools.count(1)

    async def one(row: Row[Any]) -> None:
        async with free:
            details = await _enrich(discovery_key, candidate(row))
        emit(row.key, row.name, details, next(done), len(due))

    await asyncio.gather(*map(one, due))
    rows = await run(lambda connection: find_candidates(connection, discovery_key, keys), tenant_id)
    return [candidate(rows[key]) for key in dict.fromkeys(keys) if key in rows]


async def enqueue(
    config: RunnableConfig, *, rule_name: str, icp_hash: str, keys: Sequence[str]
) -> Job:
    """Enrich candidates in the background. Repeated calls use the same job.

    New candidates are added to the job. A finished job restarts if any of the candidates is not
    enriched.

    Args:
        config: config of the calling run; the job belongs to its user.
        rule_name: the rule of the candidates.
        icp_hash: hash of the ICP.
        keys: keys of the candidates.

    Returns:
        The job. `created` says whether this call started a run.

    Raises:
        JobError: the run cannot be started.
    """
    user = caller(config)
    discovery_key = (user.tenant_id, rule_name, icp_hash)
    claim = await run(
        lambda c: _claim(c, discovery_key, user, keys, dead=None), user.tenant_id, write=True
    )
    if not claim.starts_run and not await _is_alive(claim.row, user):
        dead = claim.row
        claim = await run(
            lambda c: _claim(c, discovery_key, user, keys, dead=dead), user.tenant_id, write=True
        )
    if not claim.starts_run:
        return _job(claim.row)
    row = claim.row
    try:
        run_id = await background.start(row.job_id, row.thread_id)
    except JobError as error:
        await run(_updating(row, status="failed", reason=str(error)), row.tenant_id, write=True)
        raise
    await run(_updating(row, run_id=run_id), row.tenant_id, write=True)
    return _job(row, created=True)


async def stop(tenant_id: str, rule_name: str, icp_hash: str) -> bool:
    """Stop the job of a rule and an ICP, and return whether one was under way.

    What is enriched stays enriched. The next request goes on with the rest.

    Args:
        tenant_id: the tenant.
        rule_name: the rule.
        icp_hash: hash of the ICP.
    """
    discovery_key = (tenant_id, rule_name, icp_hash)
    row = await run(lambda connection: _find(connection, discovery_key), tenant_id)
    if row is None or row.status not in ("queued", "running"):
        return False
    if row.run_id is not None:
        await background.cancel(row.thread_id, row.run_id)
    # Also if the run does not answer: its next step finds the job with another thread.
    end = _updating(row, status="cancelled", thread_id=str(uuid4()), run_id=None)
    await run(end, tenant_id, write=True)
    return True


# --- steps of the background run ---------------------------------------------


@dataclass(frozen=True)
class Step:
    """The next step of a job.

    Attributes:
        discovery_key: the discovery that the candidates belong to.
        candidate: the next candidate; None if all are enriched.
        done: number of candidates that were tried or are enriched.
        total: number of candidates of the job.
        failures: candidates that were tried and could not be enriched.
    """

    discovery_key: DiscoveryKey
    candidate: Candidate | None
    done: int
    total: int
    failures: Sequence[Failure] = ()


async def next_step(tenant_id: str, job_id: str, thread_id: str, run_id: str | None) -> Step:
    """Return the next step of a job, and update the job's row. Without a step the job is done.

    Args:
        tenant_id: the tenant.
        job_id: the job.
        thread_id: the thread of the run.
        run_id: the run, if it has an id.

    Raises:
        JobError: the tenant has no such job, or the job belongs to another thread.
    """

    def work(connection: Connection) -> Step:
        filters = (jobs.c.tenant_id == tenant_id, jobs.c.job_id == job_id)
        row = connection.execute(select(jobs).where(*filters).with_for_update()).first()
        if row is None or row.thread_id != thread_id:
            raise JobError("The job does not exist, or another thread has restarted it.")
        discovery_key = (row.tenant_id, row.rule_name, row.icp_hash)
        left = _left(connection, row)
        done = len(row.candidate_keys) - len(left)
        status = "running" if left else "done"
        # The process that started the run may have crashed before it stored the run's id.
        _updating(row, status=status, done=done, reason=None, run_id=run_id)(connection)
        upcoming = candidate(left[0]) if left else None
        failures = _failures(connection, row)
        return Step(discovery_key, upcoming, done, len(row.candidate_keys), failures)

    return await run(work, tenant_id, write=True)


async def enrich_step(step: Step) -> None:
    """Enrich the candidate of a step, and send a progress event."""
    if (target := step.candidate) is not None:
        details = await _enrich(step.discovery_key, target, patient=True)
        emit(target.key, target.name, details, step.done + 1, step.total)


def emit(key: str, name: str, details: Mapping[str, Any], done: int, total: int) -> None:
    """Send a progress event to the streams of the current run, if there is one.

    Args:
        key: the candidate.
        name: its name.
        details: what was found, or why nothing was.
        done: number of candidates that were tried.
        total: number of candidates to try.
    """
    try:
        send = get_stream_writer()
    except RuntimeError:
        # Outside of a graph, as in tests and scripts, no stream takes events.
        return
    event = {"type": "enrichment", "key": key, "name": name, "status": details["status"]}
    found = sorted({"about", "emails", "phones", "size"} & details.keys())
    why = {"note": details["note"]} if "note" in details else {"found": found}
    send({**event, **why, "done": done, "total": total})


@asynccontextmanager
async def recording_the_end(tenant_id: str, job_id: str, thread_id: str) -> AsyncIterator[None]:
    """Record in the job's row if the enclosed code fails or is cancelled."""

    async def note(status: str, reason: str | None) -> None:
        filters = (
            jobs.c.tenant_id == tenant_id,
            jobs.c.job_id == job_id,
            jobs.c.thread_id == thread_id,
        )
        end = update(jobs).where(*filters).values(status=status, reason=reason, updated_at=now())
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
    """A job's row, and whether the caller has to start its run."""

    row: Row[Any]
    starts_run: bool


def _claim(
    connection: Connection,
    discovery_key: DiscoveryKey,
    user: User,
    keys: Sequence[str],
    dead: Row[Any] | None,
) -> _Claim:
    """Create the job, or add to it. Restart it if its run is over or is the `dead` one.

    If several callers find the same run dead, only the first one gets the claim.
    """
    lock(connection, f"enrichment:{':'.join(discovery_key)}")
    row = _find(connection, discovery_key)
    if row is None:
        connection.execute(insert(jobs).values(**_new(discovery_key, user, keys)))
        return _Claim(_found(connection, discovery_key), starts_run=True)
    more = [key for key in dict.fromkeys(keys) if key not in row.candidate_keys]
    is_over = row.status in ("failed", "cancelled")
    if row.status == "done":
        # The job is due again for new candidates, and for those that could not be read.
        due = find_candidates(connection, discovery_key, keys).values()
        is_over = any(each.enriched_at is None for each in due)
        more = more if is_over else []
    starts_run = is_over or (dead is not None and row.thread_id == dead.thread_id)
    changes: dict[str, Any] = {"candidate_keys": [*row.candidate_keys, *more]} if more else {}
    if starts_run:
        again = {
            "status": "queued",
            "thread_id": str(uuid4()),
            "run_id": None,
            "reason": None,
            "started_at": now(),
        }
        changes = {**changes, **again, "user_id": user.user_id}
    if changes:
        _updating(row, **changes)(connection)
    return _Claim(_found(connection, discovery_key), starts_run=starts_run)


async def _is_alive(row: Row[Any], user: User) -> bool:
    """Return whether a job is done or its run is still active."""
    if row.status == "done":
        return True
    silent = now() - row.updated_at
    if row.run_id is None:
        return bool(silent < START_TIMEOUT)
    if row.user_id != user.user_id:
        return bool(silent < SILENCE_TIMEOUT)
    return await background.state(row.thread_id, row.run_id) != "over"


async def _enrich(
    discovery_key: DiscoveryKey, target: Candidate, *, patient: bool = False
) -> Mapping[str, Any]:
    """Enrich a candidate, and store its details and its new score. Return the details.

    If nothing could be read, what an earlier enrichment has found stays, with the reason.
    """
    new = await enrich(target, patient=patient)
    enriched = new["status"] == "read"
    details = new if enriched else {**target.details, **new}
    known = replace(target, details=details)
    tenant_id = discovery_key[0]

    def read(connection: Connection) -> tuple[tuple[Company, Icp] | None, float]:
        return asked_for(connection, discovery_key), stored_feedback(
            connection, discovery_key, target.key
        )

    asked, feedback = await run(read, tenant_id)
    again = None
    # Without news the score stays.
    if asked is not None and enriched:
        [rating] = await asyncio.to_thread(likeness.measure, [text_of(known)], asked[0])
        again = score(known, *asked, likeness=rating, feedback=feedback / FEEDBACK)

    def work(connection: Connection) -> None:
        save_details(connection, discovery_key, target.key, details, again, enriched=enriched)

    await run(work, tenant_id, write=True)
    return details


def _is_left(row: Row[Any], job: Row[Any]) -> bool:
    """Return whether a candidate is to be tried by the current run of a job."""
    started = job.started_at or job.created_at
    return row.enriched_at is None and (row.tried_at is None or row.tried_at < started)


def _left(connection: Connection, job: Row[Any]) -> list[Row[Any]]:
    """Return the candidates of a job that are still to be tried.

    A missing candidate was replaced by a newer search and counts as done.
    """
    discovery_key = (job.tenant_id, job.rule_name, job.icp_hash)
    found = find_candidates(connection, discovery_key, job.candidate_keys)
    keys = [key for key in job.candidate_keys if key in found]
    return [found[key] for key in keys if _is_left(found[key], job)]


def _failures(connection: Connection, job: Row[Any]) -> list[Failure]:
    """Return the candidates of a job that were tried and could not be enriched."""
    discovery_key = (job.tenant_id, job.rule_name, job.icp_hash)
    found = find_candidates(connection, discovery_key, job.candidate_keys)
    return [
        Failure(key, found[key].name, str(found[key].details.get("note", "")))
        for key in job.candidate_keys
        if key in found
        and found[key].enriched_at is None
        and found[key].tried_at is not None
        and not _is_left(found[key], job)
    ]


def _new(discovery_key: DiscoveryKey, user: User, keys: Sequence[str]) -> dict[str, Any]:
    tenant_id, rule_name, icp_hash = discovery_key
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
        "started_at": now(),
        "created_at": now(),
        "updated_at": now(),
    }


def _find(connection: Connection, discovery_key: DiscoveryKey) -> Row[Any] | None:
    tenant_id, rule_name, icp_hash = discovery_key
    filters = (
        jobs.c.tenant_id == tenant_id,
        jobs.c.icp_hash == icp_hash,
        jobs.c.rule_name == rule_name,
    )
    return connection.execute(select(jobs).where(*filters)).first()


def _found(connection: Connection, discovery_key: DiscoveryKey) -> Row[Any]:
    row = _find(connection, discovery_key)
    if row is None:
        raise LookupError("The job row is missing directly after it was written")
    return row


def _updating(row: Row[Any], **changes: Any) -> Callable[[Connection], None]:
    """Return an update of the job's row that does nothing if the job has been restarted since."""
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
