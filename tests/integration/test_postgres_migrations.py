"""Migrations of a Postgres database that older processes serve meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, select
from sqlalchemy.pool import NullPool

from langgraph_runtime_sql import database, migrations, postgres, tables
from langgraph_runtime_sql.errors import DatabaseBusy
from langgraph_runtime_sql.migrations import patience
from langgraph_runtime_sql.postgres import PostgresEngine
from tests.support import databases, runtime

# Nobody else serves a file while it is migrated.
pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

OLDER = sorted(migrations.scripts() - {migrations.HEAD})
# What an older process may write of each kind: JSON is an object to SQLAlchemy.
VALUES: dict[type, Any] = {int: 1, bool: True, str: "x", object: {}, datetime: datetime.now(UTC)}


def at(path: Path, revision: str) -> str:
    """The URL of a new database as processes of a revision made it."""
    url = databases.empty(path)
    migrations.replay_postgres(PostgresEngine(url), revision)
    return url


class Older:
    """A process from before a migration: it knows the columns that there were.

    Args:
        url: Of the database as that process made it.
    """

    def __init__(self, url: str) -> None:
        options = {"options": databases.EVERYTHING, "application_name": "older"}
        psycopg_url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        self._engine = create_engine(psycopg_url, connect_args=options, poolclass=NullPool)
        known = MetaData()
        known.reflect(self._engine)
        self.tables = [each for each in known.sorted_tables if each.name in tables.metadata.tables]

    def write(self) -> UUID:
        """A row of each table; the id that it has there."""
        made = uuid4()
        with self._engine.begin() as connection:
            for table in self.tables:
                self._insert(connection, table, made)
        return made

    def _insert(self, connection: Connection, table: Table, made: UUID) -> None:
        row: dict[str, Any] = {}
        for column in table.columns:
            kind = column.type.python_type
            if kind is UUID:
                row[column.name] = made
            elif kind is str and column.primary_key:
                row[column.name] = str(made)
            elif not column.nullable and column.server_default is None:
                row[column.name] = VALUES[kind]
        connection.execute(insert(table).values(row))

    def use(self, thread_id: UUID, when: datetime) -> None:
        """Write that a thread was used."""
        [threads] = [table for table in self.tables if table.name == "threads"]
        with self._engine.begin() as connection:
            changed = threads.update().where(threads.c.thread_id == thread_id)
            connection.execute(changed.values(updated_at=when))

    def read(self) -> dict[str, int]:
        """How many rows it finds in each table, with all that it knows of them."""
        with self._engine.connect() as connection:
            return {
                table.name: len(connection.execute(select(*table.columns)).all())
                for table in self.tables
            }


@asynccontextmanager
async def in_use(url: str, mode: str) -> AsyncIterator[psycopg.Connection[Any]]:
    """A transaction that has the labels open, such as that of `pg_dump`, and its connection."""
    raw = await asyncio.to_thread(psycopg.connect, url)
    try:
        raw.execute(f"LOCK TABLE thread_labels IN {mode} MODE".encode())
        yield raw
    finally:
        await asyncio.to_thread(raw.close)


def waiting(path: Path) -> bool:
    """Whether somebody waits for the labels."""
    asked = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'thread_labels'::regclass"
    return bool(databases.execute(path, asked))


@pytest.mark.parametrize("revision", OLDER)
async def test_older_processes_go_on_while_it_is_migrated_and_after(
    revision: str, tmp_path: Path
) -> None:
    path = tmp_path / "served.db"
    url = at(path, revision)
    older = Older(url)
    early = older.write()
    migrated, written = threading.Event(), Future[list[UUID]]()

    def work() -> None:
        made = []
        try:
            while not migrated.is_set():
                made.append(older.write())
                assert older.read()["threads"] == len(made) + 1
            written.set_result(made)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            written.set_exception(error)

    working = threading.Thread(target=work)
    working.start()
    try:
        await asyncio.to_thread(database.migrate, url)
    finally:
        migrated.set()
        await asyncio.to_thread(working.join)
    ids = {early, *written.result(), older.write()}
    assert older.read() == dict.fromkeys(older.read(), len(ids))
    # What they wrote is complete: newer processes find each thread where it belongs.
    found = databases.execute(path, PERIODS)
    assert [(key, seen) for key, seen, expected in found if seen != expected] == []
    assert {UUID(key) for key, _, _ in found} == ids
    older.use(early, datetime(2040, 1, 1, tzinfo=UTC))
    assert all(seen == expected for _, seen, expected in databases.execute(path, PERIODS))


PERIODS = f"""
    SELECT thread_id, period, floor(extract(epoch FROM updated_at) / {tables.PERIOD_SECONDS})
    FROM thread_labels JOIN threads USING (thread_id)
