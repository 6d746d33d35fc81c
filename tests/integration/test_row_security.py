"""Row-level security: the database itself answers nothing across tenants, and takes nothing.

Here the application's own filter is gone, or there is no application at all. All other tests on
Postgres run as the same ordinary role, under the same policies.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from langgraph_runtime_sql import database, options, scope
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.database import Database
from langgraph_runtime_sql.errors import OtherTenants
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops import thread_rows
from langgraph_runtime_sql.ops.assistants import Assistants, system_id
from langgraph_runtime_sql.ops.runs import Runs
from langgraph_runtime_sql.ops.threads import Threads
from langgraph_runtime_sql.scope import Scope, label
from langgraph_runtime_sql.store import set_store_config
from my_agent.chat.tables import passages
from my_agent.database import SHARED, ProductDatabase, metadata
from my_agent.icp_finder.tables import companies, profiles
from my_agent.row_security import secure
from tests.support import databases, runtime
from tests.support.issuer import SECRET, bearer, token
from tests.support.operations import row, rows
from tests.support.processes import GRAPHS, Running
from tests.support.served import Api, client, served

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

# They hold nothing of anybody's.
PUBLIC = {
    "alembic_version",
    "checkpoint_migrations",
    "facts",
    "product_version",
    "store_migrations",
    "vector_migrations",
}
WORD = "rosebud"


# --- what the database says -------------------------------------------------


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """The runtime's database in this process, which knows tenants."""
    monkeypatch.setattr(options, "_current", options.Options(tenant_key="tenant_id"))
    with runtime.serving("echo"), scope.within(scope.EVERYTHING):
        async with runtime.opened(tmp_path / "rows.db") as opened:
            await runtime.register(["echo"])
            with scope.within(None):
                yield opened


def plain(path: Path) -> Any:
    """A connection of the same role as the server's, which says nothing of itself."""
    return psycopg.connect(databases.url(path), autocommit=True)


def secured(raw: Any) -> dict[str, bool]:
    """Each table, and whether its policies hold for everybody."""
    found = raw.execute(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
    )
    return dict(found.fetchall())


def test_every_table_has_policies_or_is_known_to_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    index = {"dims": 2, "embed": lambda texts: [[0.0, 1.0] for _ in texts]}
    with runtime.serving():
        set_store_config({"index": index})
        try:
            database.migrate(databases.url(path))
        finally:
            set_store_config(None)
    product = ProductDatabase(databases.url(path))
    product.close()
    with plain(path) as raw:
        tables = secured(raw)
        assert raw.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (False,)
    assert {"threads", "runs", "checkpoint_blobs", "run_writes", "store_vectors"} <= tables.keys()
    assert metadata.tables.keys() <= tables.keys()
    assert {name for name, holds in tables.items() if not holds} == PUBLIC & tables.keys()


def test_policies_that_were_lost_are_back_at_the_next_start(tmp_path: Path) -> None:
    url = databases.url(tmp_path / "lost.db")
    with plain(tmp_path / "lost.db") as raw:
        raw.execute("ALTER TABLE runs NO FORCE ROW LEVEL SECURITY")
        raw.execute("DROP POLICY tenants ON threads")
        database.migrate(url)
        assert secured(raw)["runs"]
        held = "SELECT count(*) FROM pg_policies WHERE tablename = 'threads'"
        assert raw.execute(held).fetchone() == (1,)


async def thread(tenant: str) -> UUID:
    """A new thread of a tenant's."""
    with scope.within(Scope(tenant)):
        made = await row(
            Threads.put(None, uuid4(), metadata={"tenant_id": tenant}, if_exists="raise")
        )
    return UUID(str(made["thread_id"]))


async def seen(db: Database, whose: Scope | None) -> list[UUID]:
    """The threads that there are, without any filter."""

    def fn(conn: Connection) -> list[UUID]:
        return [each for (each,) in conn.raw.execute("SELECT thread_id FROM threads").fetchall()]

    with scope.within(whose):
        return await db.read(fn)


async def test_a_tenant_sees_its_own_and_who_says_nothing_sees_nothing(
    db: Database, tmp_path: Path
) -> None:
    ours, theirs = await thread("acme"), await thread("acm")
    assert await seen(db, Scope("acme")) == [ours]
    assert await seen(db, Scope("acm")) == [theirs]
    assert await seen(db, scope.NOTHING) == []
    # A task that is nobody's, and says nothing.
    assert await seen(db, None) == []
    assert set(await seen(db, scope.EVERYTHING)) == {ours, theirs}
    with plain(tmp_path / "rows.db") as raw:
        for table, holds in secured(raw).items():
            statement = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            if holds:
                assert raw.execute(statement).fetchone() == (0,), table
        assert raw.execute("UPDATE threads SET status = 'idle'").rowcount == 0
        assert raw.execute("DELETE FROM runs").rowcount == 0


