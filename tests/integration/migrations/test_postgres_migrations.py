"""Migrations of a Postgres database while older processes use it."""

import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, select
from sqlalchemy.pool import NullPool

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import schema
from langgraph_runtime_sql.database.postgres import engine as postgres
from langgraph_runtime_sql.database.postgres import lock_wait
from langgraph_runtime_sql.errors import DatabaseBusy
from tests.support import databases, next_script, processes, runtime
from tests.support.next_script import REVISION

# A SQLite file has one process, so no older process can use it during a migration.
pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

# The revision of a database before the script of `tests.support.next_script`.
OLDER = migrations.HEAD
# A value of each type that an older process may write. SQLAlchemy maps JSON to `object`.
VALUES: dict[type, Any] = {
    int: 1,
    float: 1.0,
    bool: True,
    str: "x",
    object: {},
    datetime: datetime.now(UTC),
    bytes: b"x",
}


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a database at the older revision and return its URL."""
    made = databases.url(tmp_path / "older.db")
    next_script.add(tmp_path, monkeypatch)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "older.db"


class Older:
    """A process from before a migration, which knows only the columns of its time.

    Args:
        url: URL of the database at the older revision.
    """

    def __init__(self, url: str) -> None:
        options = {"options": databases.EVERYTHING, "application_name": "older"}
        psycopg_url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        self._engine = create_engine(psycopg_url, connect_args=options, poolclass=NullPool)
        known = MetaData()
        known.reflect(self._engine)
        self.tables = [each for each in known.sorted_tables if each.name in schema.metadata.tables]

    def write(self) -> UUID:
        """Write a row to each table and return the id of these rows."""
        made = uuid4()
        with self._engine.begin() as connection:
            for table in self.tables:
                self._insert(connection, table, made)
        return made

    def _insert(self, connection: Connection, table: Table, made: UUID) -> None:
        row: dict[str, Any] = {}
        unique = {each.name for index in table.indexes if index.unique for each in index.columns}
        for column in table.columns:
            kind = column.type.python_type
            if kind is UUID:
                row[column.name] = made
            elif kind is str and (column.primary_key or column.name in unique):
                row[column.name] = str(made)
            elif kind is bytes and column.primary_key:
                row[column.name] = made.bytes
            elif not column.nullable and column.server_default is None:
                row[column.name] = VALUES[kind]
        connection.execute(insert(table).values(row))

    def use(self, thread_id: UUID, when: datetime) -> None:
        """Write that a thread was used at a time."""
        [threads] = [table for table in self.tables if table.name == "threads"]
        with self._engine.begin() as connection:
            changed = threads.update().where(threads.c.thread_id == thread_id)
            connection.execute(changed.values(updated_at=when))

    def read(self) -> dict[str, int]:
        """Return the number of rows in each table, reading all columns that it knows."""
        with self._engine.connect() as connection:
            return {
                table.name: len(connection.execute(select(*table.columns)).all())
                for table in self.tables
            }


@asynccontextmanager
async def in_use(
    url: str, mode: str, table: str = "thread_labels"
) -> AsyncIterator[psycopg.Connection[Any]]:
    """Hold a table in an open transaction, as `pg_dump` does, and yield its connection."""
    connect = partial(psycopg.connect, url, application_name="pg_dump")
    raw: psycopg.Connection[Any] = await asyncio.to_thread(connect)
    try:
        raw.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
        yield raw
    finally:
        await asyncio.to_thread(raw.close)


def waiting(path: Path, table: str = "thread_labels") -> bool:
    """Return whether a transaction waits for the table."""
    asked = f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass"
    return bool(databases.execute(path, asked))


async def test_older_processes_work_during_and_after_a_migration(path: Path, url: str) -> None:
    older = Older(url)
    early = [older.write() for _ in range(10)]
    migrated, written = threading.Event(), Future[list[UUID]]()

    def work() -> None:
        made = []
        try:
            while not migrated.is_set():
                made.append(older.write())
                older.use(early[len(made) % len(early)], datetime.now(UTC) + timedelta(days=1))
                assert older.read()["threads"] == len(made) + len(early)
            written.set_result(made)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            written.set_exception(error)

    working = threading.Thread(target=work)
    working.start()
    try:
        await asyncio.to_thread(migrations.migrate, url)
    finally:
        migrated.set()
        await asyncio.to_thread(working.join)
    ids = {*early, *written.result(), older.write()}
    assert older.read() == dict.fromkeys(older.read(), len(ids))
    assert databases.execute(path, REVISIONS) == [(REVISION,)]
    found = databases.execute(path, "SELECT DISTINCT next FROM thread_labels")
    assert found == [("new",)]


async def test_missing_functions_and_triggers_are_restored_by_a_migration(
    path: Path, url: str
) -> None:
    older = Older(url)
    made = older.write()
    databases.execute(path, "DROP FUNCTION thread_periods CASCADE")
    databases.execute(path, "DROP FUNCTION hold_run")
    await asyncio.to_thread(migrations.migrate, url)
    older.use(made, datetime(2040, 1, 1, tzinfo=UTC))
    [(period, expected)] = databases.execute(path, PERIODS)
    assert period == expected
    assert databases.execute(path, "SELECT to_regproc('hold_run') IS NOT NULL") == [(True,)]


PERIODS = f"""
    SELECT period, floor(extract(epoch FROM updated_at) / {schema.PERIOD_SECONDS})
    FROM thread_labels JOIN threads USING (thread_id)
"""

# A migration that is killed after its index was built, before its own transaction.
KILLED = """
import sys
from pathlib import Path
from pytest import MonkeyPatch
from langgraph_runtime_sql import migrations
from tests.support import next_script

