"""An application's tables: what follows from their declaration, on the platform and without it."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Column, Connection, Float, Table, Text, insert, inspect, select, text
from sqlalchemy.exc import DatabaseError, IntegrityError, InvalidRequestError

from langgraph_runtime_sql import process
from langgraph_runtime_sql.errors import OtherTenants, RuntimeSqlError
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.tenancy import scope
from tests.support import databases, runtime
from tests.support.operations import row, rows
from threadhold.tables import SHARED, Tables, TablesError, lend, lock, rules
from threadhold.tables.lent import Lent, expire, thread_tables
from threadhold.tenant_data import rules_of

pytestmark = pytest.mark.usefixtures("each_database")

SCRIPT = """
import sqlalchemy as sa
from alembic import op

revision = "shop_0001"
down_revision = None
branch_labels = ("shop",)


def upgrade():
    op.create_table(
        "shop_order",
        sa.Column("owner", sa.Text(), primary_key=True),
        sa.Column("number", sa.Text(), primary_key=True),
        sa.Column("thread", sa.Text()),
        sa.Column("placed", sa.Float()),
    )
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Tables]:
    """Declare a table whose tenant, thread and age have names of its own."""
    (tmp_path / "scripts" / "versions").mkdir(parents=True)
    (tmp_path / "scripts" / "versions" / "shop_0001.py").write_text(SCRIPT)
    made = Tables(tmp_path / "scripts", versions="shop_version")
    Table(
        "shop_order",
        made.metadata,
        Column("owner", Text, primary_key=True),
        Column("number", Text, primary_key=True),
        Column("thread", Text),
        Column("placed", Float),
        info=rules(tenant="owner", thread="thread", age="placed", keep_seconds=3600.0),
    )
    yield made
    made.close()


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """Run the runtime of a server with tenants, which lends its transactions."""
    runtime.set_options(monkeypatch, tenant_key="tenant_id", thread_tables=thread_tables)
    with runtime.serving("echo"), scope.within(scope.EVERYTHING):
        async with runtime.opened(tmp_path / "data.db"):
            lend(Lent(), (RuntimeSqlError,))
            yield tmp_path / "data.db"


def order(shop: Tables, owner: str, number: str, **values: Any) -> Any:
    return insert(shop.metadata.tables["shop_order"]).values(owner=owner, number=number, **values)


def numbers(shop: Tables, tenant: str | None) -> list[str]:
    found = select(shop.metadata.tables["shop_order"].c.number)
    return shop.read(lambda connection: list(connection.scalars(found)), tenant)


async def test_transactions_run_on_the_threads_of_the_platform(
    shop: Tables, platform: Path
) -> None:
    def thread(connection: Connection) -> str:
        return threading.current_thread().name

    kind = {"sqlite": "sqlite", "postgresql": "postgres"}[databases.kind()]
    assert (await shop.run(thread, "acme")).startswith(f"{kind}-read")
    assert (await shop.run(thread, "acme", write=True)).startswith(f"{kind}-write")
    assert (await asyncio.to_thread(shop.write, thread, "acme")).startswith(f"{kind}-write")


async def test_transaction_is_whole_and_leaves_those_of_its_group_alone(
    shop: Tables, platform: Path
) -> None:
    def failing(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "lost"))
        raise ZeroDivisionError

    def twice(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "kept"))
        with pytest.raises(IntegrityError), connection.begin_nested():
            connection.execute(order(shop, "acme", "kept"))

    found = await asyncio.gather(
        *(
            shop.run(work, "acme", write=True)
            for work in (failing, twice, lambda connection: connection.execute(text("nonsense")))
        ),
        return_exceptions=True,
    )
    assert [type(each) for each in found[:2]] == [ZeroDivisionError, type(None)]
    # An error of a statement is SQLAlchemy's, as on an engine of its own.
    assert isinstance(found[2], DatabaseError), found
    assert numbers(shop, "acme") == ["kept"]


