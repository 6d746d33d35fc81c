"""Turns of tenants: a backlog of one tenant delays no other, and no slot stays unused."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, select

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.ops.runs import (
    cancel as run_cancel,
)
from langgraph_runtime_sql.ops.runs import (
    claim as run_claim,
)
from langgraph_runtime_sql.ops.runs import (
    turns as run_turns,
)
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.runs.turns import TenantRotation
from langgraph_runtime_sql.runtime import current
from tests.support import runtime, turns
from tests.support.effort import ticks
from tests.support.runtime import set_options
from tests.support.turns import count, queue_runs

pytestmark = [pytest.mark.usefixtures("each_database", "tenants"), pytest.mark.graphs("echo")]

# Many times the rows that a claim may read.
BACKLOG = 2_000
Names = list[str | None]


@pytest.fixture(scope="module")
async def crowded(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[database.Database]:
    """Queue a long backlog for the tenant "many" and nothing for "few"."""
    async with runtime.opened(tmp_path_factory.mktemp("crowded") / "x.db") as opened:
        await runtime.register(["echo"])
        await queue_runs("many", BACKLOG)
        if each_database == "postgresql":
            # Postgres would do so by itself after a while.
            await opened.write(lambda conn: conn.raw.execute("ANALYZE runs") and None)
        yield opened


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "turns.db") as opened:
        await runtime.register(["echo"])
        yield opened


TURNS = TenantRotation()


async def claim(most: int = 1, db: database.Database | None = None) -> Names:
    """Claim runs. Return their tenants."""
    return await turns.claim(db or current().database, most, TURNS)


# --- order of tenants


async def test_tenant_with_the_fewest_runs_in_flight_is_next_then_the_oldest_run(
    db: database.Database,
) -> None:
    await queue_runs("a", 10)
    assert await claim(3) == ["a"] * 3
    await queue_runs("b", 4)
    await queue_runs("c", 4)
    assert [await claim() for _ in range(8)] == [[name] for name in "bcbcbcab"]
    # The order also holds for several runs in one claim.
    assert Counter(await claim(3)) == {"c": 1, "a": 2}


async def test_single_tenant_uses_every_slot(db: database.Database) -> None:
    made = await queue_runs("a", 30)
    claimed = await db.write(partial(run_claim.claim, limit=20))
    assert [run["run_id"] for run, _ in claimed.runs] == made[:20]
    assert await claim(20) == ["a"] * 10
    assert await claim(20) == []


async def test_runs_without_tenant_take_turns_like_a_tenant(db: database.Database) -> None:
    await queue_runs("a", 10)
    await queue_runs(None, 2)
    assert Counter(await claim(4)) == {"a": 2, None: 2}


async def test_turns_keep_the_order_and_the_single_run_of_a_thread(db: database.Database) -> None:
    """If the thread is busy, the turn passes to another thread of the tenant, or to another tenant."""
    thread = uuid4()
    first = await queue_runs("a", 50, thread)
    other = await queue_runs("a", 1)
    last = await queue_runs("b", 1)
    claimed = []
    for _ in range(4):
        found = await db.write(partial(run_claim.claim, limit=1))
        claimed += [run["run_id"] for run, _ in found.runs]
    assert claimed == [first[0], *last, *other]


async def test_oldest_run_is_first_without_tenants(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue_runs("a", 10)
    await queue_runs("b", 2)
    set_options(monkeypatch)
    assert await claim(10) == ["a"] * 10
    assert await claim(10) == ["b"] * 2


@pytest.mark.only("postgresql")
async def test_concurrent_claims_share_the_turns(db: database.Database) -> None:
    await queue_runs("many", 300)
    await queue_runs("few", 20)
    other = migrations.open_database(db.url, exclusive=False)
    await other.start()
    try:
        for _ in range(4):
            found = await asyncio.gather(*(claim(10, each) for each in (db, other)))
            # Whatever the other process takes, no slot stays unused.
            assert [len(names) for names in found] == [10, 10]
        in_flight = {name: await count(name, "running") for name in ("few", "many")}
        assert in_flight == {"few": 20, "many": 60}
    finally:
        await other.stop()


# --- many tenants


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of tenants that a claim of one run chooses among."""
    monkeypatch.setattr(run_turns, "TENANTS_AT_LEAST", 4)
    monkeypatch.setattr(TURNS, "reached", "")
    return 4


async def test_every_tenant_gets_turns_beyond_the_window_of_a_claim(
    db: database.Database, window: int
) -> None:
    """Tenants before it by name have older runs, and always new ones."""
    names = [f"t{number:02}" for number in range(4 * window)]
    for name in names:
        await queue_runs(name, 2)
    await queue_runs(last := "zz", 1)
    end = runs.update().where(runs.c.status == "running").values(status="success")
    claimed: Names = []
    # Every claim for another tenant takes a run that is older.
    for _ in range(4 * 2 * len(names)):
        [name] = await claim()
        assert name is not None
        claimed.append(name)
        if name == last:
            break
        await db.write(lambda conn: conn.execute(end))
        await queue_runs(name, 1)
    assert claimed[-1] == last


async def test_claim_fills_its_slots_although_the_first_tenants_must_wait(
    db: database.Database, window: int
) -> None:
    for number in range(3 * window):
        thread = uuid4()
        await queue_runs(f"t{number:02}", 3, thread)
    # All other runs wait for a run of their thread.
    assert len(await claim(3 * window)) == 3 * window
    await queue_runs("zz", 20)
    for _ in range(2 * window):
        assert await claim() == ["zz"]


