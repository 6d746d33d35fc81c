"""Tenants: each row stores its tenant, read from the configured metadata key."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import (
    assistant_versions,
    assistants,
    crons,
    runs,
    thread_labels,
    threads,
)
from langgraph_runtime_sql.hooks import Caller, Transaction
from langgraph_runtime_sql.ops.assistants.assistants import Assistants, system_id
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.tenancy import scope, tenants
from tests.support import runtime
from tests.support.operations import row, rows
from tests.support.runtime import set_options

pytestmark = pytest.mark.usefixtures("each_database")

TABLES = (threads, thread_labels, runs, crons, assistants, assistant_versions)


@pytest.fixture(scope="module", autouse=True)
def serving() -> Iterator[None]:
    with runtime.serving("echo"):
        yield


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    set_options(monkeypatch, tenant_key="org")
    monkeypatch.setattr(scope, "current", lambda tenant_key: scope.EVERYTHING)
    async with runtime.opened(tmp_path / "tenants.db") as opened:
        await runtime.register(["echo"])
        yield opened


async def found(db: Database) -> dict[str, list[str | None]]:
    """Return the tenants of the rows of each table, except the system assistant's."""

    def fn(conn: Connection) -> dict[str, list[str | None]]:
        ours: dict[str, list[str | None]] = {}
        for table in TABLES:
            statement = select(table.c.tenant)
            if table in (assistants, assistant_versions):
                statement = statement.where(table.c.assistant_id != system_id("echo"))
            ours[table.name] = [each["tenant"] for each in conn.fetchall(statement)]
        return ours

    return await db.read(fn)


async def make(metadata: dict[str, Any]) -> Any:
    """Make a thread, a run on it, a cron and an assistant with two versions, with this metadata."""
    thread = await row(Threads.put(None, uuid4(), metadata=dict(metadata), if_exists="raise"))
    await rows(
        Runs.put(
            None,
            system_id("echo"),
            {},
            thread_id=thread["thread_id"],
            metadata={},
            prevent_insert_if_inflight=True,
        )
    )
    await rows(
        Crons.put(
            None,
            payload={"assistant_id": "echo"},
            schedule="0 0 1 1 *",
            metadata=dict(metadata),
            enabled=True,
        )
    )
    assistant = await row(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config=None,
            context=None,
            metadata=dict(metadata),
            if_exists="raise",
            name="mine",
        )
    )
    await rows(Assistants.patch(None, assistant["assistant_id"], name="still mine"))
    return thread


async def test_every_row_stores_its_tenant(db: Database) -> None:
    thread = await make({"org": "acme", "topic": "x"})
    assert {name: set(each) for name, each in (await found(db)).items()} == {
        table.name: {"acme"} for table in TABLES
    }
    # Answers do not contain the column.
    assert "tenant" not in thread
    for each in (
        await row(Threads.get(None, thread["thread_id"])),
        await row(Assistants.get(None, system_id("echo"))),
    ):
        assert "tenant" not in each


async def test_stateless_run_takes_the_tenant_of_its_metadata(db: Database) -> None:
    await rows(
        Runs.put(
            None,
            system_id("echo"),
            {},
            metadata={"org": "acme"},
            prevent_insert_if_inflight=True,
            if_not_exists="create",
        )
    )
    now = await found(db)
    assert (now["threads"], now["runs"]) == (["acme"], ["acme"])


@pytest.mark.parametrize("name", [None, "", 42, True, ["acme"], {"a": 1}])
async def test_invalid_tenant_name_gives_no_tenant(db: Database, name: Any) -> None:
    await make({"org": name})
    await tenants.adopt(db, current().options.tenant_key)
    assert {each for every in (await found(db)).values() for each in every} == {None}


@pytest.mark.parametrize("name", ["it's", "a.b", "%", "100% \U0001f9ff", "x" * 1000, " "])
async def test_tenant_name_is_stored_unchanged(db: Database, name: str) -> None:
    await make({"org": name})
    assert {each for every in (await found(db)).values() for each in every} == {name}


async def test_labels_follow_a_thread_to_another_tenant(db: Database) -> None:
    thread = await make({"org": "acme", "topic": "x"})
    await rows(Threads.patch(None, thread["thread_id"], metadata={"org": "bolt"}))
    assert set((await found(db))["thread_labels"]) == {"bolt"}
    assert (await found(db))["threads"] == ["bolt"]

    def patch(conn: Connection) -> None:
        Transaction(conn, Caller()).patch_thread(thread["thread_id"], {"org": "core"})

    await db.write(patch)
    assert set((await found(db))["thread_labels"]) == {"core"}
    assert (await found(db))["threads"] == ["core"]


@pytest.mark.parametrize("next_key", ["org", "team"])
async def test_interrupted_adoption_is_completed_for_either_key(
    next_key: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interruption leaves pages that were adopted with different keys."""
    monkeypatch.setattr(tenants, "PAGE", 2)
    names = {"org": "acme", "team": "red"}
    for _ in range(5):
        await make(names)
    await tenants.adopt(db, current().options.tenant_key)
    assert {each for every in (await found(db)).values() for each in every} == {"acme"}

    class CutOff(Exception):
        pass

    pages: list[Any] = []
    plain = tenants._fill

    def cut_off(conn: Connection, table: Any, *about: Any) -> None:
        pages.append(table)
        if pages.count(threads) == 2:
            raise CutOff
        plain(conn, table, *about)

    with monkeypatch.context() as patch:
        set_options(patch, tenant_key="team")
        patch.setattr(tenants, "_fill", cut_off)
        with pytest.raises(CutOff):
            await tenants.adopt(db, current().options.tenant_key)
    assert sorted(str(each) for each in (await found(db))["threads"]) == ["acme"] * 3 + ["red"] * 2
    set_options(monkeypatch, tenant_key=next_key)
    await tenants.adopt(db, current().options.tenant_key)
    now = {table: set(each) for table, each in (await found(db)).items()}
    assert now == {table.name: {names[next_key]} for table in TABLES}


async def test_existing_rows_are_adopted_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_options(monkeypatch)
    await make({"org": "acme", "team": "red", "topic": "x"})
    await tenants.adopt(db, current().options.tenant_key)
    without_tenant = {table.name: {None} for table in TABLES}
    assert {name: set(each) for name, each in (await found(db)).items()} == without_tenant

    for key, name in (("org", "acme"), ("team", "red")):
        set_options(monkeypatch, tenant_key=key)
        await tenants.adopt(db, current().options.tenant_key)
        now = {table: set(each) for table, each in (await found(db)).items()}
        assert now == {table.name: {name} for table in TABLES}

    # Adopted rows are not checked again.
    await db.write(lambda conn: conn.execute(threads.update().values(tenant=None)))
    await tenants.adopt(db, current().options.tenant_key)
    assert (await found(db))["threads"] == [None]

    # Rows written without a tenant key are adopted at the next start with a key.
    set_options(monkeypatch)
    await tenants.adopt(db, current().options.tenant_key)
    set_options(monkeypatch, tenant_key="team")
    await tenants.adopt(db, current().options.tenant_key)
    assert (await found(db))["threads"] == ["red"]