NAMES = [
    "it's",
    'a"b',
    "'; RESET ALL; --",
    "\\'; SET LOCAL threadhold.everything = 'on'; --",
    "%",
    "acme%",
    "acme.",
    "ac_e",
    "acme\n",
    "$$",
    "x" * 3000,
    "ünïcødé \U0001f9ff",
    " ",
    "on",
    "langgraph",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_whatever_a_tenant_is_called_it_is_only_itself(db: Database, name: str) -> None:
    others = await thread("acme")
    own = await thread(name)
    assert await seen(db, Scope(name)) == [own]
    assert others not in await seen(db, Scope(name))

    # What is set is what was said, and no more.
    def settings(conn: Connection) -> Any:
        named = ("tenant", "namespace", "everything")
        ask = [f"current_setting('threadhold.{each}', true)" for each in named]
        return conn.raw.execute(f"SELECT {', '.join(ask)}").fetchone()

    with scope.within(Scope(name)):
        tenant, namespace, everything = await db.read(settings)
    assert (tenant, namespace) == (name, label(name))
    assert everything in (None, "")


async def test_a_name_with_nul_is_refused_before_it_is_cut_off(db: Database) -> None:
    await thread("acme")
    with pytest.raises(ValueError, match="NUL"):
        await seen(db, Scope("acme\0x"))


async def test_pooled_connections_forget_whose_they_were(db: Database) -> None:
    """Many at once on few connections, some of which fail: each sees its own, and the next too."""
    own = {name: await thread(name) for name in ("a", "b", "c", "d")}

    async def ask(name: str, number: int) -> None:
        def failing(conn: Connection) -> None:
            conn.raw.execute("SELECT 1 / 0")

        if number % 3 == 0:
            with scope.within(Scope(name)), pytest.raises(ValueError, match="division by zero"):
                await (db.write if number % 2 else db.read)(failing)
        assert await seen(db, Scope(name)) == [own[name]]
        assert await seen(db, scope.NOTHING) == []
        if number % 5 == 0:
            assert len(await seen(db, scope.EVERYTHING)) == len(own)

    await asyncio.gather(*(ask(name, number) for number in range(40) for name in own))


async def test_what_is_anothers_cannot_be_written(db: Database) -> None:
    theirs = await thread("acme")

    def steal(conn: Connection) -> int:
        return int(
            conn.raw.execute("UPDATE threads SET metadata = '{}' WHERE true").rowcount
            + conn.raw.execute("DELETE FROM threads").rowcount
        )

    def plant(conn: Connection) -> None:
        thread_rows.insert(conn, uuid4(), {"tenant_id": "acme"}, Caller())

    def move(conn: Connection) -> None:
        conn.raw.execute("UPDATE threads SET tenant = 'acme'")

    def checkpoint(conn: Connection) -> None:
        conn.raw.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint) VALUES (%s, 'x', '{}')",
            (str(theirs),),
        )

    def item(conn: Connection) -> None:
        conn.raw.execute("INSERT INTO store (prefix, key, value) VALUES ('acme.ada', 'k', '{}')")

    with scope.within(Scope("acm")):
        assert await db.write(steal) == 0
        await thread("acm")
        for forbidden in (plant, move, checkpoint, item):
            with pytest.raises(OtherTenants):
                await db.write(forbidden)
    with scope.within(Scope("acme")):
        await db.write(checkpoint)
        await db.write(item)
    assert await seen(db, Scope("acme")) == [theirs]


async def test_an_id_that_another_tenant_has_taken_is_taken(db: Database) -> None:
    """At once, and in the words for one that is hidden, not after tries that cannot succeed."""
    theirs = await thread("acme")
    stamp = {"tenant_id": "acm"}
    with scope.within(Scope("acme")):
        assistant = await row(
            Assistants.put(
                None,
                uuid4(),
                graph_id="echo",
                config=None,
                context=None,
                metadata={"tenant_id": "acme"},
                if_exists="raise",
                name="theirs",
            )
        )
    with scope.within(Scope("acm")):
        for if_exists in ("raise", "do_nothing"):
            with pytest.raises(thread_rows.Taken):
                await rows(Threads.put(None, theirs, metadata=dict(stamp), if_exists=if_exists))
            with pytest.raises(Exception, match="already exists") as refused:
                await rows(
                    Assistants.put(
                        None,
                        assistant["assistant_id"],
                        graph_id="echo",
                        config=None,
                        context=None,
                        metadata=dict(stamp),
                        if_exists=if_exists,
                        name="mine",
                    )
                )
            assert getattr(refused.value, "status_code", None) == 409
        with pytest.raises(Exception, match="not found") as refused:
            await rows(
                Runs.put(
                    None,
                    system_id("echo"),
                    {},
                    thread_id=theirs,
                    metadata=dict(stamp),
                    prevent_insert_if_inflight=True,
                    if_not_exists="create",
                )
            )
        assert getattr(refused.value, "status_code", None) == 404