async def test_claim_among_many_tenants_reads_few_runs(
    db: database.Database, each_database: str
) -> None:
    [first] = await queue_runs("t", 1)
    for table in (threads, runs):
        await db.write(partial(multiply, table, first, 100_000))
    await claim()
    if each_database == "sqlite":
        assert await db.write(steps) < 30_000
    else:
        await db.write(lambda conn: conn.raw.execute("ANALYZE runs") and None)
        assert 0 < await db.write(rows_read) < 500


def multiply(table: Table, run_id: UUID, times: int, conn: Connection) -> None:
    """Copy a run, or its thread, for `times` other tenants."""
    number = "printf('%012x', n)" if conn.dialect_name == "sqlite" else "lpad(to_hex(n), 12, '0')"
    made = f"'00000000-0000-4000-8000-' || {number}"
    made = made if conn.dialect_name == "sqlite" else f"({made})::uuid"
    new = {"thread_id": made, "run_id": made, "tenant": "'t' || n"}
    names = [column.name for column in table.c if column.name != "seq"]
    columns = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(new.get(name, f'"{table.name}"."{name}"') for name in names)
    conn.raw.execute(
        f"INSERT INTO {table.name} ({columns}) WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL"
        f" SELECT n + 1 FROM numbers WHERE n < {times}) SELECT {values} FROM numbers, {table.name}"
        f" WHERE thread_id = (SELECT thread_id FROM runs WHERE run_id = '{run_id}')"
    )


# --- a backlog


def steps(conn: Connection) -> int:
    """Return the cost of a claim on SQLite, in instructions."""
    return ticks(conn, lambda: run_claim.claim(conn, 1), 100)[1] * 100


def rows_read(conn: Connection) -> int:
    """Return the cost of a claim on Postgres, in rows, with plans for large tables."""
    conn.raw.execute("SET LOCAL enable_seqscan = off")
    run_claim.claim(conn, 1)
    read = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'runs'"
    )
    return int(conn.raw.execute(read).fetchone()[0])


async def test_claim_reads_little_of_a_backlog(
    crowded: database.Database, each_database: str
) -> None:
    """The test counts SQLite's instructions or the rows that Postgres reads, not time."""
    await queue_runs("few", 1)

    if each_database == "sqlite":
        assert await crowded.write(steps) < 5_000
    else:
        assert 0 < await crowded.write(rows_read) < 500


async def test_tenants_with_and_without_a_backlog_both_progress(
    crowded: database.Database,
) -> None:
    """The runs of one tenant begin and end while the backlog of the other is worked on."""
    async with runtime.working(10):
        async with asyncio.timeout(runtime.PATIENCE):
            while not await count("many", "success"):
                await asyncio.sleep(0.02)
        made = await queue_runs("few", 20)
        assert [await runtime.ended(run_id) for run_id in made] == ["success"] * 20
        left, done = await count("many", "pending"), await count("many", "success")
        assert left > 0
        async with asyncio.timeout(runtime.PATIENCE):
            while await count("many", "success") < done + 20:
                await asyncio.sleep(0.02)


# --- cancelling it


async def test_backlog_is_cancelled_in_pages_between_other_writes(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs created meanwhile are not cancelled; runs started meanwhile are."""
    monkeypatch.setattr(run_cancel, "PAGE", 25)
    await queue_runs("a", 4 * run_cancel.PAGE + 1)
    write, left, made, started = db.write, [], [], []

    async def write_and_look(fn: Callable[[Connection], Any]) -> Any:
        done = await write(fn)
        monkeypatch.setattr(db, "write", write)
        left.append(await count("a", "pending"))
        if len(left) == 1:
            made.extend(await queue_runs("b", 1))
            claimed = (await db.write(partial(run_claim.claim, limit=2))).runs
            started.extend(run["run_id"] for run, _ in claimed)
        monkeypatch.setattr(db, "write", write_and_look)
        return done

    monkeypatch.setattr(db, "write", write_and_look)
    await Runs.cancel(None, status="pending")
    monkeypatch.setattr(db, "write", write)
    before = [4 * run_cancel.PAGE + 1, *left]
    assert all(0 <= more - less <= run_cancel.PAGE + 2 for more, less in pairwise(before))
    assert left[-1] == 0
    assert await count("a", "interrupted") == 4 * run_cancel.PAGE
    told = select(runs.c.run_id).where(runs.c.cancel_action == "interrupt")
    found = await db.read(lambda conn: conn.fetchall(told))
    # Both tenants have a turn.
    assert len(started) == 2
    assert [row["run_id"] for row in found] == [each for each in started if each not in made]
    assert await count("b", "interrupted") == 0


async def test_cancelling_more_ids_than_a_page_cancels_all(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cancel, "PAGE", 25)
    made = await queue_runs("a", run_cancel.PAGE + 1, thread := uuid4())
    unknown = [uuid4() for _ in range(2 * run_cancel.PAGE)]
    await Runs.cancel(None, [made[0], *unknown, *made[1:]], thread_id=thread)
    assert await count("a", "interrupted") == len(made)
    assert (await runtime.thread(thread))["status"] == "idle"
