"""The doctor finds, explains and repairs each known fault."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Table, select

from langgraph_runtime_sql import checkpoint, migrations
from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.schema import (
    assistants,
    crons,
    event_segments,
    runs,
    tenant_runs,
    thread_checkpoints,
    thread_labels,
    thread_writes,
    threads,
)
from langgraph_runtime_sql.events import dictionaries, log
from langgraph_runtime_sql.events.event import Event
from langgraph_runtime_sql.events.segment import Segment
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import databases, runtime
from tests.support.operations import page, row
from threadhold.cli import main

GRAPHS = ("echo", "steps", "interrupt", "failing")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "patient.db"


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(path) as db:
        await runtime.register(GRAPHS)
        yield db


def threadhold(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["doctor", *arguments, "--database-url", databases.url(path)], catch_exceptions=False
    )


async def examine(path: Path, *arguments: str) -> Result:
    """Run the command in a thread, because it may wait for the event loop's database."""
    return await asyncio.to_thread(threadhold, path, *arguments)


async def change(statement: Any) -> None:
    assert await current().database.write(lambda conn: conn.execute(statement)) > 0


async def claimed(**payload: Any) -> Any:
    """Start a run and claim it for a worker that no longer exists."""
    run = await runtime.start_run(uuid4(), "echo", {}, **payload)
    found = await current().database.write(lambda conn: run_claim.claim(conn, 1))
    assert [each["run_id"] for each, _ in found.runs] == [run["run_id"]]
    return run


async def assert_healthy(path: Path) -> None:
    result = await examine(path)
    assert (result.exit_code, result.output.count("nothing is wrong")) == (0, 1), result.output


def found_in(result: Result, what: str, which: object, why: str) -> bool:
    return f"{what} {which}: {why}" in result.output


# --- healthy databases


async def test_database_in_use_is_healthy(path: Path) -> None:
    """Runs and threads in every state that a server leaves behind."""
    async with opened(path):
        async with runtime.working():
            waiting = await runtime.start_run(uuid4(), "interrupt", {})
            failed = await runtime.start_run(uuid4(), "failing", {})
            done = await runtime.start_run(
                uuid4(), "echo", {}, metadata={"a": 1, "b": 1.0, "c": None, "d": {"e": 1}}
            )
            for run, end in ((waiting, "success"), (failed, "error"), (done, "success")):
                assert await runtime.ended(run["run_id"]) == end
            await runtime.start_run(uuid4(), "steps", {"count": 3, "delay": 0.2})
            await runtime.start_run(uuid4(), "echo", {}, after_seconds=60)
            await assert_healthy(path)
        await assert_healthy(path)
    await assert_healthy(path)


async def test_empty_database_is_healthy(path: Path) -> None:
    async with runtime.opened(path):
        await assert_healthy(path)
    await assert_healthy(path)


# --- each fault alone


async def test_running_run_of_a_dead_process_is_queued_again(path: Path) -> None:
    async with opened(path):
        run = await claimed()
        # The lease is fresh, so a running server may still work on the run.
        await assert_healthy(path)
    result = await examine(path)
    assert result.exit_code == 1
    assert found_in(
        result,
        "run",
        run["run_id"],
        "running (attempt 1), but no process serves it\n"
        "    remedy: queue it again, from its last checkpoint",
    ), result.output
    assert "threadhold doctor --fix" in result.output
    fixed = await examine(path, "--fix")
    assert fixed.exit_code == 0
    assert "    repaired: queue it again" in fixed.output
    async with opened(path), runtime.working():
        assert await runtime.ended(run["run_id"]) == "success"
        await assert_healthy(path)


async def test_running_run_with_an_expired_lease_is_found(path: Path) -> None:
    async with opened(path):
        run = await claimed()
        await change(runs.update().values(lease_until=now() - timedelta(seconds=16)))
        result = await examine(path)
        assert found_in(result, "run", run["run_id"], "running (attempt 1), but its process has")
        assert result.exit_code == 1


@pytest.mark.parametrize(("action", "status"), [("interrupt", "interrupted"), ("rollback", None)])
async def test_cancelled_run_of_a_dead_process_is_ended(
    path: Path, action: str, status: str | None
) -> None:
    async with opened(path):
        run = await claimed()
        await Runs.cancel(None, [run["run_id"]], thread_id=run["thread_id"], action=action)
    result = await examine(path)
    assert f"remedy: cancel it ({action})" in result.output
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        assert await runtime.status(run["run_id"]) == status
        assert (await runtime.thread(run["thread_id"]))["status"] == "idle"
        await assert_healthy(path)


