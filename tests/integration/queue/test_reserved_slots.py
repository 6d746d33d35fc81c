"""Reserved slots: a tenant without running runs starts at once beside one that holds all it may."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.queue import queue
from tests.support import runtime, turns
from tests.support.runtime import set_options
from tests.support.turns import count, queue_runs

pytestmark = [
    pytest.mark.usefixtures("each_database", "tenants"),
    pytest.mark.graphs("echo", "sleeper"),
]

SLOTS = 20
BACKLOG = 2_000
# Longer than the test: no run ends by itself.
LONG = {"seconds": 600}


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "reserved.db") as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


async def claim(db: database.Database, limit: int, reserved: int) -> Counter[str | None]:
    """Claim runs and return how many of each tenant."""
    return Counter(await turns.claim(db, limit, reserved=reserved))


async def test_tenants_start_beside_a_tenant_with_a_backlog_of_long_runs(
    db: database.Database, each_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run ends meanwhile, and the queue does not look by the clock."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 3_600.0)
    await queue_runs("many", BACKLOG, graph="sleeper", input=LONG)
    if each_database == "postgresql":
        # Postgres would do so by itself after a while.
        await db.write(lambda conn: conn.raw.execute("ANALYZE runs") and None)
    held = SLOTS - Limits().reserved_slots(SLOTS)
    async with runtime.working(SLOTS) as work, asyncio.timeout(runtime.PATIENCE):
        while len(work.active) < held:
            await asyncio.sleep(0.01)
        for name in ("few", "other"):
            [made] = await queue_runs(name, 1, graph="sleeper", input=LONG)
            while await runtime.status(made) != "running":
                await asyncio.sleep(0.005)
        assert await count("many", "running") == held


async def test_tenant_alone_leaves_the_reserved_slots_free(db: database.Database) -> None:
    await queue_runs("a", 30)
    assert await claim(db, 20, 2) == {"a": 18}
    assert await claim(db, 2, 2) == {}


async def test_reserved_slots_take_one_run_of_each_tenant_without_running_runs(
    db: database.Database,
) -> None:
    await queue_runs("a", 30)
    assert await claim(db, 6, 2) == {"a": 4}
    await queue_runs("b", 5)
    await queue_runs("c", 1)
    assert await claim(db, 2, 2) == {"b": 1, "c": 1}
    # Both hold a slot now. Slots that become free are reserved again, up to their number.
    assert await claim(db, 2, 2) == {}
    assert await claim(db, 4, 2) == {"b": 2}


async def test_reserve_is_found_behind_many_busy_tenants(db: database.Database) -> None:
    for number in range(40):
        await queue_runs(f"t{number:02}", 2)
    assert (await claim(db, 60, 2)).total() == 58
    await queue_runs("zz", 1)
    assert await claim(db, 2, 2) == {"zz": 1}


async def test_without_tenants_no_slot_is_reserved(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue_runs("a", 4)
    set_options(monkeypatch)
    assert await claim(db, 4, 2) == {"a": 4}
