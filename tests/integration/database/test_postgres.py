"""Postgres: concurrent writers, and connections and servers that fail."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import select

from langgraph_runtime_sql import migrations, request_context
from langgraph_runtime_sql.checkpoint import Checkpointer, thread_storage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.postgres import engine as postgres
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.errors import DatabaseInUse, DatabaseOverloaded, SupersededAttempt
from langgraph_runtime_sql.hooks import Caller, Transaction
from langgraph_runtime_sql.ops.assistants.assistants import Assistants
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.store import postgres_rows
from langgraph_runtime_sql.store.store import Store, configured
from tests.support import databases, runtime
from tests.support.checkpoints import as_runtime, change_run, runtime_database, start_run
from tests.support.operations import rows

GRAPHS = ("echo",)
pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.only("postgresql"),
    pytest.mark.graphs(*GRAPHS),
]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "postgres.db") as opened:
        await runtime.register(GRAPHS)
        yield opened


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Database]:
    found = migrations.open_database(url, **options)
    await found.start()
    try:
        yield found
    finally:
        await found.stop()


def schema(url: str) -> set[tuple[str, ...]]:
    """Return every column and index."""
    with psycopg.connect(url) as raw:
        columns = raw.execute(
            "SELECT table_name, column_name, data_type, is_nullable,"
            " regexp_replace(coalesce(column_default, ''), '.*', '')"
            " FROM information_schema.columns WHERE table_schema = 'public'"
        ).fetchall()
        indexes = raw.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
        return {*columns, *indexes.fetchall()}


def disconnect(url: str) -> None:
    """End every other connection to a database, as a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


# --- migrations ---


def test_concurrent_migrations_all_succeed(tmp_path: Path) -> None:
    url = databases.empty(tmp_path / "rush.db")
    failures: list[BaseException] = []

    def migrate() -> None:
        try:
            migrations.migrate(url)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            failures.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def invalid(path: Path) -> list[str]:
    """Return the indexes that were never finished and so are not used."""
    asked = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
    return [name for (name,) in databases.execute(path, asked)]


async def test_next_migration_rebuilds_an_interrupted_index(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cut.db"
    url = databases.url(path)
    before = schema(url)
    databases.execute(path, "DROP INDEX ix_thread_labels_tenant")
    async with asyncio.timeout(runtime.PATIENCE * 2):
        with psycopg.connect(url) as writer:
            # The index build waits for all open transactions that may write to the table.
            writer.execute("LOCK TABLE thread_labels IN ROW EXCLUSIVE MODE")
            migrating = asyncio.create_task(asyncio.to_thread(migrations.migrate, url))
            while not invalid(path):
                await asyncio.sleep(0.02)
            databases.execute(
                path,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE '%CREATE INDEX CONCURRENTLY%' AND pid <> pg_backend_pid()"
                " AND datname = current_database()",
            )
            with pytest.raises(psycopg.OperationalError):
                await migrating
    assert invalid(path) == ["ix_thread_labels_tenant"]
    await asyncio.to_thread(migrations.migrate, url)
    assert invalid(path) == []
    assert schema(url) == before


async def test_next_migration_rebuilds_an_interrupted_index_of_a_partition(tmp_path: Path) -> None:
    path, name = tmp_path / "part.db", "thread_checkpoints_7_run_id_idx"
    url = databases.url(path)
    # As an interrupted REINDEX of the operator leaves it.
    where = make_conninfo(databases.server().admin, dbname=conninfo_to_dict(url)["dbname"])
    with psycopg.connect(where, autocommit=True) as raw:
        raw.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (name,)
        )
    assert invalid(path) == [name]
    await asyncio.to_thread(migrations.migrate, url)
    assert invalid(path) == []


# --- ownership of the database ---


async def test_second_exclusive_owner_is_refused_with_the_reason(db: Database) -> None:
    second = migrations.open_database(db.url)
    with pytest.raises(DatabaseInUse, match="a repair or a move needs it alone"):
        await second.start()
    await second.stop()
    await db.check()


async def test_released_ownership_can_be_taken_at_once(tmp_path: Path) -> None:
    url = databases.url(tmp_path / "handed-on.db")

    def take_and_release() -> None:
        for _ in range(30):
            owner = PostgresOwnership(PostgresEngine(url))
            owner.take(wait_seconds=0)
            owner.release()

    await asyncio.to_thread(take_and_release)


