"""Processes that share the runs of a database: owners of leases, clocks and fences."""

import asyncio
import datetime as dates
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from langgraph_runtime_sql import checkpoint, clock, migrations, request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres import engine as postgres
from langgraph_runtime_sql.database.postgres import stuck_transactions
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import DatabaseOverloaded, SupersededAttempt
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.ops.runs import (
    claim as run_claim,
)
from langgraph_runtime_sql.ops.runs import (
    end as run_end,
)
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.runs import (
    result as run_result,
)
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.end import sweep_ttl
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.retry import OVERLOADED_EXCEPTIONS, retry_db
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.statuses import RunStatus
from langgraph_runtime_sql.store.store import Store
from tests.support import runtime
from tests.support.operations import rows
from tests.support.runtime import opened, register, set_options, start_run, status, working
from tests.support.streams import of_run

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.only("postgresql"),
    pytest.mark.graphs("echo", "sleeper"),
]

HOUR = dates.timedelta(hours=1)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with opened(tmp_path / "x.db", shared=True) as found:
        await register(["echo", "sleeper"])
        yield found


class Process:
    """A process as the queue sees it: an owner name and a clock, which may be wrong."""

    def __init__(
        self, patch: pytest.MonkeyPatch, name: str, off: dates.timedelta = dates.timedelta()
    ) -> None:
        self._patch, self.name = patch, name

        class Clock(dates.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return dates.datetime.now(tz) + off

        self._clock = Clock

    def enter(self) -> None:
        """Act as this process from now on."""
        self._patch.setattr(run_claim, "OWNER", self.name)
        self._patch.setattr(clock, "datetime", self._clock)
        self._patch.setattr(clock, "_last", dates.datetime.min.replace(tzinfo=dates.UTC))

    async def claim(self, most: int = 1) -> list[tuple[UUID, int]]:
        """Claim runs. Return each run's id and attempt."""
        self.enter()
        claimed = await current().database.write(lambda conn: run_claim.claim(conn, most))
        return [(run["run_id"], attempt) for run, attempt in claimed.runs]

    async def release(self, run_id: UUID, attempt: int) -> bool:
        """Hand a run back without counting the attempt."""
        self.enter()

        def fn(conn: Connection) -> bool:
            return run_claim.release(conn, run_id, attempt, counted=False, owner=self.name)

        return await current().database.write(fn)

    async def recover(self) -> list[str]:
        """Free lost runs as a starting process does, with a new owner name."""
        self.enter()
        self._patch.setattr(run_claim, "OWNER", uuid4().hex)
        return await recovery.recover()


async def row(run_id: UUID) -> Row:
    def fn(conn: Connection) -> Row | None:
        return conn.fetchone(select(runs).where(runs.c.run_id == run_id))

    found = await current().database.read(fn)
    assert found is not None
    return found


async def expire(run_id: UUID) -> None:
    """Expire the lease of a run."""
    past = dates.datetime.now(dates.UTC) - HOUR

    def fn(conn: Connection) -> None:
        conn.execute(runs.update().where(runs.c.run_id == run_id).values(lease_until=past))

    await current().database.write(fn)


async def test_process_releases_only_its_own_attempts(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shutdown counts no attempt, so the next attempt has the same number."""
    first, second = Process(monkeypatch, "first"), Process(monkeypatch, "second")
    run_id = (await start_run(uuid4(), "echo", {}))["run_id"]
    assert await first.claim() == [(run_id, 1)]
    assert await first.release(run_id, 1)
    assert await second.claim() == [(run_id, 1)]
    assert not await first.release(run_id, 1)
    assert await status(run_id) == RunStatus.RUNNING
    assert (await row(run_id))["claimed_by"] == "second"
    assert await second.release(run_id, 1)


# --- clocks


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_process_with_a_wrong_clock_neither_steals_nor_loses_runs(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, off: dates.timedelta
) -> None:
    right, wrong = Process(monkeypatch, "right"), Process(monkeypatch, "wrong", off)
    theirs = (await start_run(uuid4(), "echo", {}))["run_id"]
    assert await right.claim() == [(theirs, 1)]
    assert await wrong.recover() == []
    wrong.enter()
    ours = (await start_run(uuid4(), "echo", {}))["run_id"]
    assert await wrong.claim() == [(ours, 1)]
    await db.write(run_claim.renew_held)
    assert await right.recover() == []
    leases = [(await row(run_id))["lease_until"] for run_id in (theirs, ours)]
    assert abs(leases[0] - leases[1]) < HOUR / 2
    # Both processes find a run that is really lost.
    await expire(theirs)
    assert await wrong.recover() == [str(theirs)]
    await expire(ours)
    assert await right.recover() == [str(ours)]


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_runs_created_with_a_wrong_clock_are_due_at_once_and_in_order(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, off: dates.timedelta
) -> None:
    right, wrong = Process(monkeypatch, "right"), Process(monkeypatch, "wrong", off)
    thread = uuid4()
    made = []
    for process in (right, wrong, right, wrong):
        process.enter()
        run = await start_run(thread, "echo", {}, multitask_strategy="enqueue")
        made.append(run["run_id"])
    wrong.enter()
    later = await start_run(uuid4(), "echo", {}, after_seconds=1800)
    for run_id in made:
        assert await right.claim(9) == [(run_id, 1)]
        await db.write(
            lambda conn, done=run_id: conn.execute(  # type: ignore[misc]
                runs.update().where(runs.c.run_id == done).values(status="success")
            )
        )
    assert await right.claim(9) == await wrong.claim(9) == []
    assert await status(later["run_id"]) == RunStatus.PENDING


async def end_for_another(monkeypatch: pytest.MonkeyPatch, process: Process) -> Row:
    """End a stateless run in `process` while its creator waits on another process."""
    here = current().bus
    monkeypatch.setattr(here.wires, "shared", True)
    monkeypatch.setattr(here.followers, "follows", lambda run_id: True)
    made: Row = await start_run(None, "echo", {})
    [(run_id, attempt)] = await process.claim()
    # The creator waits on another process.
    monkeypatch.setattr(here, "name", f"not {here.name}")
    thread_id = made["thread_id"]
    request_context.claim.set(Claim(str(run_id), attempt, str(thread_id), owner=process.name))
    await Threads.delete(None, thread_id)
    request_context.claim.set(None)
    return made


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_result_is_kept_equally_long_with_a_wrong_clock(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, off: dates.timedelta
) -> None:
    run = await end_for_another(monkeypatch, Process(monkeypatch, "wrong", off))
    assert await sweep_ttl() == (0, 0)
    assert await status(run["run_id"]) == "success"
    moment = await db.read(lambda conn: conn.now())
    kept = (await runtime.thread(run["thread_id"]))["expires_at"] - moment
    assert dates.timedelta() < kept <= run_result.KEEP


# --- the fence


async def superseded(monkeypatch: pytest.MonkeyPatch, thread: UUID | None) -> tuple[Row, Claim]:
    """Return a run that another process took over, and the claim of the superseded attempt."""
    first, second = Process(monkeypatch, "first"), Process(monkeypatch, "second")
    made = await start_run(thread, "echo", {})
    [(run_id, attempt)] = await first.claim()
    held = Claim(
        str(run_id),
        attempt,
        None if thread else str(made["thread_id"]),
        # The process was stopped for longer than its lease.
        clock.elapsed() - run_claim.LEASE_SECONDS,
        "first",
    )
    await expire(run_id)
    assert await second.recover() == [str(run_id)]
    assert await second.claim() == [(run_id, attempt + 1)]
    first.enter()
    return made, held


async def refused(held: Claim, *writes: Any) -> None:
    """Check that each of these writes is refused for a superseded attempt."""
    request_context.claim.set(held)
    for write in writes:
        with pytest.raises(SupersededAttempt):
            await write
    request_context.claim.set(None)


async def test_superseded_attempt_cannot_write(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = await superseded(monkeypatch, uuid4())
    run_id, thread_id = run["run_id"], run["thread_id"]
    before = await row(run_id), await runtime.thread(thread_id)
    ends = [
        Threads.set_joint_status(None, thread_id, run_id, status, "echo", None, error)
        for status, error in (
            ("success", None),
            ("error", ValueError("no")),
            ("timeout", TimeoutError()),
            ("interrupted", None),
            ("rollback", None),
        )
    ]
    where: Any = {"configurable": {"thread_id": str(thread_id), "checkpoint_ns": ""}}
    writes: Any = {"configurable": {**where["configurable"], "checkpoint_id": "1"}}
    from langgraph.checkpoint.base import empty_checkpoint

    request_context.claim.set(held)
    saver = checkpoint.Checkpointer()
    await refused(
        held,
        *ends,
        saver.aput(where, empty_checkpoint(), {"source": "loop"}, {}),
        saver.aput_writes(writes, [("a", 1)], "task"),
        Store().aput(("n",), "key", {"by": "first"}),
        Runs.Stream.publish(run_id, "values", b"{}", thread_id=thread_id),
        Runs.Stream.publish(run_id, "error", b"{}", thread_id=thread_id),
    )
    request_context.claim.set(held)
    await Runs.set_status(None, run_id, "pending")
    request_context.claim.set(None)
    await db.write(
        lambda conn: run_end.give_up(conn, run_id, held.attempt + 1, ValueError("no"), "first")
    )
    assert (await row(run_id), await runtime.thread(thread_id)) == before
    assert await saver.aget_tuple(where) is None
    assert await Store().aget(("n",), "key") is None


async def test_superseded_attempt_does_not_delete_its_temporary_thread(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a stateless run deletes its thread, which the new attempt still uses."""
    run, held = await superseded(monkeypatch, None)
    await refused(held, Threads.delete(None, run["thread_id"]))
    assert await status(run["run_id"]) == RunStatus.RUNNING
    owner = Claim(held.run_id, 2, held.temporary_thread_id, owner="second")
    request_context.claim.set(owner)
    await Threads.delete(None, run["thread_id"])
    assert await status(run["run_id"]) is None


async def _fail(held: Claim, run: Row, error: Exception) -> None:
    """Let an attempt of this process fail."""
    request_context.claim.set(held)
    with pytest.raises(type(error)):
        async with Runs.enter(run["run_id"], run["thread_id"], asyncio.get_running_loop(), False):
            raise error
    request_context.claim.set(None)


async def _said_by(held: Claim, run: Row, error: Exception) -> list[Event]:
    """Return the events that followers get when an attempt of this process fails."""
    key = of_run(run["run_id"], run["thread_id"])
    async with await current().bus.followers.follow_run(key) as reader:
        await _fail(held, run, error)
        return reader.waiting()


@pytest.mark.parametrize("stateless", [False, True], ids=["on a thread", "stateless"])
async def test_superseded_attempt_publishes_no_end_of_its_run(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, stateless: bool
) -> None:
    """On a premature end, followers would miss the events of the other attempt."""
    run, held = await superseded(monkeypatch, None if stateless else uuid4())
    run_id, thread_id = run["run_id"], run["thread_id"]
    request_context.claim.set(Claim(str(run_id), 2, held.temporary_thread_id, owner="second"))
    if stateless:
        await Threads.delete(None, thread_id)
    else:
        await Threads.set_joint_status(None, thread_id, run_id, "success", "echo")
    assert await _said_by(held, run, SupersededAttempt()) == []


@pytest.mark.parametrize("way", ["ended", "ended without an answer", "deleted"])
async def test_followers_get_one_end_of_an_ended_run_whose_attempt_fails(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The answer to its last write may be lost, or its run deleted."""
    process, bus = Process(monkeypatch, "first"), current().bus
    run = await start_run(uuid4(), "echo", {})
    run_id, thread_id = run["run_id"], run["thread_id"]
    async with await bus.followers.follow_run(of_run(run_id, thread_id)) as reader:
        assert await process.claim() == [(run_id, 1)]
        held = Claim(str(run_id), 1, owner="first")
        request_context.claim.set(held)
        if way == "deleted":
            await Threads.delete(None, thread_id)
        elif way == "ended":
            await Threads.set_joint_status(None, thread_id, run_id, "success", "echo")
        else:
            with monkeypatch.context() as patch:
                patch.setattr(bus.writers, "_ended_by_writer", lambda *_: None)
                await Threads.set_joint_status(None, thread_id, run_id, "success", "echo")
        await _fail(held, run, DatabaseOverloaded())
        await bus.publisher.flush()
        await bus.followers.refresh(reader)
        assert [event.is_end for event in reader.waiting()] == [True]
    if way != "deleted":
        async with await bus.followers.follow_run(of_run(run_id, thread_id), START) as reader:
            event = await reader.get(1)
            assert event is not None
            assert event.is_end
            assert await reader.get(0) is None


async def test_lease_counts_from_before_the_claim(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be stopped between the commit of its claim and the next line."""
    began = clock.elapsed()
    seen: list[Claim | None] = []
    # Claims take longer than a lease lasts.
    monkeypatch.setattr(run_claim, "LEASE_SECONDS", 0.0)

    async def attempt(self: Any, run: Row, attempt: int, since: float, *more: Any) -> None:
        seen.append(Claim(str(run["run_id"]), attempt, None, since, "first"))

    monkeypatch.setattr(queue.Queue, "_attempt", attempt)
    await start_run(uuid4(), "echo", {})
    async with runtime.working():
        async with asyncio.timeout(runtime.PATIENCE):
            while not seen:
                await asyncio.sleep(0.01)
        [held] = seen
        assert held is not None
        assert began <= held.since <= clock.elapsed()


@asynccontextmanager
async def locking(here: database.Database, thread_id: UUID) -> AsyncIterator[threading.Event]:
    """Hold the lock of a thread until the event is set."""
    other = migrations.open_database(here.url, exclusive=False)
    await other.start()
    locked, leave = threading.Event(), threading.Event()

    def hold(conn: Connection) -> None:
        thread_rows.find(conn, thread_id)
        locked.set()
        leave.wait()

    holding = asyncio.create_task(other.write(hold))
    try:
        assert await asyncio.to_thread(locked.wait, runtime.PATIENCE)
        yield leave
    finally:
        leave.set()
        await holding
        await other.stop()


async def test_clients_that_wait_for_a_lock_do_not_delay_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims, lease renewals and recovery continue while many clients wait for one thread."""
    # No client times out during the test.
    patient = [each for each in postgres._SET_UP if "_timeout" not in each]
    monkeypatch.setattr(postgres, "_SET_UP", (*patient, "SET lock_timeout = '200s'"))
    monkeypatch.setattr(stuck_transactions, "STUCK_SECONDS", 1000.0)
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    set_options(monkeypatch, grace_seconds=0)

    def leases(conn: Connection) -> dict[UUID, tuple[int, dates.datetime]]:
        ours = runs.c.claimed_by == run_claim.OWNER
        found = conn.fetchall(select(runs).where(ours, runs.c.status == "running"))
        return {each["run_id"]: (each["attempt"], each["lease_until"]) for each in found}

    async with opened(tmp_path / "x.db", shared=True) as db:
        await register(["sleeper"])
        hot = uuid4()
        await rows(Threads.put(None, hot, metadata={}, if_exists="raise"))
        waits = [
            (await start_run(uuid4(), "sleeper", {"seconds": 600}))["run_id"] for _ in range(2)
        ]
        taken = {"status": "running", "claimed_by": "another", "attempt": 1}
        statement = runs.update().where(runs.c.run_id == waits[0]).values(taken)
        await db.write(lambda conn: conn.execute(statement))
        await expire(waits[0])

        async with locking(db, hot) as release:
            patch = partial(Threads.patch, None, hot, metadata={"a": 1})
            patches = [asyncio.create_task(rows(patch())) for _ in range(3 * postgres.WRITERS)]
            async with working(), asyncio.timeout(2 * runtime.PATIENCE):
                while (await db.read(leases)).keys() != set(waits):
                    await asyncio.sleep(0.02)
                first = await db.read(leases)
                while any(
                    lease <= first[each][1] for each, (_, lease) in (await db.read(leases)).items()
                ):
                    await asyncio.sleep(0.02)
                assert {each: attempt for each, (attempt, _) in first.items()} == {
                    waits[0]: 2,
                    waits[1]: 1,
                }
                assert not any(each.done() for each in patches)
                release.set()
                await asyncio.gather(*patches)


async def test_request_that_waits_too_long_for_a_lock_is_refused_with_retry_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An immediate retry would fail again, and would occupy a writer meanwhile."""
    # Only this timeout applies.
    set_up = [each for each in postgres._SET_UP if "_timeout" not in each]
    monkeypatch.setattr(postgres, "_SET_UP", (*set_up, "SET lock_timeout = '50ms'"))
    tried = []
    async with opened(tmp_path / "x.db", shared=True) as db:
        hot = uuid4()
        await rows(Threads.put(None, hot, metadata={}, if_exists="raise"))
        async with locking(db, hot):

            @retry_db
            async def patch() -> None:
                tried.append(hot)
                await rows(Threads.patch(None, hot, metadata={"a": 1}))

            with pytest.raises(OVERLOADED_EXCEPTIONS, match="held a lock for too long"):
                await patch()
    assert len(tried) == 1


async def test_lost_run_is_no_longer_live_here(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that took the run over writes its events and its end."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    run = await start_run(uuid4(), "sleeper", {"seconds": 600})
    key, bus = str(run["run_id"]), current().bus
    async with working(), asyncio.timeout(60):
        while not bus.runs.is_live(key):
            await asyncio.sleep(0.01)
        # The run is live while this process works on it, however long that takes.
        for _ in range(3):
            await Runs.sweep()
        assert bus.runs.is_live(key)

        taken = {"claimed_by": "another", "attempt": 2, "lease_until": clock.now() + HOUR}
        statement = runs.update().where(runs.c.run_id == run["run_id"]).values(taken)
        await db.write(lambda conn: conn.execute(statement))
        while bus.runs.is_live(key):
            await asyncio.sleep(0.01)
    assert await status(run["run_id"]) == "running"