async def test_cancelled_pending_run_is_ended(path: Path) -> None:
    async with opened(path):
        run = await runtime.start_run(uuid4(), "echo", {})
        await change(runs.update().values(cancel_action="interrupt"))
        result = await examine(path)
        assert found_in(result, "run", run["run_id"], "pending, but it was cancelled")
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        assert await runtime.status(run["run_id"]) == "interrupted"


async def test_wrong_counter_of_running_runs_is_counted_again(path: Path) -> None:
    async with opened(path):
        await claimed()
        await change(runs.update().values(tenant="acme"))
        await assert_healthy(path)
        await change(tenant_runs.update().values(running=7))
        result = await examine(path)
        why = "1 of its runs are running, but its counter says 7"
        assert found_in(result, "tenant", "acme", why), result.output
    # The same repair releases the run, which the counter follows.
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        await assert_healthy(path)


async def test_busy_thread_without_a_run_gets_its_last_status(path: Path) -> None:
    """Each thread gets the status that its last run left."""
    async with opened(path):
        async with runtime.working():
            left = {}
            for graph, status in (
                ("echo", "idle"),
                ("interrupt", "interrupted"),
                ("failing", "error"),
            ):
                run = await runtime.start_run(uuid4(), graph, {})
                await runtime.ended(run["run_id"])
                left[run["thread_id"]] = status
        await change(threads.update().values(status="busy"))
        result = await examine(path)
        for thread in left:
            assert found_in(result, "thread", thread, "busy, but it has no run in flight")
        assert result.output.count("remedy: set the status that its last run left") == 3
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        assert {each: (await runtime.thread(each))["status"] for each in left} == left


async def test_idle_thread_with_a_run_is_marked_busy(path: Path) -> None:
    async with opened(path):
        run = await runtime.start_run(uuid4(), "echo", {}, after_seconds=60)
        await change(threads.update().values(status="idle"))
        result = await examine(path)
        assert found_in(
            result,
            "thread",
            run["thread_id"],
            "not busy, but it has a run in flight\n    remedy: mark it busy",
        )
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        assert (await runtime.thread(run["thread_id"]))["status"] == "busy"


@pytest.mark.parametrize(
    "spoil",
    [
        thread_labels.delete().where(thread_labels.c.key == "tenant"),
        thread_labels.update().where(thread_labels.c.key == "tenant").values(value='"other"'),
    ],
    ids=["missing", "wrong"],
)
async def test_missing_or_wrong_thread_labels_are_restored(path: Path, spoil: Any) -> None:
    async with opened(path):
        thread = uuid4()
        await row(
            Threads.put(None, thread, metadata={"tenant": "a", "user": "b"}, if_exists="raise")
        )
        await change(spoil)
        assert await search({"tenant": "a"}) == []
        result = await examine(path)
        assert found_in(result, "thread", thread, "its metadata index is outdated")
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path):
        assert await search({"tenant": "a"}) == [thread]
        assert await search({"tenant": "other"}) == []


async def search(metadata: dict[str, Any]) -> list[UUID]:
    found, _ = await page(
        Threads.search(None, metadata=metadata, values=None, status=None, limit=10, offset=0)
    )
    return [each["thread_id"] for each in found]


async def test_cron_of_a_deleted_assistant_is_disabled(path: Path) -> None:
    async with opened(path):
        cron = await new_cron()
        await assert_healthy(path)
        await change(assistants.delete().where(assistants.c.graph_id == "echo"))
        result = await examine(path)
        assert found_in(result, "cron", cron, "its assistant ")
        assert "remedy: disable it" in result.output
    assert (await examine(path, "--fix")).exit_code == 0
    async with opened(path) as db:
        assert await db.read(lambda conn: conn.scalar(select(crons.c.enabled))) is False


async def new_cron() -> UUID:
    from langgraph_runtime_sql.ops.assistants.assistants import system_id
    from langgraph_runtime_sql.ops.crons.crons import Crons

    created = await row(
        Crons.put(
            None,
            payload={"assistant_id": str(system_id("echo"))},
            schedule="0 3 1 1 *",
            cron_id=None,
            thread_id=None,
            on_run_completed="delete",
            end_time=None,
            enabled=True,
        )
    )
    identifier: UUID = created["cron_id"]
    return identifier


