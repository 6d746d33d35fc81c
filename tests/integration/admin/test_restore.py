"""A restore drill: what a backup of a serving database holds is what a restored server has."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import tenant_keys
from tests.support import databases, runtime
from threadhold.cli import main

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    programs = pytest.MonkeyPatch()
    programs.setenv("PATH", os.pathsep.join([str(databases.programs()), os.environ["PATH"]]))
    with runtime.serving("echo", "sleeper"):
        yield
    programs.undo()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(path) as opened:
        await runtime.register(["echo", "sleeper"])
        yield opened


async def threadhold(url: str, command: str, *arguments: str | Path) -> Result:
    """Run a command beside the open runtime."""
    given = [command, "--database-url", url, *map(str, arguments)]
    return await asyncio.to_thread(CliRunner().invoke, main, given)


async def talked(value: str) -> UUID:
    thread = uuid4()
    async with runtime.working():
        made = await runtime.start_run(thread, "echo", {"value": value})
        assert await runtime.ended(UUID(str(made["run_id"]))) == "success"
    return thread


async def test_restored_database_has_everything_and_goes_on(
    db: Database, path: Path, tmp_path: Path
) -> None:
    threads = [await talked(f"é {n}") for n in range(3)]
    waiting = await runtime.start_run(threads[0], "echo", {"value": "later"}, after_seconds=1)
    copy, other = tmp_path / "monday.backup", tmp_path / "restored.db"
    saved = await threadhold(databases.url(path), "backup", copy)
    assert saved.exit_code == 0, saved.output
    assert "integrity verified" in saved.output
    assert copy.stat().st_mode & 0o077 == 0
    before = await asyncio.to_thread(databases.contents, path)
    url = databases.empty(other)
    restored = await threadhold(url, "restore", copy)
    assert restored.exit_code == 0, restored.output
    assert await asyncio.to_thread(databases.contents, other) == before
    checked = await threadhold(url, "doctor")
    assert "nothing is wrong" in checked.output
    await go_on(other, waiting, threads)


async def go_on(other: Path, waiting: dict[str, str], threads: list[UUID]) -> None:
    """Check that the restored server executes what waited."""
    async with runtime.opened(other), runtime.working():
        assert await runtime.ended(UUID(str(waiting["run_id"]))) == "success"
        for each in threads:
            assert (await runtime.thread(each))["status"] == "idle"


async def test_restore_changes_no_database_that_has_rows(
    db: Database, path: Path, tmp_path: Path, each_database: str
) -> None:
    await talked("a")
    copy = tmp_path / "copy"
    assert (await threadhold(databases.url(path), "backup", copy)).exit_code == 0
    before = await asyncio.to_thread(databases.contents, path)
    refused = await threadhold(databases.url(path), "restore", copy)
    assert refused.exit_code == 1
    assert await asyncio.to_thread(databases.contents, path) == before
    assert ("is not empty" if each_database == "postgresql" else "in use") in refused.output


async def test_keys_are_apart_from_the_backup_and_come_back(
    db: Database, path: Path, tmp_path: Path
) -> None:
    key = {"key_id": uuid4(), "tenant": "acme", "version": 1, "wrapped": "w", "master": "m"}
    made = tenant_keys.insert().values(created_at=datetime.now(UTC), **key)
    await db.write(lambda conn: conn.execute(made))
    copy, other = tmp_path / "copy", tmp_path / "restored.db"
    saved = await threadhold(databases.url(path), "backup", copy)
    assert f"{copy}.keys: its encryption keys" in saved.output
    url = databases.empty(other)
    restored = await threadhold(url, "restore", copy)
    assert f"keys import {copy}.keys" in restored.output
    keys = "SELECT wrapped FROM tenant_keys WHERE wrapped IS NOT NULL"
    assert databases.execute(other, keys) == []
    imported = await asyncio.to_thread(
        CliRunner().invoke, main, ["keys", "import", "--database-url", url, f"{copy}.keys"]
    )
    assert imported.exit_code == 0, imported.output
    assert databases.execute(other, keys) == databases.execute(path, keys) != []


async def test_damaged_backup_changes_nothing(
    db: Database, path: Path, tmp_path: Path, each_database: str
) -> None:
    await talked("a")
    copy, other = tmp_path / "copy", tmp_path / "other.db"
    assert (await threadhold(databases.url(path), "backup", copy)).exit_code == 0
    content = copy.read_bytes()
    copy.write_bytes(content[: len(content) // 2])
    url = databases.empty(other)
    refused = await threadhold(url, "restore", copy)
    assert refused.exit_code == 1
    assert "Traceback" not in refused.output
    if each_database == "postgresql":
        assert await asyncio.to_thread(databases.contents, other) == {}
    else:
        assert not other.exists()
    missing = await threadhold(url, "restore", tmp_path / "none")
    assert f"There is no backup at {tmp_path / 'none'}" in missing.output


@pytest.mark.only("sqlite")
async def test_force_keeps_the_replaced_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "data.db", tmp_path / "copy.db"
    async with runtime.opened(path):
        await runtime.register(["echo"])
        await talked("before")
        assert (await threadhold(databases.url(path), "backup", copy)).exit_code == 0
        saved = await asyncio.to_thread(databases.contents, path)
        await talked("after")
    later = await asyncio.to_thread(databases.contents, path)
    refused = await threadhold(databases.url(path), "restore", copy)
    assert f"{path} exists. --force replaces it" in refused.output
    done = await threadhold(databases.url(path), "restore", copy, "--force")
    assert done.exit_code == 0, done.output
    assert await asyncio.to_thread(databases.contents, path) == saved
    [aside] = [each for each in tmp_path.glob("data.db.replaced-*") if each.suffix != ".lock"]
    assert str(aside) in done.output
    assert await asyncio.to_thread(databases.contents, aside) == later


@pytest.mark.only("postgresql")
async def test_missing_programs_and_servers_are_named(
    db: Database, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "postgresql://nobody:secret@127.0.0.1:1/nothing"
    unreachable = await threadhold(nowhere, "backup", tmp_path / "copy")
    assert unreachable.exit_code == 1
    assert "secret" not in unreachable.output
    assert not (tmp_path / "copy").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = await threadhold(databases.url(path), "backup", tmp_path / "copy")
    assert "There is no pg_dump" in refused.output
