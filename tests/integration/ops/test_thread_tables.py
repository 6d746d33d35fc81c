"""Rows of the host's tables go in the transaction that deletes their thread."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.end import sweep_ttl
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.tenancy.scope import TenantScope
from my_agent.diagnosis.reading.digest import Digest
from my_agent.diagnosis.record import log as diagnosis
from my_agent.diagnosis.record import texts
from my_agent.research.tables import pages, projects
from my_agent.tables import metadata, tables
from tests.support import databases, runtime
from tests.support.diagnosis import opened
from tests.support.operations import row, rows
from tests.support.runtime import set_options
from threadhold.tables.lent import thread_tables

pytestmark = pytest.mark.usefixtures("each_database")

TABLES = {each.name for each in thread_tables()}
# Their rows belong to a tenant; the thread is only where the work was done.
NOT_OF_A_THREAD = {"enrichment_jobs"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.db"


@pytest.fixture(params=["acme", None], ids=["tenant", "no tenants"])
async def tenant(
    request: pytest.FixtureRequest, file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str | None]:
    """Open the runtime with the graphs' tables, as a server with or without tenants."""
    key = "tenant_id" if request.param else None
    set_options(monkeypatch, tenant_key=key, thread_tables=thread_tables)
    with runtime.serving("echo"), scope.within(scope.EVERYTHING):
        async with runtime.opened(file):
            await runtime.register(["echo"])
            yield request.param


async def thread(tenant: str | None, ttl: Any = None) -> UUID:
    wanted = {"tenant_id": tenant} if tenant else {}
    made = await row(Threads.put(None, uuid4(), metadata=wanted, if_exists="raise", ttl=ttl))
    return UUID(str(made["thread_id"]))


def fill(file: Path, tenant: str, *threads: UUID) -> None:
    """Give each thread a research project with a page, and a session of a diagnosis."""
    with closing(tables.open(databases.url(file))) as database:
        for each in map(str, threads):
            of = {"tenant_id": tenant, "project_id": each}
            times = dict.fromkeys(("created_at", "updated_at", "beat_at"), "2026-01-01")
            told = {"question": "q", "status": "completed", "flag": "", "progress": {}}
            page = {"requested": "http://a.example", "attempts": 1, "fetched_at": "2026-01-01"}
            with database.writing(tenant) as connection:
                connection.execute(insert(projects).values(**of, **times, **told))
                connection.execute(insert(pages).values(**of, **page))
                diagnosis.append(connection, tenant, each, opened(), snapshot=True)
                texts.write(connection, tenant, each, "s1", "a text")
                texts.keep_digest(connection, tenant, each, "s1", 1, Digest())


def owners(file: Path) -> dict[str, set[str]]:
    """Return the threads that have rows, by table."""
    found = databases.contents(file)
    # The tenant is the first column, and the thread the second one.
    return {each.name: {one[1].strip("'") for one in found[each.name]} for each in thread_tables()}


async def _delete(thread_id: UUID) -> None:
    await rows(Threads.delete(None, thread_id))


async def _prune(thread_id: UUID) -> None:
    assert await Threads.prune([thread_id]) == 1


async def _expire(thread_id: UUID) -> None:
    assert await sweep_ttl() == (1, 1)


ENDS: dict[str, Callable[[UUID], Awaitable[None]]] = {
    "delete": _delete,
    "prune": _prune,
    "ttl": _expire,
}


@pytest.mark.parametrize("end", ENDS)
async def test_rows_go_with_their_thread_and_no_others(
    end: str, tenant: str | None, file: Path
) -> None:
    ttl = {"strategy": "delete", "ttl": -1} if end == "ttl" else None
    gone, kept = await thread(tenant, ttl), await thread(tenant)
    fill(file, tenant or "local", gone, kept)
    fill(file, "other", kept)
    assert owners(file) == {key: {str(gone), str(kept)} for key in TABLES}
    own = TenantScope(tenant) if tenant and end != "ttl" else scope.EVERYTHING
    with scope.within(own):
        await ENDS[end](gone)
    assert owners(file) == {key: {str(kept)} for key in TABLES}
    # The exception of the trigger that keeps events ends with the deletion.
    tables = databases.contents(file)
    assert not [one for one in tables["facts"] if "diagnosis_erase_tenant" in str(one)]


async def test_rows_stay_if_the_deletion_does_not_commit(tenant: str | None, file: Path) -> None:
    kept = await thread(tenant)
    fill(file, tenant or "local", kept)
    before = owners(file)

    def fail(conn: Connection) -> None:
        assert thread_rows.delete(conn, kept)
        raise RuntimeError("killed before the commit")

    with pytest.raises(RuntimeError, match="killed"):
        await current().database.write(fail)
    assert owners(file) == before


@pytest.mark.only("sqlite")  # A Postgres database of the tests has all tables from the start.
async def test_thread_is_deleted_before_the_tables_exist(tenant: str | None, file: Path) -> None:
    first = await thread(tenant)
    await _delete(first)
    second = await thread(tenant)
    # The graphs create their tables later, and from then on the rows go.
    fill(file, tenant or "local", second)
    await _delete(second)
    assert owners(file) == {key: set() for key in TABLES}


def test_every_table_with_rows_of_threads_is_named() -> None:
    found = {
        table.name
        for table in metadata.sorted_tables
        if {"thread_id", "session_id", "project_id"} & set(table.columns.keys())
    }
    assert found == TABLES | NOT_OF_A_THREAD