@pytest.mark.parametrize("table", checkpoint.VALUES, ids=str)
async def test_checkpoints_of_a_deleted_thread_are_deleted(path: Path, table: Table) -> None:
    lost = uuid4()
    async with opened(path):
        async with runtime.working():
            run = await runtime.start_run(uuid4(), "interrupt", {})
            await runtime.ended(run["run_id"])
            resumed = await runtime.start_run(
                run["thread_id"], "interrupt", None, command={"resume": 1}
            )
            await runtime.ended(resumed["run_id"])
        await change(table.update().values(thread_id=str(lost)))
        result = await examine(path)
        assert found_in(result, "checkpoint", lost, "its thread is missing")
    assert (await examine(path, "--fix")).exit_code == 0
    async with runtime.opened(path) as db:
        assert await db.read(lambda conn: conn.fetchall(select(table))) == []


async def broken(path: Path, *statements: Any) -> str:
    """Make a thread with patches in its checkpoints, execute statements, return the thread's id."""
    async with opened(path):
        async with runtime.working():
            given = {"messages": [{"role": "user", "content": f"{n} " * 300} for n in range(9)]}
            run = await runtime.start_run(uuid4(), "echo", given)
            await runtime.ended(run["run_id"])
        await assert_healthy(path)
        for statement in statements:
            await change(statement)
    return str(run["thread_id"])


async def test_patches_without_their_base_need_a_backup(path: Path) -> None:
    first = thread_checkpoints.c.base_id.is_(None)
    of_first = thread_writes.c.checkpoint_id == (
        select(thread_checkpoints.c.checkpoint_id).where(first).scalar_subquery()
    )
    thread = await broken(
        path, thread_writes.delete().where(of_first), thread_checkpoints.delete().where(first)
    )
    for arguments in ((), ("--fix",), ()):
        result = await examine(path, *arguments)
        assert f"checkpoint {thread}/" in result.output, result.output
        assert "patched against, is missing" in result.output
        assert "its parent" in result.output
        assert "restore a backup" in result.output
        assert result.exit_code == 1


async def test_damaged_checkpoint_needs_a_backup(path: Path) -> None:
    whole = thread_checkpoints.update().where(thread_checkpoints.c.base_id.is_(None))
    thread = await broken(path, whole.values(value=b"(\xb5/\xfd damaged"))
    result = await examine(path)
    assert f"checkpoint {thread}/" in result.output, result.output
    assert "is damaged: it cannot be decompressed" in result.output


@pytest.mark.only("sqlite")  # Postgres enforces its foreign keys.
async def test_dangling_reference_needs_a_backup(path: Path) -> None:
    async with opened(path):
        await runtime.start_run(uuid4(), "echo", {}, after_seconds=60)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA foreign_keys=OFF")
        raw.execute("DELETE FROM threads")
    for arguments in ((), ("--fix",)):
        result = await examine(path, *arguments)
        assert result.exit_code == 1
        assert found_in(result, "database", "runs:1", "a row refers to a missing row of threads")
        assert "remedy: restore a backup" in result.output


def overwrite(path: Path, start: int, end: int) -> None:
    content = bytearray(path.read_bytes())
    content[start:end] = b"\xee" * (end - start)
    path.write_bytes(content)


