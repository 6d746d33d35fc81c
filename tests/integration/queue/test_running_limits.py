"""Limits on running runs, weights and priorities: runs beyond a limit wait in the queue."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres import engine
from langgraph_runtime_sql.database.schema import runs, tenant_runs, threads
from langgraph_runtime_sql.limit_settings import parse
from langgraph_runtime_sql.ops.assistants.assistants import system_id
from langgraph_runtime_sql.ops.crons.firing import Firing
from langgraph_runtime_sql.ops.runs import claim as run_claim
from tests.support import runtime
from tests.support.runtime import set_options
from tests.support.turns import KEY, claim, count, queue_runs

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
async def test_processes_share_the_limits_of_many_tenants_without_a_deadlock(
    db: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A deadlock fails instead of being repeated.
    monkeypatch.setattr(engine, "ATTEMPTS", 1)
    configure(monkeypatch, tenant={"running_runs": 3}, user={"running_runs": 2})
    names = [f"t{number}" for number in range(6)]
    for name in names:
        await queue_runs(name, 12, user="ada")
        await queue_runs(name, 6)
    others = [migrations.open_database(db.url, exclusive=False) for _ in range(3)]
    for each in others:
        await each.start()
    try:
        for _ in range(5):
            claims = [claim(each, 7) for each in (db, *others)]
            await asyncio.gather(*claims, *(end_one(db, name) for name in names))
            assert max([await count(name, "running") for name in names]) <= 3
        await asyncio.gather(*(claim(each, 20) for each in (db, *others)))
        assert [await count(name, "running") for name in names] == [3] * 6
        users = select(func.count()).where(runs.c.status == "running", runs.c.user_id == "ada")
        found = await db.read(lambda conn: conn.fetchall(users.group_by(runs.c.tenant)))
        assert max(next(iter(row.values())) for row in found) <= 2
    finally:
        for each in others:
            await each.stop()


async def test_counters_follow_every_change_and_no_rolled_back_one(db: database.Database) -> None:
    async def counters() -> dict[str, int]:
        rows = await db.read(lambda conn: conn.fetchall(select(tenant_runs)))
        return {row["tenant"]: row["running"] for row in rows if row["tenant"]}

    def claimed(conn: Connection) -> run_claim.Claimed:
        return run_claim.claim(conn, 9)

    def failing(conn: Connection) -> None:
        assert len(claimed(conn).runs) == 5
        raise ZeroDivisionError

    for name in ("a", "b", None):
        await queue_runs(name, 2 if name else 1)
    with pytest.raises(ZeroDivisionError):
        await db.write(failing)
    assert await counters() in ({}, {"a": 0, "b": 0})
    found = (await db.write(claimed)).runs
    assert await counters() == {"a": 2, "b": 2}
    (released, attempt), (deleted, _) = [each for each in found if each[0]["tenant"] == "b"]
    await db.write(lambda conn: run_claim.release(conn, released["run_id"], attempt))
    await end_one(db, "a")
    assert await counters() == {"a": 1, "b": 1}
    gone = threads.delete().where(threads.c.thread_id == deleted["thread_id"])
    await db.write(lambda conn: conn.execute(gone))
    assert await counters() == {"a": 1, "b": 0}


@pytest.mark.parametrize("key", [None, KEY])
async def test_claim_takes_runs_of_no_build_and_of_its_own(
    db: database.Database, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    made = await queue_runs("a", 2)

    async def claim_as(build: str | None, most: int) -> list[Any]:
        set_options(monkeypatch, tenant_key=key, build=build)
        claimed = await db.write(lambda conn: run_claim.claim(conn, most))
        return [run["run_id"] for run, _ in claimed.runs]

    assert await claim_as("blue", 1) == made[:1]
    assert await db.write(lambda conn: run_claim.release(conn, made[0], 1))
    assert await claim_as("green", 9) == made[1:]
    assert await db.write(lambda conn: run_claim.release(conn, made[1], 1))
    assert await claim_as(None, 9) == []
    assert await claim_as("blue", 9) == made[:1]
    assert await claim_as("green", 9) == made[1:]
