"""An application's tables: what follows from their declaration, on the platform and without it."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Column, Connection, Float, Table, Text, insert, inspect, select, text
from sqlalchemy.exc import DatabaseError, IntegrityError, InvalidRequestError

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.sqlite import engine
from langgraph_runtime_sql.errors import OtherTenants, RuntimeSqlError
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.tenancy import scope
from tests.support import databases, runtime
from tests.support.operations import row, rows
from threadhold.tables import SHARED, Tables, TablesError, lend, lent, lock, rules
from threadhold.tables import tables as declared_tables
from threadhold.tables.lent import Lent, expire, thread_tables
from threadhold.tenant_data import rules_of

pytestmark = pytest.mark.usefixtures("each_database")

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
EACH = "SELECT 'acme', i FROM n"
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


def repeat(connection: Connection) -> None:
    while True:
        connection.execute(text("SELECT 1"))


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


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """End long transactions at once."""
    monkeypatch.setattr(lent, "WRITE_SECONDS", 0.5)
    monkeypatch.setattr(lent, "READ_SECONDS", 0.5)
    monkeypatch.setattr(engine, "GRACE_SECONDS", 0.1)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("write", [True, False])
async def test_transaction_with_too_many_statements_is_cut_off(
    shop: Tables, platform: Path, write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without an end, and short ones without a last one."""

    def endless(connection: Connection) -> None:
        connection.execute(text(f"{ENDLESS} SELECT count(*) FROM n"))

    for work in (endless, repeat):
        with pytest.raises(TablesError, match=r"rolled back.* 0\.5 seconds"):
            async with asyncio.timeout(runtime.PATIENCE):
                await shop.run(work, "acme", write=write)
    # The next one may take as long as a busy machine needs.
    monkeypatch.setattr(lent, "WRITE_SECONDS", runtime.PATIENCE)
    await shop.run(lambda c: c.execute(order(shop, "globex", "next")), "globex", write=True)
    assert "next" in numbers(shop, "globex")


@pytest.mark.usefixtures("soon")
async def test_transaction_that_does_not_end_stops_no_other_tenant(
    shop: Tables, platform: Path
) -> None:
    """Its function waits in Python, where nothing can interrupt it."""
    holds, ends, ended = threading.Event(), threading.Event(), threading.Event()

    def stuck(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "stuck"))
        raw = connection.connection.driver_connection
        holds.set()
        try:
            ends.wait()
            with suppress(Exception):
                raw.execute("INSERT INTO shop_order (owner, number) VALUES ('acme', 'late')")
            repeat(connection)
        finally:
            ended.set()

    numbers(shop, "acme")
    writing = asyncio.create_task(shop.run(stuck, "acme", write=True))
    async with asyncio.timeout(runtime.PATIENCE):
        await asyncio.to_thread(holds.wait)
        for number in ("1", "2"):
            await shop.run(
                lambda c, n=number: c.execute(order(shop, "globex", n)), "globex", write=True
            )
        # The platform writes, too.
        await row(Threads.put(None, uuid4(), metadata={"tenant_id": "globex"}, if_exists="raise"))
        if databases.kind() == "sqlite":
            # Its caller has an answer although the function has not ended.
            with pytest.raises(TablesError, match="rolled back"):
                await asyncio.shield(writing)
        ends.set()
        with pytest.raises(TablesError, match="rolled back"):
            await writing
        await asyncio.to_thread(ended.wait)
    # Of all tenants.
    assert numbers(shop, SHARED) == ["1", "2"]


@pytest.mark.usefixtures("soon")
# On Postgres each transaction has a connection of its own.
@pytest.mark.only("sqlite")
@pytest.mark.parametrize("is_interrupted", [True, False])
async def test_group_of_a_transaction_without_end_loses_nothing(
    shop: Tables, platform: Path, is_interrupted: bool
) -> None:
    """What the writer has run in the same group is not committed, so it runs again.

    SQLite rolls back a whole transaction when a statement that writes is interrupted.
    """
    begun, goes, ends = threading.Event(), threading.Event(), threading.Event()

    def first(connection: Connection) -> None:
        begun.set()
        goes.wait()
        connection.execute(order(shop, "acme", "first"))

    def lasting(connection: Connection) -> None:
        if is_interrupted:
            connection.execute(text(f"INSERT INTO shop_order (owner, number) {ENDLESS} {EACH}"))
        ends.wait()

    numbers(shop, "acme")
    async with asyncio.timeout(runtime.PATIENCE):
        kept = asyncio.create_task(shop.run(first, "acme", write=True))
        await asyncio.to_thread(begun.wait)
        lost = asyncio.create_task(shop.run(lasting, "acme", write=True))
        after = asyncio.create_task(
            shop.run(lambda c: c.execute(order(shop, "acme", "after")), "acme", write=True)
        )
        await asyncio.sleep(0)
        goes.set()
        await asyncio.gather(kept, after)
        with pytest.raises(TablesError, match="rolled back"):
            await lost
        ends.set()
    assert sorted(numbers(shop, "acme")) == ["after", "first"]


async def test_cancelled_caller_leaves_a_whole_transaction(shop: Tables, platform: Path) -> None:
    """The function has begun, so it ends: all of it is stored."""
    begun, goes = threading.Event(), threading.Event()

    def work(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "1"))
        begun.set()
        goes.wait()
        connection.execute(order(shop, "acme", "2"))

    numbers(shop, "acme")
    writing = asyncio.create_task(shop.run(work, "acme", write=True))
    async with asyncio.timeout(runtime.PATIENCE):
        await asyncio.to_thread(begun.wait)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        goes.set()
        await process.current().database.wait_for_writes()
    assert numbers(shop, "acme") == ["1", "2"]


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
    shop: Tables, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared_tables, "EXPIRED", 1)
    made = await row(Threads.put(None, uuid4(), metadata={"tenant_id": "acme"}, if_exists="raise"))
    thread = str(made["thread_id"])

    def fill(connection: Connection) -> None:
        connection.execute(order(shop, "acme", "of thread", thread=thread))
        for number in ("old", "older"):
            connection.execute(order(shop, "acme", number, placed=time.time() - 3700))
        connection.execute(order(shop, "acme", "new", placed=time.time() - 3500))

    await shop.run(fill, "acme", write=True)
    await rows(Threads.delete(None, UUID(thread)))
    assert sorted(numbers(shop, "acme")) == ["new", "old", "older"]
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


def test_old_rows_need_a_primary_key(shop: Tables) -> None:
    Table("shop_log", shop.metadata, Column("at", Float), info=rules(tenant=None, age="at"))
    with pytest.raises(TypeError, match="shop_log needs a primary key"):
        list(shop.declarations())