async def test_sqlalchemy_works_as_on_a_connection_of_its_own(shop: Tables, platform: Path) -> None:
    def work(connection: Connection) -> Any:
        table = shop.metadata.tables["shop_order"]
        connection.execute(insert(table), [{"owner": "acme", "number": n} for n in ("a1", "b2")])
        lock(connection, "orders")
        matching = select(table.c.number).where(table.c.number.regexp_match("^b"))
        paged = connection.execution_options(yield_per=1).execute(matching).scalars().all()
        return paged, inspect(connection).has_table("shop_order")

    assert await shop.run(work, "acme", write=True) == (["b2"], True)


async def test_work_cannot_end_the_transaction_of_the_platform(
    shop: Tables, platform: Path
) -> None:
    def work(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "1"))
        connection.commit()
        connection.execute(order(shop, "acme", "2"))

    with pytest.raises(InvalidRequestError):
        await shop.run(work, "acme", write=True)
    assert numbers(shop, "acme") == []


async def test_transaction_within_another_one_is_refused(shop: Tables, platform: Path) -> None:
    """A SQLite file has one writer, which would wait for itself."""
    for write in (True, False):
        with pytest.raises(TablesError, match="within another"):
            await shop.run(
                lambda connection: shop.write(lambda inner: None, "acme"), "acme", write=write
            )


@pytest.mark.only("postgresql")
async def test_declared_table_has_policies_on_its_own_tenant_column(
    shop: Tables, platform: Path
) -> None:
    for owner in ("acme", SHARED):
        await shop.run(
            lambda c, to=owner: c.execute(order(shop, to, f"of {to}")), owner, write=True
        )
    assert numbers(shop, "acme") == ["of acme", "of "]
    assert numbers(shop, "globex") == ["of "]
    assert numbers(shop, None) == []
    assert len(numbers(shop, SHARED)) == 2
    with pytest.raises(OtherTenants):
        await shop.run(lambda c: c.execute(order(shop, "acme", "x")), "globex", write=True)
    # A server without tenants limits them, too: its own scope is everything.
    with scope.within(scope.EVERYTHING):
        assert numbers(shop, "globex") == ["of "]


async def test_rows_go_with_their_thread_and_when_they_are_old(
    shop: Tables, platform: Path
) -> None:
    made = await row(Threads.put(None, uuid4(), metadata={"tenant_id": "acme"}, if_exists="raise"))
    thread = str(made["thread_id"])

    def fill(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "of thread", thread=thread))
        connection.execute(order(shop, "acme", "old", placed=time.time() - 3700))
        connection.execute(order(shop, "acme", "new", placed=time.time() - 3500))

    await shop.run(fill, "acme", write=True)
    await rows(Threads.delete(None, UUID(thread)))
    assert sorted(numbers(shop, "acme")) == ["new", "old"]
    await expire()
    assert numbers(shop, "acme") == ["new"]
    assert [(rule.table, rule.where) for rule in rules_of(shop)] == [
        ("shop_version", ""),
        ("shop_order", "owner = :tenant"),
    ]


async def test_closed_platform_is_no_reason_to_open_another_database(
    shop: Tables, platform: Path
) -> None:
    await process.current().database.stop()
    with pytest.raises(shop.errors):
        await shop.run(lambda connection: None, "acme")


async def test_own_engine_expires_rows_when_it_opens(shop: Tables, tmp_path: Path) -> None:
    url = databases.empty(tmp_path / "data.db")
    engine = shop.open(url)
    engine.write(lambda c: c.execute(order(shop, "acme", "old", placed=time.time() - 3700)), "acme")
    engine.close()
    shop.use(url)
    assert numbers(shop, "acme") == []


def test_rules_of_a_missing_column_are_refused(shop: Tables) -> None:
    Table("shop_wrong", shop.metadata, Column("owner", Text, primary_key=True))
    with pytest.raises(TypeError, match="shop_wrong name missing columns: tenant_id"):
        list(shop.declarations())
