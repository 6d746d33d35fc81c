"""Recovery frees lost runs in spite of other transactions, hooks and processes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import func, select

from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres import stuck_transactions
from langgraph_runtime_sql.database.postgres.engine import APPLICATION, PostgresEngine
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.errors import DatabaseOverloaded
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.databases import EVERYTHING
from tests.support.runtime import set_options

GRAPHS = ("echo", "sleeper", "steps")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]
ONLY = pytest.mark.only("postgresql")


@pytest.fixture
async def db(
    each_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[database.Database]:
    set_options(monkeypatch, grace_seconds=0)
    shared = each_database == "postgresql"
    async with runtime.opened(tmp_path / "recovery.db", shared=shared) as opened:
        await runtime.register(GRAPHS)
        yield opened


async def lose(count: int, owner: str = "gone") -> list[Any]:
    """Create runs whose process is gone and whose lease has expired."""
    made = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(count)]

    def fn(conn: Connection) -> None:
        run_claim.claim(conn, count)
        conn.execute(runs.update().values(claimed_by=owner, lease_until=None))

    await current().database.write(fn)
    return made


async def count(status: str) -> int:
    statement = select(func.count().label("n")).where(runs.c.status == status)
    found: int = await current().database.read(lambda conn: conn.scalar(statement))
    return found


async def test_backlog_of_lost_runs_is_freed_in_steps_between_other_writes(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "PAGE_SIZE", 5)
    sizes: list[int] = []
    free = run_claim.recover

    def recording(*arguments: Any, **options: Any) -> list[str]:
        freed = free(*arguments, **options)
        sizes.append(len(freed))
        return freed

    monkeypatch.setattr(run_claim, "recover", recording)
    made = await lose(23)
    assert sorted(await recovery.recover()) == sorted(str(run["run_id"]) for run in made)
    assert sizes == [5, 5, 5, 5, 3]
    assert await count("pending") == 23


async def test_failure_to_free_one_run_does_not_keep_the_others(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ending a lost and cancelled run calls a hook of the host, which may fail."""
    made = await lose(6)
    for run in made[:2]:
        await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])

    class Failing:
        def after_run_end(self, tx: Any, thread: Any, run: Any, status: str) -> None:
            if run["run_id"] == made[1]["run_id"]:
                raise ValueError("The host is in trouble")

    monkeypatch.setattr(current(), "hooks", Failing())
    freed = await recovery.recover()
    assert sorted(freed) == sorted(str(run["run_id"]) for n, run in enumerate(made) if n != 1)
    assert await runtime.status(made[0]["run_id"]) == "interrupted"
    assert await runtime.status(made[1]["run_id"]) == "running"
    monkeypatch.setattr(current(), "hooks", None)
    assert await recovery.recover() == [str(made[1]["run_id"])]


@ONLY
@pytest.mark.parametrize("table", ["threads", "runs"])
async def test_locked_row_delays_the_recovery_of_its_own_run_only(
    db: database.Database, table: str
) -> None:
    """A process stopped in the middle of a transaction holds its locks."""
    made = await lose(6)
    stuck = made[2]
    key = "thread_id" if table == "threads" else "run_id"
    with psycopg.connect(db.url, options=EVERYTHING) as holder:
        statement = f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE"
        holder.execute(statement.encode(), (stuck[key],))
        freed = await recovery.recover()
        assert sorted(freed) == sorted(str(run["run_id"]) for run in made if run is not stuck)
    assert await recovery.recover() == [str(stuck["run_id"])]


