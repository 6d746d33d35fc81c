"""`threadhold compact` stores old checkpoints in less room while a server runs; states stay the same."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner

from langgraph_runtime_sql import checkpoint, json_codec
from langgraph_runtime_sql.checkpoint import compaction, sealing
from langgraph_runtime_sql.checkpoint.parts import values
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.limits import stored_count
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import databases, runtime
from threadhold.admin import compact as library
from threadhold.cli import main

pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs("echo")]

KEY = "0123456789abcdef"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "old.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(path) as opened:
        await runtime.register(["echo"])
        if databases.kind() == "postgresql":
            # As in a database of an older version.
            remark = "COMMENT ON TABLE checkpoint_parts IS NULL"
            await opened.write(lambda conn: checkpoint.run(conn, remark))
        yield opened


async def talked(thread: UUID, turns: int) -> None:
    async with runtime.working():
        for turn in range(turns):
            said = {"role": "user", "content": f"{turn}. " + "A question about storage. " * 20}
            made = await runtime.start_run(thread, "echo", {"messages": [said]})
            assert await runtime.ended(UUID(str(made["run_id"]))) == "success"


@pytest.fixture
async def old(db: Database, monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Threads whose checkpoints were stored as by an older version."""
    with monkeypatch.context() as older:
        older.setattr(values, "LONG", 2**60)
        older.setattr(sealing, "PLAIN", 2**60)
        threads = [uuid4(), uuid4()]
        for thread in threads:
            await talked(thread, 20)
    return threads


async def history(thread: UUID) -> Any:
    config = {"configurable": {"thread_id": str(thread)}}
    found = await Threads.State.list(None, config=config, limit=1000)
    return [
        json_codec.plain([each.config, each.values, each.metadata, each.next]) for each in found
    ]


async def size(thread: UUID) -> int:
    return await current().database.read(lambda conn: stored_count.of_threads(conn, [thread]))


async def compact(path: Path, *options: str, **env: str) -> str:
    """Run the command beside the open runtime."""
    arguments = ["compact", "--database-url", databases.url(path), *options]
    done = await asyncio.to_thread(CliRunner(env=env).invoke, main, arguments)
    assert done.exit_code == 0, done.output
    return done.output


async def test_old_checkpoints_take_less_room_and_read_the_same(
    old: list[UUID], path: Path
) -> None:
    before = [await history(each) for each in old]
    sizes = [await size(each) for each in old]
    done = await asyncio.to_thread(library.compact, databases.url(path))
    assert done.threads == 2
    assert done.values.after * 3 < done.values.before
    assert [await history(each) for each in old] == before
    assert sum([await size(each) for each in old]) < sum(sizes)
    assert "There is nothing to compact" in await compact(path, "--shrink")
    for each in old:
        await talked(each, 1)
        assert (await history(each))[-len(before[0]) :] in before
    missing = [
        await current().database.read(
            lambda conn, each=each: checkpoint.missing_parts(conn, str(each))
        )
        for each in old
    ]
    assert missing == [set(), set()]


async def test_an_interrupted_compaction_continues(
    old: list[UUID], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PAGE", 3)
    thread = str(old[0])
    before = await history(old[0])
    await current().database.write(compaction.enable)
    _, cursor = await current().database.write(
        lambda conn: compaction.compact(conn, thread, compaction.Cursor())
    )
    assert cursor is not None
    assert await history(old[0]) == before
    await compact(path)
    assert await history(old[0]) == before
    assert "There is nothing to compact" in await compact(path)


async def test_unused_parts_are_deleted(old: list[UUID], path: Path) -> None:
    assert "values in 2 threads took" in await compact(path)
    before = await history(old[0])
    columns = "thread_id, id, type, {value}"
    await current().database.write(
        lambda conn: checkpoint.run(
            conn,
            f"INSERT INTO checkpoint_parts ({columns}) VALUES (?, ?, 'leaf', ?)",
            (str(old[0]), b"unused".ljust(16), b"x"),
        )
    )
    assert "1 parts that no checkpoint referred to were deleted" in await compact(path)
    assert await history(old[0]) == before


async def test_encrypted_checkpoints_stay_encrypted(
    db: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph_api import config

    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", KEY.encode())
    thread = uuid4()
    with monkeypatch.context() as older:
        older.setattr(values, "LONG", 2**60)
        await talked(thread, 20)
    before = await history(thread)
    was = await size(thread)
    await compact(path, LANGGRAPH_AES_KEY=KEY)
    assert await history(thread) == before
    assert await size(thread) < was
    kinds = await db.read(
        lambda conn: checkpoint.run(
            conn, "SELECT DISTINCT type FROM checkpoint_parts WHERE thread_id = ?", (str(thread),)
        ).fetchall()
    )
    assert kinds and all(sealing.is_encrypted(kind) for (kind,) in kinds)
