"""The database of the graphs' own tables: migrations, transactions, and the server beside it."""

import asyncio
import importlib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from langgraph_runtime_sql import database as runtime
from my_agent import migrations
from my_agent.database import ProductDatabase, ProductDatabaseError, lock, metadata
from tests.support import databases
from tests.support.processes import ROOT

AGENTS = ROOT / "my_agent"

for path in AGENTS.glob("*/tables.py"):
    importlib.import_module(f"my_agent.{path.parent.name}.tables")


pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return databases.empty(tmp_path / "data" / "app.db")


def test_the_last_scripts_are_the_known_ones() -> None:
    config = Config()
    config.set_main_option("script_location", str(AGENTS / "migrations"))
    assert set(ScriptDirectory.from_config(config).get_heads()) == migrations.HEADS


def test_the_scripts_give_the_tables(url: str) -> None:
    product = ProductDatabase(url)
    names = {table.name for table in metadata.sorted_tables}
    with product.read() as connection:
        context = MigrationContext.configure(connection)
        found = compare_metadata(context, metadata)
    product.close()
    # Tables that only one database has, such as a full-text index, are the scripts' own affair.
    about = [each for each in found if each[0] not in ("remove_table", "remove_index")]
    assert about == []
    assert all(table.c.get("tenant_id") is not None for table in metadata.sorted_tables), names


def test_a_database_of_the_future_is_refused(url: str, tmp_path: Path) -> None:
    product = ProductDatabase(url)
    with product.write() as connection:
        connection.execute(
            text(f"CREATE TABLE IF NOT EXISTS {migrations.VERSIONS} (version_num TEXT)")
        )
        connection.execute(text(f"INSERT INTO {migrations.VERSIONS} VALUES ('chat_9999')"))
    product.close()
    with pytest.raises(ProductDatabaseError, match="chat_9999"):
        ProductDatabase(url)


@pytest.mark.parametrize("url", ["mysql://host/name", "nonsense"])
def test_what_is_no_database_we_know_is_refused(url: str) -> None:
    with pytest.raises(ProductDatabaseError, match="DATABASE_URL"):
        ProductDatabase(url)


async def test_it_shares_a_database_with_the_server(url: str, tmp_path: Path) -> None:
    """Whichever of the two comes first."""
    product = ProductDatabase(url)
    await asyncio.to_thread(runtime.migrate, url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x (n INTEGER)")), write=True)
    product.close()
    made = databases.tables(tmp_path / "data" / "app.db")
    assert {"threads", "x", *(table.name for table in metadata.sorted_tables)} <= set(made)
    if databases.kind() == "sqlite":
        check = databases.execute(tmp_path / "data" / "app.db", "PRAGMA integrity_check")
        assert check == [("ok",)]


async def test_a_write_that_fails_leaves_nothing(url: str) -> None:
    product = ProductDatabase(url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x (n INTEGER)")), write=True)
    with pytest.raises(ZeroDivisionError), product.write() as connection:
        connection.execute(text("INSERT INTO x VALUES (1)"))
        raise ZeroDivisionError
    assert await product.run(lambda c: c.scalar(text("SELECT count(*) FROM x"))) == 0
    product.close()


async def test_writes_of_many_threads_all_count(url: str) -> None:
    product = ProductDatabase(url)
    await product.run(lambda c: c.execute(text("CREATE TABLE x AS SELECT 0 AS n")), write=True)

    def add(connection: Connection) -> None:
        lock(connection, "x")
        found = connection.scalar(text("SELECT n FROM x"))
        connection.execute(text("UPDATE x SET n = :n"), {"n": found + 1})

    await asyncio.gather(*(product.run(add, write=True) for _ in range(20)))
    assert await product.run(lambda c: c.scalar(text("SELECT n FROM x"))) == 20
    product.close()