@ONLY
async def test_stopping_process_hands_back_only_its_own_runs_uncounted(
    db: database.Database,
) -> None:
    """Otherwise a run that kills its processes would gain an attempt from each one that stops."""
    [lost] = await lose(1)
    async with runtime.working():
        ours = await runtime.start_run(uuid4(), "sleeper", {"seconds": 60})
        async with asyncio.timeout(runtime.PATIENCE):
            while await runtime.status(ours["run_id"]) != "running":
                await asyncio.sleep(0.01)

    async def attempt(run_id: UUID) -> Any:
        statement = select(runs.c.status, runs.c.attempt).where(runs.c.run_id == run_id)
        return await db.read(lambda conn: conn.fetchone(statement))

    assert await attempt(ours["run_id"]) == {"status": "pending", "attempt": 0}
    assert await attempt(lost["run_id"]) == {"status": "running", "attempt": 1}


@ONLY
async def test_draining_process_claims_no_run_and_finishes_its_own(
    db: database.Database, tmp_path: Path
) -> None:
    """Its queue works on for a while, because requests may still be open."""
    end = tmp_path / "end"
    async with runtime.working() as work:
        asked = {"seconds": 60, "until": str(end)}
        ours = await runtime.start_run(uuid4(), "sleeper", asked)
        async with asyncio.timeout(runtime.PATIENCE):
            while await runtime.status(ours["run_id"]) != "running":
                await asyncio.sleep(0.01)
        queue.drain()
        # A claim in progress may still take a new run.
        async with work._claiming:
            pass
        late = await runtime.start_run(uuid4(), "echo", {})
        end.touch()
        assert await runtime.ended(ours["run_id"]) == "success"
        assert await runtime.status(late["run_id"]) == "pending"
    async with runtime.working():
        assert await runtime.ended(late["run_id"]) == "success"


@ONLY
@pytest.mark.parametrize("state", ["active", "idle in transaction"])
async def test_process_stopped_mid_message_blocks_others_only_for_a_while(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Postgres expects more statements of the process, so it does not end the transaction."""
    monkeypatch.setattr(stuck_transactions, "STUCK_SECONDS", 0.1)
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.05)
    [made] = await lose(1)
    raw = psycopg.connect(db.url, autocommit=True, application_name=APPLICATION, options=EVERYTHING)
    try:
        raw.execute("BEGIN")
        raw.execute("SELECT 1 FROM runs WHERE run_id = %s FOR SHARE", (made["run_id"],))
        raw.pgconn.enter_pipeline_mode()
        raw.pgconn.send_query_params(b"SELECT 1", None)
        if state != "active":
            raw.pgconn.pipeline_sync()
        raw.pgconn.send_flush_request()
        raw.pgconn.flush()
        backend = raw.info.backend_pid
        shown = "SELECT state FROM pg_stat_activity WHERE pid = %s AND wait_event = 'ClientRead'"
        async with asyncio.timeout(runtime.PATIENCE):
            while await db.read(lambda conn: conn.raw.execute(shown, (backend,)).fetchall()) != [
                (state,)
            ]:
                await asyncio.sleep(0.01)
        assert await recovery.recover() == []
        async with runtime.working():
            assert await runtime.ended(made["run_id"]) == "success"
    finally:
        raw.close()


@ONLY
async def test_run_survives_a_connection_lost_during_a_commit(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unknown whether the write was committed. The run is retried from the stored state."""
    lost: list[str] = []
    # Writes are committed in a group; the lost commit may be any of them.
    one_by_one = threading.Lock()
    commit = PostgresEngine._commit

    def losing(pipeline: Any) -> None:
        commit(pipeline)
        with one_by_one:
            if len(lost) == 2:
                return
            with psycopg.connect(db.url, options=EVERYTHING) as other:
                written = other.execute("SELECT count(*) FROM thread_checkpoints").fetchone()
            if written is not None and written[0] > len(lost):
                lost.append("commit")
                raise DatabaseOverloaded

    run = await runtime.start_run(uuid4(), "steps", {"count": 4}, durability="sync")
    monkeypatch.setattr(PostgresEngine, "_commit", staticmethod(losing))
    async with runtime.working():
        assert await runtime.ended(run["run_id"]) == "success"
    assert lost == ["commit"] * 2
    assert (await runtime.thread(run["thread_id"]))["values"]["done"] == [0, 1, 2, 3]