@pytest.mark.only("sqlite")  # The doctor does not examine the files of Postgres.
async def test_damaged_file_needs_a_backup(path: Path) -> None:
    async with opened(path):
        for _ in range(50):
            await runtime.start_run(uuid4(), "echo", {"value": "x" * 2000}, after_seconds=60)
    size = path.stat().st_size
    overwrite(path, size // 2, size // 2 + 8 * 4096)
    for arguments in ((), ("--fix",)):
        result = await examine(path, *arguments)
        assert result.exit_code == 1
        assert "`threadhold restore --force`" in result.output


async def test_many_faults_are_found_and_repaired_together(path: Path) -> None:
    async with opened(path):
        run = await claimed()
        for _ in range(3):
            await row(Threads.put(None, uuid4(), metadata={"a": 1}, if_exists="raise"))
        await change(
            threads.update().where(threads.c.thread_id != run["thread_id"]).values(status="busy")
        )
        await change(thread_labels.delete())
    found = await examine(path)
    # One run, three busy threads, and four threads without labels.
    assert found.output.count("remedy: ") == 8, found.output
    fixed = await examine(path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert fixed.output.count("repaired: ") == 8
    await assert_healthy(path)


# --- when repair is refused


async def test_nothing_is_repaired_while_a_server_runs(path: Path) -> None:
    async with opened(path):
        thread = uuid4()
        await row(Threads.put(None, thread, metadata={}, if_exists="raise"))
        await change(threads.update().values(status="busy"))
        refused = await examine(path, "--fix")
        assert refused.exit_code == 1
        assert "Nothing was repaired" in refused.output
        assert "in use by" in refused.output
        assert (await runtime.thread(thread))["status"] == "busy"


async def test_examining_changes_nothing(path: Path) -> None:
    async with opened(path):
        await claimed()
    before = databases.contents(path)
    file = path.read_bytes() if databases.kind() == "sqlite" else b""
    assert (await examine(path)).exit_code == 1
    assert databases.contents(path) == before
    assert file == b"" or path.read_bytes() == file


# --- databases that cannot be examined


def no_database(path: Path) -> None:
    pass


def foreign_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE mine (x)")


def not_sqlite(path: Path) -> None:
    path.write_bytes(b"something else entirely " * 500)


def newer(path: Path) -> None:
    migrations.migrate(databases.url(path))
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.only("sqlite")  # The faults of a file.
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (no_database, "There is no database at"),
        (foreign_tables, "threadhold migrate"),
        (not_sqlite, "file is not a database"),
        (newer, "install the version that migrated it"),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--fix",)], ids=["examine", "fix"])
def test_database_that_cannot_be_examined_is_reported(
    path: Path, make: Callable[[Path], None], says: str, arguments: tuple[str, ...]
) -> None:
    make(path)
    result = threadhold(path, *arguments)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert says in result.output


async def stored_event(thread: UUID, epoch: int) -> None:
    event = Event((epoch, 1), str(uuid4()), "custom", b"1", resumable=True)
    await current().database.write(
        lambda conn: log.store(conn, [Segment(StreamKey(None, str(thread)), [event])])
    )


async def test_events_that_wait_for_a_place_are_placed(path: Path) -> None:
    async with opened(path):
        thread = (await runtime.start_run(uuid4(), "echo", {}, after_seconds=60))["thread_id"]
        await stored_event(thread, log.UNPLACED)
    result = await examine(path)
    assert found_in(result, "events", thread, "they wait for a place in the log"), result.output
    assert (await examine(path, "--fix")).exit_code == 0
    await assert_healthy(path)
    async with runtime.opened(path) as db:
        [row] = await db.read(lambda conn: conn.fetchall(select(event_segments)))
        assert (row["epoch"] > log.UNPLACED, row["first"]) == (True, 1)


async def test_damaged_events_are_deleted_and_leave_a_mark(path: Path) -> None:
    async with opened(path):
        thread = (await runtime.start_run(uuid4(), "echo", {}, after_seconds=60))["thread_id"]
        await stored_event(thread, 5)
        await assert_healthy(path)
        await change(event_segments.update().values(events=b"p"))
    result = await examine(path)
    assert found_in(result, "events", f"{thread}:5-1", "their stored bytes"), result.output
    assert (await examine(path, "--fix")).exit_code == 0
    await assert_healthy(path)
    async with runtime.opened(path) as db:
        [row] = await db.read(lambda conn: conn.fetchall(select(event_segments)))
        assert (row["events"], row["size"]) == (None, 0)


@pytest.mark.parametrize("damage", ["missing", "short"])
async def test_events_without_their_dictionary_are_deleted_and_leave_a_mark(
    path: Path, damage: str
) -> None:
    of_dictionary = event_segments.c.epoch == dictionaries.EPOCH
    async with opened(path):
        thread = (await runtime.start_run(uuid4(), "echo", {}, after_seconds=60))["thread_id"]
        for number in (1, 2):
            event = Event((5, number), "run", "values", b"1" * 5000, resumable=True)
            segment = Segment(StreamKey(None, str(thread)), [event])
            await current().database.write(lambda conn, s=segment: log.store(conn, [s]))
        await assert_healthy(path)
        if damage == "missing":
            await change(event_segments.delete().where(of_dictionary))
        else:
            await change(event_segments.update().where(of_dictionary).values(events=b"p"))
    result = await examine(path)
    why = "the dictionaries" if damage == "missing" else "their stored bytes"
    assert why in result.output, result.output
    assert (await examine(path, "--fix")).exit_code == 0
    await assert_healthy(path)
    async with runtime.opened(path) as db:
        found = await db.read(lambda conn: conn.fetchall(select(event_segments)))
        assert [(row["first"], row["events"]) for row in found] == [(1, None), (2, None)]