next_script.add(Path(sys.argv[2]), MonkeyPatch())
migrations.migrate(sys.argv[1])
"""


async def test_killed_migration_continues_on_the_next_start(
    path: Path, url: str, tmp_path: Path
) -> None:
    older = Older(url)
    older.write()
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, url, str(tmp_path)],
        env=processes.environment(KILLED_MIGRATION="1"),
        cwd=processes.ROOT,
    )
    assert killed.returncode == -signal.SIGKILL
    built = "SELECT to_regclass('uq_thread_labels_next') IS NOT NULL"
    assert databases.execute(path, built) == [(True,)]
    assert databases.execute(path, REVISIONS) == [(OLDER,)]
    # Older processes work meanwhile.
    older.write()
    await asyncio.to_thread(migrations.migrate, url)
    assert older.read()["threads"] == 2
    assert databases.execute(path, REVISIONS) == [(REVISION,)]


async def test_failed_unique_index_does_not_stop_the_next_migration(path: Path, url: str) -> None:
    made = Older(url).write()
    # Two rows with one thread and value: the unique index fails and stays invalid.
    again = "INSERT INTO thread_labels SELECT thread_id, 'again', value, period FROM thread_labels"
    databases.execute(path, again)
    with pytest.raises(psycopg.errors.UniqueViolation):
        await asyncio.to_thread(migrations.migrate, url)
    assert databases.execute(path, REVISIONS) == [(OLDER,)]
    asked = "SELECT indexrelid::regclass::text FROM pg_index WHERE indisvalid IS FALSE"
    assert databases.execute(path, asked) == [("uq_thread_labels_next",)]
    databases.execute(path, "DELETE FROM thread_labels WHERE key = 'again'")
    await asyncio.to_thread(migrations.migrate, url)
    assert databases.execute(path, asked) == []
    assert databases.execute(path, REVISIONS) == [(REVISION,)]
    assert databases.execute(path, "SELECT thread_id FROM thread_labels") == [(str(made),)]


REVISIONS = "SELECT version_num FROM alembic_version"


async def test_other_sessions_do_not_wait_behind_a_waiting_migration(path: Path, url: str) -> None:
    older = Older(url)
    older.write()
    async with asyncio.timeout(runtime.PATIENCE * 2), in_use(url, "ACCESS SHARE") as user:
        migrating = asyncio.create_task(asyncio.to_thread(migrations.migrate, url))
        while not waiting(path):
            await asyncio.sleep(0.02)
        # These start after the migration, while the table is still in use.
        for _ in range(3):
            assert (await asyncio.to_thread(older.read))["threads"] >= 1
            await asyncio.to_thread(older.write)
        assert not migrating.done()
        user.rollback()
        await migrating
    assert older.read()["thread_labels"] == 4
    assert databases.execute(path, REVISIONS) == [(REVISION,)]


async def test_migration_reports_a_table_in_use_for_too_long(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_wait, "WAIT_SECONDS", 0.0)
    async with in_use(url, "ACCESS SHARE"):
        with pytest.raises(DatabaseBusy, match=r"a table was in use .* try again"):
            await asyncio.to_thread(migrations.migrate, url)
    assert databases.execute(path, REVISIONS) == [(OLDER,)]
    await asyncio.to_thread(migrations.migrate, url)


async def test_library_migrations_wait_for_tables_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table, path = "store", tmp_path / "library.db"
    url = databases.url(path)
    databases.execute(path, "DELETE FROM store_migrations WHERE v >= 2")
    used = rf"in use.*: {table} by session \d+ \(pg_dump\)"
    async with asyncio.timeout(runtime.PATIENCE * 2), in_use(url, "ACCESS SHARE", table) as user:
        with monkeypatch.context() as patch:
            patch.setattr(lock_wait, "WAIT_SECONDS", 0.0)
            with pytest.raises(DatabaseBusy, match=rf"{used}. End the session"):
                await asyncio.to_thread(migrations.migrate, url)
        migrating = asyncio.create_task(asyncio.to_thread(migrations.migrate, url))
        while not re.search(used, caplog.text):
            await asyncio.sleep(0.02)
        # Later sessions are not blocked while the migration waits and retries.
        reading = f"SELECT count(*) FROM {table}"
        for _ in range(2):
            while not waiting(path, table):
                await asyncio.sleep(0.02)
            assert await asyncio.to_thread(databases.execute, path, reading) == [(0,)]
        assert not migrating.done()
        user.rollback()
        await migrating
    again = (
        "SELECT count(*) FROM pg_attribute WHERE attrelid = 'store'::regclass AND atttypid = 701"
    )
    assert databases.execute(path, again) == [(1,)]


async def test_concurrent_index_build_waits_beyond_the_lock_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concurrent build blocks no session, so it need not give up early."""
    path = tmp_path / "building.db"
    url = databases.url(path)
    databases.execute(path, "DROP INDEX ix_thread_labels_tenant")
    monkeypatch.setattr(postgres, "_SET_UP", ("SET lock_timeout = '100ms'",))
    async with asyncio.timeout(runtime.PATIENCE * 2), in_use(url, "ROW EXCLUSIVE") as user:
        with monkeypatch.context() as patch:
            patch.setattr(lock_wait, "WAIT_SECONDS", 0.1)
            with pytest.raises(DatabaseBusy, match="a table was in use"):
                await asyncio.to_thread(migrations.migrate, url)
        migrating = asyncio.create_task(asyncio.to_thread(migrations.migrate, url))
        # Longer than the lock timeout of other statements.
        await asyncio.wait({migrating}, timeout=1)
        assert not migrating.done()
        user.rollback()
        await migrating
    asked = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_thread_labels_tenant'::regclass"
    assert databases.execute(path, asked) == [(True,)]
