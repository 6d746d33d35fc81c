"""The database of the graphs' own tables: migrations, transactions, and the server beside it."""

import asyncio
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError

from langgraph_runtime_sql import migrations as runtime_migrations
from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
from my_agent.tables import metadata, tables
from tests.support import databases
from tests.support.processes import ROOT
from tests.support.runtime import PATIENCE
from threadhold.tables import TablesError, engine, lock, migrating

AGENTS = ROOT / "my_agent"

list(tables.declarations())


pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return databases.empty(tmp_path / "data" / "app.db")


def test_heads_of_scripts_are_the_known_ones() -> None:
    config = Config()
    config.set_main_option("script_location", str(AGENTS / "migrations"))
    assert set(ScriptDirectory.from_config(config).get_heads()) == tables.heads


def test_scripts_create_the_declared_tables(url: str) -> None:
    product = tables.open(url)
    names = {table.name for table in metadata.sorted_tables}
    with product.reading() as connection:
        context = MigrationContext.configure(connection)
        found = compare_metadata(context, metadata)
    product.close()
    # Only the scripts know the tables that exist on one database alone, such as a full-text index.
    about = [each for each in found if each[0] not in ("remove_table", "remove_index")]
    assert about == []
    assert all(table.c.get("tenant_id") is not None for table in metadata.sorted_tables), names


def test_database_of_newer_version_is_rejected(url: str, tmp_path: Path) -> None:
    product = tables.open(url)
    with product.writing() as connection:
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS {tables.versions} (version_num TEXT)"))
        connection.execute(text(f"INSERT INTO {tables.versions} VALUES ('chat_9999')"))
    product.close()
    with pytest.raises(TablesError, match="chat_9999"):
        tables.open(url)


@pytest.mark.parametrize("url", ["mysql://host/name", "nonsense"])
def test_unsupported_database_url_is_rejected(url: str) -> None:
    with pytest.raises(TablesError, match="DATABASE_URL"):
        tables.open(url)


async def test_it_shares_a_database_with_the_server(url: str, tmp_path: Path) -> None:
    """Whichever of the two comes first."""
    product = tables.open(url)
    await asyncio.to_thread(runtime_migrations.migrate, url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x (n INTEGER)")), write=True)
    product.close()
    made = databases.tables(tmp_path / "data" / "app.db")
    assert {"threads", "x", *(table.name for table in metadata.sorted_tables)} <= set(made)
    if databases.kind() == "sqlite":
        check = databases.execute(tmp_path / "data" / "app.db", "PRAGMA integrity_check")
        assert check == [("ok",)]


async def test_failed_write_is_rolled_back(url: str) -> None:
    product = tables.open(url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x (n INTEGER)")), write=True)
    with pytest.raises(ZeroDivisionError), product.writing() as connection:
        connection.execute(text("INSERT INTO x VALUES (1)"))
        raise ZeroDivisionError
    assert await product.run(lambda c: c.scalar(text("SELECT count(*) FROM x"))) == 0
    product.close()


async def test_concurrent_writes_lose_no_update(url: str) -> None:
    product = tables.open(url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x AS SELECT 0 AS n")), write=True)

    def add(connection: Connection) -> None:
        lock(connection, "x")
        found = connection.scalar(text("SELECT n FROM x"))
        connection.execute(text("UPDATE x SET n = :n"), {"n": found + 1})

    await asyncio.gather(*(product.run(add, write=True) for _ in range(20)))
    assert await product.run(lambda c: c.scalar(text("SELECT n FROM x"))) == 20
    product.close()


# --- Postgres: connections like those of the server ---


@pytest.mark.only("postgresql")
def test_session_has_the_servers_parameters(url: str) -> None:
    product, server = tables.open(url), PostgresEngine(url)
    with product.reading() as connection, server.open() as theirs:
        ours = connection.connection.driver_connection
        assert isinstance(ours, psycopg.Connection)
        assert ours.info.get_parameters() == theirs.info.get_parameters()
        shown = "SHOW idle_in_transaction_session_timeout"
        assert ours.execute(shown).fetchone() == theirs.execute(shown).fetchone() == ("10s",)
        assert ours.execute("SHOW lock_timeout").fetchone() == ("30s",)
    product.close()


@pytest.mark.only("postgresql")
def test_network_parameters_of_url_are_used(url: str) -> None:
    chosen = make_url(url).update_query_dict({"tcp_user_timeout": "7000", "application_name": "x"})
    product = tables.open(chosen.render_as_string(hide_password=False))
    with product.reading() as connection:
        found = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
    product.close()
    assert (found["tcp_user_timeout"], found["application_name"]) == ("7000", "threadhold")


@pytest.mark.only("postgresql")
async def test_stopped_transaction_does_not_block_others(url: str) -> None:
    stopped, other = tables.open(url), tables.open(url)
    with pytest.raises(DBAPIError), stopped.writing() as connection:
        lock(connection, "x")
        # The connection sends nothing more, as if its process were stopped.
        await asyncio.wait_for(other.run(lambda mine: lock(mine, "x"), write=True), PATIENCE)
        connection.execute(text("SELECT 1"))
    for each in (stopped, other):
        each.close()


@pytest.mark.only("postgresql")
async def test_connections_are_limited(url: str) -> None:
    product = tables.open(url)
    asked = text(
        "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.1)"
        " WHERE datname = current_database() AND application_name = 'threadhold'"
    )
    seen = await asyncio.gather(*(product.run(lambda c: c.scalar(asked)) for _ in range(20)))
    assert 1 <= max(seen) <= engine.CONNECTIONS + engine.MORE_CONNECTIONS
    product.close()


@pytest.mark.only("postgresql")
async def test_migration_waits_for_another_and_times_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(url) as another:
        another.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (tables.versions,))
        with monkeypatch.context() as patch:
            patch.setattr(migrating, "DEADLINE_SECONDS", 0.0)
            with pytest.raises(TablesError, match="another process has been migrating"):
                await asyncio.to_thread(tables.open, url)
        moving = asyncio.create_task(asyncio.to_thread(tables.open, url))
        waiting = (
            "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        async with asyncio.timeout(PATIENCE):
            while another.execute(waiting).fetchone() is None:
                await asyncio.sleep(0.02)
        another.rollback()
        product = await moving
    with product.reading() as connection:
        assert migrating.revisions(connection, tables.versions) == tables.heads
    product.close()