"""


async def test_threads_that_were_used_before_the_trigger_came_are_caught_up_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "between.db"
    url = at(path, OLDER[-1])
    older = Older(url)
    thread = older.write()
    # A process that was killed after the scripts.
    migrations.replay_postgres(PostgresEngine(url))
    older.use(thread, datetime(2040, 1, 1, tzinfo=UTC))
    await asyncio.to_thread(database.migrate, url)
    [(_, seen, expected)] = databases.execute(path, PERIODS)
    assert seen == expected


async def test_nobody_waits_behind_a_migration_that_waits(tmp_path: Path) -> None:
    path = tmp_path / "waiting.db"
    url = at(path, OLDER[-1])
    older = Older(url)
    older.write()
    async with asyncio.timeout(runtime.PATIENCE * 2), in_use(url, "ACCESS SHARE") as user:
        migrating = asyncio.create_task(asyncio.to_thread(database.migrate, url))
        while not waiting(path):
            await asyncio.sleep(0.02)
        # These come after it, while the table is still in use.
        for _ in range(3):
            assert (await asyncio.to_thread(older.read))["threads"] >= 1
            await asyncio.to_thread(older.write)
        assert not migrating.done()
        user.rollback()
        await migrating
    assert older.read()["thread_labels"] == 4
    [(revision,)] = databases.execute(path, "SELECT version_num FROM alembic_version")
    assert revision == migrations.HEAD


async def test_what_is_in_use_for_too_long_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.0)
    path = tmp_path / "busy.db"
    url = at(path, OLDER[-1])
    async with in_use(url, "ACCESS SHARE"):
        with pytest.raises(DatabaseBusy, match=r"a table was in use .* try again"):
            await asyncio.to_thread(database.migrate, url)
    assert databases.execute(path, "SELECT version_num FROM alembic_version") == [(OLDER[-1],)]
    await asyncio.to_thread(database.migrate, url)


async def test_an_index_that_is_built_beside_others_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps nobody waiting, so it need not give up as soon as an operation does."""
    path = tmp_path / "building.db"
    url = databases.url(path)
    databases.execute(path, "DROP INDEX ix_thread_labels_tenant")
    monkeypatch.setattr(postgres, "_SET_UP", ("SET lock_timeout = '100ms'",))
    async with asyncio.timeout(runtime.PATIENCE * 2), in_use(url, "ROW EXCLUSIVE") as user:
        with monkeypatch.context() as patch:
            patch.setattr(patience, "PATIENCE_SECONDS", 0.1)
            with pytest.raises(DatabaseBusy, match="a table was in use"):
                await asyncio.to_thread(database.migrate, url)
        migrating = asyncio.create_task(asyncio.to_thread(database.migrate, url))
        # Longer than it would wait for anything else.
        await asyncio.wait({migrating}, timeout=1)
        assert not migrating.done()
        user.rollback()
        await migrating
    asked = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_thread_labels_tenant'::regclass"
    assert databases.execute(path, asked) == [(True,)]
