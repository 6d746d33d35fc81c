"""Limits on running runs, weights and priorities: runs beyond a limit wait in the queue."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.limit_settings import parse
from langgraph_runtime_sql.ops.assistants.assistants import system_id
from langgraph_runtime_sql.ops.crons.firing import Firing
from langgraph_runtime_sql.ops.runs import claim as run_claim
from tests.support import runtime
from tests.support.runtime import set_options
from tests.support.turns import KEY, count, queue_runs

pytestmark = [
    pytest.mark.usefixtures("each_database", "tenants"),
    pytest.mark.graphs("echo", "sleeper"),
]

Names = list[tuple[str | None, str | None]]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "limits.db") as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


def configure(patch: pytest.MonkeyPatch, **section: Any) -> None:
    set_options(patch, grace_seconds=0, tenant_key=KEY, limits=parse(section))


async def claim(db: database.Database, limit: int) -> list[str | None]:
    """Claim runs and return their tenants, in the order of their starts."""
    claimed = await db.write(lambda conn: run_claim.claim(conn, limit, run_claim.TenantRotation()))
    return [run["tenant"] for run, _ in claimed.runs]


async def end_one(db: database.Database, tenant: str) -> None:
    """End one running run of a tenant."""
    first = (
        runs.select()
        .with_only_columns(runs.c.seq)
        .where(runs.c.tenant == tenant, runs.c.status == "running")
        .limit(1)
        .scalar_subquery()
    )
    statement = runs.update().where(runs.c.seq == first).values(status="success")
    await db.write(lambda conn: conn.execute(statement))


async def test_tenant_waits_at_its_maximum_and_others_do_not(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tenant={"running_runs": 3}, tenants={"big": {"running_runs": 5}})
    for name in ("big", "small"):
        await queue_runs(name, 10)
    assert Counter(await claim(db, 50)) == {"big": 5, "small": 3}
    assert await claim(db, 50) == []
    await end_one(db, "small")
    assert await claim(db, 50) == ["small"]
    assert await count("small", "pending") == 6


@pytest.mark.parametrize("member", ["user", "assistant"])
async def test_user_and_assistant_wait_at_their_maximum_within_their_tenant(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    configure(monkeypatch, **{member: {"running_runs": 2}})
    one: dict[str, Any]
    one, other = (
        ({"user": "ada"}, {"user": "bob"})
        if member == "user"
        else ({"graph": "echo"}, {"graph": "sleeper"})
    )
    # More than a claim looks at in one step.
    await queue_runs("a", 30, **one)
    await queue_runs("a", 3, **other)
    await queue_runs("b", 3, **one)
    assert Counter(await claim(db, 50)) == {"a": 4, "b": 2}
    assert await claim(db, 50) == []


async def test_graph_name_means_the_graphs_own_assistant(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, assistants={"sleeper": {"running_runs": 1}})
    await queue_runs("a", 3, graph="sleeper")
    await queue_runs("a", 3, graph="echo")
    assert len(await claim(db, 50)) == 4


async def test_weight_gives_a_tenant_more_turns(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tenants={"big": {"weight": 3}})
    for name in ("small", "big"):
        await queue_runs(name, 30)
    assert Counter(await claim(db, 20)) == {"big": 15, "small": 5}


async def test_tenant_of_higher_priority_is_first_except_for_reserved_slots(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tenants={"first": {"priority": 1}})
    for name in ("last", "first"):
        await queue_runs(name, 8)
    assert await claim(db, 5) == ["first"] * 5
    claimed = await db.write(lambda conn: run_claim.claim(conn, 3, reserved=2))
    assert Counter(run["tenant"] for run, _ in claimed.runs) == {"first": 1, "last": 1}


@pytest.mark.parametrize("section", [{}, {"tenant": {"running_runs": 100}}])
async def test_chat_starts_before_cron_when_slots_are_short(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, section: Any
) -> None:
    monkeypatch.setattr(
        "langgraph_runtime_sql.ops.runs.create.note_fired", lambda conn, firing: None
    )
    configure(monkeypatch, **section)
    firing: Any = Firing(system_id("echo"), None, None, None)  # type: ignore[arg-type]  # not read
    crons = await queue_runs("a", 3, firing=firing)
    chats = await queue_runs("a", 3)
    order = []
    for _ in range(6):
        claimed = await db.write(lambda conn: run_claim.claim(conn, 1))
        order += [run["run_id"] for run, _ in claimed.runs]
    # The last two are due together with no more than a free slot each.
    assert order[:3] == chats
    assert sorted(order[3:]) == sorted(crons)


async def test_limit_is_kept_and_every_run_ends(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tenant={"running_runs": 2})
    made = await queue_runs("a", 12, graph="sleeper", input={"seconds": 0.05})
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, await count("a", "running"))
            await asyncio.sleep(0.005)

    watcher = asyncio.create_task(watch())
    async with runtime.working(10):
        assert [await runtime.ended(run_id) for run_id in made] == ["success"] * 12
    watcher.cancel()
    assert most == 2


@pytest.mark.only("postgresql")
async def test_processes_share_a_limit(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tenant={"running_runs": 7})
    await queue_runs("a", 40)
    others = [migrations.open_database(db.url, exclusive=False) for _ in range(3)]
    for each in others:
        await each.start()
    try:
        for _ in range(5):
            await asyncio.gather(*(claim(each, 5) for each in (db, *others)))
            assert await count("a", "running") == 7
            await end_one(db, "a")
            await end_one(db, "a")
    finally:
        for each in others:
            await each.stop()
