"""Recovery: what lost runs are freed by, and what may not keep them from it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import func, select

from langgraph_runtime_sql import database, hooks, options, queue
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.ops import run_claim
from langgraph_runtime_sql.ops.runs import Runs
from langgraph_runtime_sql.tables import runs
from tests.support import runtime

pytestmark = pytest.mark.usefixtures("each_database")
ONLY = pytest.mark.only("postgresql")


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving("echo", "sleeper"):
        yield


@pytest.fixture
async def db(
    each_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[database.Database]:
    monkeypatch.setattr(options, "_current", options.Options(grace_seconds=0))
    shared = each_database == "postgresql"
    async with runtime.opened(tmp_path / "recovery.db", shared=shared) as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


async def lose(count: int, owner: str = "gone") -> list[Any]:
    """Runs whose process is gone, and whose lease has ended."""
    made = [await runtime.start_run(uuid4(), "echo", {}) for _ in range(count)]

    def fn(conn: Connection) -> None:
        run_claim.claim(conn, count)
        conn.execute(runs.update().values(claimed_by=owner, lease_until=None))

    await database.current().write(fn)
    return made


async def count(status: str) -> int:
    statement = select(func.count().label("n")).where(runs.c.status == status)
    found: int = await database.current().read(lambda conn: conn.scalar(statement))
    return found


async def test_a_backlog_is_freed_in_steps_between_which_others_write(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "LOST_TOGETHER", 5)
    sizes: list[int] = []
    free = run_claim.recover

    def noting(*arguments: Any, **options: Any) -> list[str]:
        freed = free(*arguments, **options)
        sizes.append(len(freed))
        return freed

    monkeypatch.setattr(run_claim, "recover", noting)
    made = await lose(23)
    assert sorted(await queue.recover()) == sorted(str(run["run_id"]) for run in made)
    assert sizes == [5, 5, 5, 5, 3]
    assert await count("pending") == 23


async def test_what_fails_for_one_run_keeps_none_of_the_others(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost runs that were cancelled end, of which a host is told; it may fail."""
    made = await lose(6)
    for run in made[:2]:
        await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"])

    class Failing:
        def after_run_end(self, tx: Any, thread: Any, run: Any, status: str) -> None:
            if run["run_id"] == made[1]["run_id"]:
                raise ValueError("The host is in trouble")

    monkeypatch.setattr(hooks, "_hooks", Failing())
    freed = await queue.recover()
    assert sorted(freed) == sorted(str(run["run_id"]) for n, run in enumerate(made) if n != 1)
    assert await runtime.status(made[0]["run_id"]) == "interrupted"
    assert await runtime.status(made[1]["run_id"]) == "running"
    monkeypatch.setattr(hooks, "_hooks", None)
    assert await queue.recover() == [str(made[1]["run_id"])]


@ONLY
@pytest.mark.parametrize("table", ["threads", "runs"])
async def test_a_row_that_somebody_holds_keeps_only_its_own_run(
    db: database.Database, table: str
) -> None:
    """As one does that was stopped in the middle of a transaction."""
    made = await lose(6)
    stuck = made[2]
    key = "thread_id" if table == "threads" else "run_id"
    with psycopg.connect(db.url) as holder:
        statement = f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE"
        holder.execute(statement.encode(), (stuck[key],))
        freed = await queue.recover()
        assert sorted(freed) == sorted(str(run["run_id"]) for run in made if run is not stuck)
    assert await queue.recover() == [str(stuck["run_id"])]


@ONLY
async def test_a_process_that_stops_hands_back_only_its_own_uncounted(
    db: database.Database,
) -> None:
    """Else a run that kills its processes would get an attempt more with each that stops."""
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