async def test_process_reconnects_and_keeps_its_ownership(
    db: Database,
) -> None:
    for _ in range(3):
        await asyncio.to_thread(disconnect, db.url)
        thread_id = uuid4()
        await rows(Threads.put(None, thread_id, metadata={}, if_exists="raise"))
        assert await runtime.thread(thread_id) is not None
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    statement = f"{locks} AND database = (SELECT oid FROM pg_database WHERE datname = %s)"
    async with asyncio.timeout(runtime.PATIENCE):
        while not await db.read(
            lambda conn: conn.raw.execute(statement, (conn.raw.info.dbname,)).fetchone()[0]
        ):
            await asyncio.sleep(0.02)
    second = migrations.open_database(db.url)
    with pytest.raises(DatabaseInUse):
        await second.start()
    await second.stop()


async def test_process_that_lost_ownership_stops_working(db: Database) -> None:
    """Its connection is lost for so long that another process takes the ownership."""
    assert db._ownership is not None
    with psycopg.connect(db.url, autocommit=True) as other:
        async with asyncio.timeout(runtime.PATIENCE):
            while True:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                held = other.execute("SELECT pg_try_advisory_lock(7214880111)").fetchone()
                if held == (True,):
                    break
            while True:
                try:
                    await db.check()
                except DatabaseInUse as refusal:
                    assert "took over the Postgres database" in str(refusal)
                    break
                await asyncio.sleep(0.05)


async def test_writes_wait_while_postgres_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    # A slow machine may need long for the restart.
    monkeypatch.setattr(postgres, "RECONNECT_SECONDS", 60.0)
    data = databases.folder()
    url, user = await asyncio.to_thread(databases.start, data)
    async with opened(url) as db, AsyncExitStack() as stack:
        stack.enter_context(as_runtime(db))
        await db.check()

        async def write(number: int) -> None:
            await db.write(
                lambda conn: thread_rows.insert(conn, UUID(int=number), {"n": number}, Caller())
            )

        restarting = asyncio.create_task(asyncio.to_thread(databases.restart, data, user))
        written = []
        number = 0
        while not restarting.done() or number < 20:
            number += 1
            try:
                await write(number)
            except DatabaseOverloaded as unknown:
                # The connection was lost during the commit, so the result is unknown.
                assert "during a commit" in str(unknown)
            else:
                written.append(number)
        await restarting
        found = await db.read(
            lambda conn: [n for n in written if thread_rows.find(conn, UUID(int=n)) is None]
        )
        assert found == []


async def test_unreachable_server_gives_a_clear_error() -> None:
    nowhere = migrations.open_database("postgresql://nobody@127.0.0.1:1/x")
    with pytest.raises(DatabaseOverloaded, match="Postgres cannot be reached"):
        await nowhere.start()
    await nowhere.stop()


# --- many writers ---


async def test_concurrent_creates_make_one_thread_and_all_return_it(db: Database) -> None:
    thread_id = uuid4()
    made = await asyncio.gather(
        *(
            rows(Threads.put(None, thread_id, metadata={"n": n}, if_exists="do_nothing"))
            for n in range(20)
        )
    )
    assert len({row["metadata"]["n"] for [row] in made}) == 1


async def test_concurrent_patches_of_a_thread_are_all_kept(db: Database) -> None:
    thread_id = uuid4()
    await rows(Threads.put(None, thread_id, metadata={}, if_exists="raise"))
    await asyncio.gather(
        *(rows(Threads.patch(None, thread_id, metadata={f"k{n}": n})) for n in range(20))
    )
    found = await runtime.thread(thread_id)
    assert found["metadata"] == {f"k{n}": n for n in range(20)}


async def test_concurrent_patches_number_assistant_versions_in_sequence(db: Database) -> None:
    [made] = await rows(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config={},
            context={},
            metadata={},
            if_exists="raise",
            name="a",
        )
    )
    identifier = made["assistant_id"]
    patched = await asyncio.gather(
        *(rows(Assistants.patch(None, identifier, name=f"n{n}")) for n in range(15))
    )
    assert sorted(row["version"] for [row] in patched) == list(range(2, 17))


async def test_one_of_many_concurrent_rejecting_runs_is_accepted(
    db: Database,
) -> None:
    thread_id = uuid4()
    await rows(Threads.put(None, thread_id, metadata={}, if_exists="raise"))
    answers = await asyncio.gather(
        *(
            runtime.start_run(thread_id, "echo", {"value": "x"}, multitask_strategy="reject")
            for _ in range(12)
        ),
        return_exceptions=True,
    )
    accepted = [each for each in answers if not isinstance(each, BaseException)]
    assert len(accepted) == 1
    assert {getattr(each, "status_code", None) for each in answers if each not in accepted} <= {
        409,
        422,
    }