async def test_the_systems_assistants_are_for_all_to_read_and_for_none_to_change(
    db: Database,
) -> None:
    def change(conn: Connection) -> int:
        return int(conn.raw.execute("UPDATE assistants SET name = 'mine'").rowcount)

    for whose in (Scope("acme"), Scope("acm")):
        with scope.within(whose):
            assert (await row(Assistants.get(None, system_id("echo"))))["name"] == "echo"
            assert await db.write(change) == 0
    with scope.within(scope.NOTHING):
        assert await rows(Assistants.get(None, system_id("echo"))) == []


# --- the graphs' own tables -------------------------------------------------


@pytest.fixture
def product(tmp_path: Path) -> Iterator[ProductDatabase]:
    opened = ProductDatabase(databases.url(tmp_path / "product.db"))
    yield opened
    opened.close()


def profile(tenant: str) -> dict[str, Any]:
    moment = "2026-01-01T00:00:00+00:00"
    return {
        "tenant_id": tenant,
        "domain": "a.com",
        "company": "{}",
        "confirmed": True,
        "updated_at": moment,
    }


INSERT = (
    "INSERT INTO tenant_company_profiles (tenant_id, domain, company, confirmed, updated_at)"
    " VALUES (%(tenant_id)s, %(domain)s, %(company)s, %(confirmed)s, %(updated_at)s)"
)


def test_a_products_transaction_is_its_tenants(product: ProductDatabase) -> None:
    from sqlalchemy import delete, select, update
    from sqlalchemy.exc import ProgrammingError

    for tenant in ("acme", "acm"):
        with product.write(tenant) as connection:
            connection.exec_driver_sql(INSERT, profile(tenant))
    with product.write(SHARED) as connection:
        connection.exec_driver_sql(INSERT, profile(SHARED))
    everyone = select(profiles.c.tenant_id).order_by(profiles.c.tenant_id)

    def found(tenant: str | None) -> list[str]:
        with product.read(tenant) as connection:
            return list(connection.scalars(everyone))

    # Beside its own a tenant sees what is shared; no tenant, nothing.
    assert (found("acme"), found("acm"), found("acme'")) == (["", "acme"], ["", "acm"], [""])
    assert found(None) == []
    assert found(SHARED) == ["", "acm", "acme"]
    with product.write("acm") as connection:
        assert connection.execute(update(profiles).values(confirmed=False)).rowcount == 1
        assert connection.execute(delete(profiles)).rowcount == 1
    assert found(SHARED) == ["", "acme"]
    for tenant, whose in (("acm", "acme"), ("acm", SHARED), (None, "acm")):
        with (
            pytest.raises(ProgrammingError, match="row-level security"),
            product.write(tenant) as connection,
        ):
            connection.exec_driver_sql(INSERT, {**profile(whose), "domain": "b.com"})
    # A connection that is given back is nobody's again.
    assert found(None) == []


def test_all_tables_of_the_product_ask_for_a_tenant(product: ProductDatabase) -> None:
    assert {passages, companies, profiles} <= set(metadata.tables.values())
    with product.read() as connection:
        for table in metadata.tables.values():
            assert "tenant_id" in table.c
            assert connection.execute(table.select()).all() == []
        # Nothing to do where there are no policies.
    assert secure.__doc__


# --- over HTTP, without the application's own filter ------------------------


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("unfiltered")
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "memory", "spy")},
        "auth": {"path": f"{GRAPHS}/unfiltered.py:auth"},
        "sql": {"hooks": "hooks.threads:policy", "tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    env = {
        "APP_ENV": "production",
        "JWT_SECRET": SECRET,
        "THREAD_POLICY_AGENTS": "memory",
        "CRON_SCHEDULER_SLEEP_TIME": "1",
    }
    with served(folder, folder / "langgraph.json", **env) as started:
        yield started


@asynccontextmanager
async def user(server: Running, tenant: str, name: str, *roles: str) -> AsyncIterator[Api]:
    sent = bearer(token(tenant_id=tenant, sub=name, roles=list(roles)))
    async with client(server, **sent) as api:
        yield api