async def test_named_lock_is_held_until_the_commit(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concurrent hooks that look for a thread and then create it create only one."""

    class OneOfEach:
        def before_thread_create(self, tx: Transaction, thread: Any) -> None:
            tx.lock("key")
            thread["metadata"]["first"] = not tx.find_threads({"key": "a"})

    monkeypatch.setattr(current(), "hooks", OneOfEach())
    made = await asyncio.gather(
        *(
            rows(Threads.put(None, uuid4(), metadata={"key": "a"}, if_exists="raise"))
            for _ in range(12)
        )
    )
    assert [row["metadata"]["first"] for [row] in made].count(True) == 1


async def test_write_that_waited_has_a_later_timestamp(db: Database) -> None:
    """Otherwise a run that waited for its thread's lock would sort before earlier runs."""
    started, other = threading.Event(), threading.Event()

    def wait(conn: Connection) -> datetime:
        conn.raw.execute("SELECT 1")
        started.set()
        assert other.wait(runtime.PATIENCE)
        return conn.now()

    waiting = asyncio.create_task(db.write(wait))
    assert await asyncio.to_thread(started.wait, runtime.PATIENCE)
    run = await runtime.start_run(uuid4(), "echo", {})
    other.set()
    assert await waiting > run["created_at"]


async def test_two_processes_claim_each_run_once_and_one_run_per_thread(db: Database) -> None:
    threads = [uuid4() for _ in range(10)]
    for thread_id in threads:
        for _ in range(3):
            await runtime.start_run(thread_id, "echo", {"value": "x"}, multitask_strategy="enqueue")
    claimed: list[tuple[UUID, UUID]] = []
    async with opened(db.url, exclusive=False) as other:
        while True:
            found = await asyncio.gather(
                *(each.write(partial(run_claim.claim, limit=3)) for each in (db, other, db, other))
            )
            batch = [run for claim in found for run, _ in claim.runs]
            if not batch:
                break
            assert len({run["thread_id"] for run in batch}) == len(batch)
            claimed += [(run["thread_id"], run["run_id"]) for run in batch]
            for run in batch:
                await change_run(db, str(run["run_id"]), status="success")
    assert len(set(claimed)) == len(claimed) == 30
    for thread_id in threads:
        ours = [run_id for of, run_id in claimed if of == thread_id]
        assert ours == sorted(ours), "the order in which they were made"


async def test_run_with_an_expired_lease_is_recovered(db: Database) -> None:
    now = datetime.now(UTC)
    late, alive, ours = [await start_run(db) for _ in range(3)]
    minute = timedelta(minutes=1)
    await change_run(db, late.run_id, claimed_by="another", lease_until=now - minute)
    await change_run(db, alive.run_id, claimed_by="another", lease_until=now + minute)
    await change_run(db, ours.run_id, claimed_by=run_claim.OWNER, lease_until=now + minute)
    working = {ours.run_id}
    numbers, more = await db.read(
        partial(run_claim.lost, working=working, include="ended", after=0, limit=9)
    )
    assert (len(numbers), more) == (1, None)
    free = partial(run_claim.recover, working=working, include="ended", first=0, last=numbers[0])
    assert await db.write(free) == [late.run_id]
    # A worker that lost its lease can neither renew it nor write.
    [taken] = await db.read(
        lambda conn: conn.fetchall(select(runs).where(runs.c.run_id == UUID(late.run_id)))
    )
    assert (taken["status"], taken["claimed_by"]) == ("pending", None)
    request_context.claim.set(late)
    with pytest.raises(SupersededAttempt):
        await Checkpointer().aput(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            empty_checkpoint(),
            {"source": "loop"},
            {},
        )


async def test_takeover_waits_for_the_commit_of_a_checked_checkpoint(
    db: Database,
) -> None:
    owner = await start_run(db)
    request_context.claim.set(owner)
    checked, proceed = threading.Event(), threading.Event()

    def guard(conn: Connection, checkpoint_id: str | None) -> None:
        checked.set()
        assert proceed.wait(runtime.PATIENCE)

    request_context.write_guard.set(guard)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    put = asyncio.create_task(
        Checkpointer().aput(config, empty_checkpoint(), {"source": "loop"}, {})
    )
    assert await asyncio.to_thread(checked.wait, runtime.PATIENCE)
    release = asyncio.create_task(
        db.write(lambda conn: run_claim.release(conn, UUID(owner.run_id), 1))
    )

    def waiting(conn: Connection) -> int:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return int(conn.raw.execute(f"{statement} AND datname = current_database()").fetchone()[0])

    async with asyncio.timeout(runtime.PATIENCE):
        while not await db.read(waiting):
            await asyncio.sleep(0.01)
    assert not release.done()
    proceed.set()
    await put
    assert await release
    assert await Checkpointer().aget_tuple(config) is not None


async def test_cancelling_runs_during_claims_leaves_consistent_threads(
    db: Database,
) -> None:
    from langgraph_runtime_sql.ops.runs.runs import Runs

    started = []
    for _ in range(10):
        thread_id = uuid4()
        made = await runtime.start_run(thread_id, "echo", {"value": "x"})
        started.append((thread_id, made["run_id"]))
    claims = [db.write(partial(run_claim.claim, limit=4)) for _ in range(4)]
    cancels = [Runs.cancel(None, [run_id], thread_id=thread) for thread, run_id in started]
    await asyncio.gather(*claims, *cancels)
    for thread_id, run_id in started:
        thread, status = await runtime.thread(thread_id), await runtime.status(run_id)
        # Either the run ended at once, or its worker was told to cancel it.
        assert (status, thread["status"]) in (("interrupted", "idle"), ("running", "busy"))
        if status == "running":
            row = await db.read(partial(run_rows.find, run_id=run_id))
            assert row is not None and row["cancel_action"] == "interrupt"


# --- store and checkpoints ---


def embed(texts: list[str]) -> list[list[float]]:
    """Embed texts: more letters are closer to (1, 0, 0); "zero" is similar to nothing."""
    return [[0.0, 0.0, 0.0] if t == "zero" else [float(len(t)), 3.0, 0.0] for t in texts]


@pytest.mark.parametrize("native", [True, False], ids=["pgvector", "bytes"])
async def test_vectors_rank_equally_with_and_without_pgvector(
    native: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(postgres_rows, "_has_pgvector", lambda raw: False)
    databases.server().install_vectors(tmp_path / "vectors.db")
    indexed = configured({"index": {"dims": 3, "embed": embed, "fields": ["text"]}})
    async with runtime_database(tmp_path / "vectors.db", store=indexed) as opened:
        kinds = await opened.read(
            lambda conn: conn.raw.execute(
                "SELECT udt_name FROM information_schema.columns"
                " WHERE table_name = 'store_vectors' AND column_name = 'embedding'"
            ).fetchall()
        )
        assert kinds == [("vector" if native else "bytea",)]
        for key in ("a", "abcdef", "abc", "zero"):
            await Store().aput(("n", "m"), key, {"text": key, "even": len(key) % 2 == 0})
        await Store().aput(("n", "m"), "none", {"text": "abc"}, index=False)
        await Store().aput(("nn",), "elsewhere", {"text": "abcdef"})
        found = await Store().asearch(("n",), query="abcdefghijkl")
        assert [item.key for item in found] == ["abcdef", "abc", "a", "zero", "none"]
        assert [item.score is None for item in found] == [False] * 4 + [True]
        assert found[3].score == 0
        page = await Store().asearch(
            ("n",), query="abcdefghijkl", filter={"even": True}, limit=1, offset=1
        )
        assert [item.key for item in page] == ["zero"]


async def test_values_that_json_cannot_hold_are_restored(db: Database) -> None:
    values = {
        "nul": "a\0b",
        "half": "\ud800",
        "float": 1e16,
        "negative": -0.0,
        "text": "é",
        "yes": True,
        "none": None,
        "number": 3,
        "list": [1],
    }
    made = empty_checkpoint()
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, "1")
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver = Checkpointer()
    note: Any = {"source": "loop", "note": "a\0b", "large": 2**80}
    await saver.aput(config, made, note, made["channel_versions"])
    found = await saver.aget_tuple(config)
    assert found is not None
    stored = found.checkpoint["channel_values"]
    assert {k: (type(v), repr(v)) for k, v in stored.items() if k != "half"} == {
        k: (type(v), repr(v)) for k, v in values.items() if k != "half"
    }
    assert found.metadata["large"] == 2**80  # type: ignore[typeddict-item]


async def test_pruning_removes_unreferenced_channel_values(db: Database) -> None:
    saver = Checkpointer()
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for version in ("1", "2", "3"):
        made = {**empty_checkpoint(), "id": version}
        made["channel_values"] = {"list": [version], "kept": ["x"]}
        made["channel_versions"] = {"list": version, "kept": "1"}
        config = await saver.aput(config, made, {"source": "loop"}, made["channel_versions"])  # type: ignore[arg-type]
    before = await thread_storage(None, "t")
    assert before["channel_values"]["by_channel"]["list"]["versions"] == 3
    assert before["channel_values"]["by_channel"]["kept"]["versions"] == 1
    assert before["total_bytes"] == (
        before["checkpoints"]["bytes"]
        + before["channel_values"]["bytes"]
        + before["pending_writes"]["bytes"]
    )
    await saver.aprune(["t"])
    after = await thread_storage(None, "t")
    assert after["checkpoints"]["count"] == 1
    assert after["channel_values"]["by_channel"]["list"]["versions"] == 1
    found = await saver.aget_tuple({"configurable": {"thread_id": "t"}})
    assert found is not None
    assert found.checkpoint["channel_values"] == {"list": ["3"], "kept": ["x"]}
