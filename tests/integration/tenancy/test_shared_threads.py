"""Threads that tenants share: the work of one tenant never makes another's wait for all of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database import database as database_module
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.errors import LimitReached
from langgraph_runtime_sql.migrations import open_database
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.queue.node_threads import NodeThreads
from langgraph_runtime_sql.tenancy import scope
from tests.support import databases
from threadhold.http import json_limits

pytestmark = pytest.mark.usefixtures("each_database")

# Seconds; far more than any step needs.
PATIENCE = 60.0
# More than there are threads of a kind, and less than a group of writes.
MANY = 50
Work = Callable[..., Any]
Run = Callable[[Database, Work], Awaitable[Any]]


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    configuration = process.Configuration(options=Options(tenant_key="org"))
    monkeypatch.setattr(process.process, "configuration", configuration)
    database = open_database(databases.url(tmp_path / "shared.db"), tenant_key="org")
    with scope.within(scope.EVERYTHING):
        await database.start()
        yield database
        await database.stop()


@pytest.fixture
def closed() -> Iterator[threading.Event]:
    """Yield an event that work waits for; it is set in the end."""
    event = threading.Event()
    yield event
    event.set()


async def search(db: Database, work: Work) -> Any:
    return await db.search(work, "Ask for less.")


async def read(db: Database, work: Work) -> Any:
    return await db.read(work)


async def write(db: Database, work: Work) -> Any:
    return await db.write(work)


async def node(db: Database, work: Work) -> Any:
    return await asyncio.to_thread(work, None)


async def check_body(db: Database, work: Work) -> Any:
    return await json_limits.off_loop(json_limits.INLINE_BYTES, lambda: work(None))


def start(tenant: str, run: Run, db: Database, work: Work) -> asyncio.Task[Any]:
    async def started() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await run(db, work)

    with scope.within(scope.TenantScope(tenant)):
        return asyncio.create_task(started())


@pytest.mark.parametrize("run", [search, read, node, check_body])
async def test_blocked_tenant_leaves_a_thread_to_others(
    db: Database, closed: threading.Event, run: Run
) -> None:
    asyncio.get_running_loop().set_default_executor(NodeThreads(max_workers=4))
    blocked = [start("greedy", run, db, lambda _: closed.wait(PATIENCE)) for _ in range(MANY)]
    await asyncio.sleep(0)
    assert await start("modest", run, db, lambda _: "done") == "done"
    assert not any(each.done() for each in blocked)
    closed.set()
    await asyncio.gather(*blocked)


# SQLite has one writer; see below.
@pytest.mark.only("postgresql")
async def test_blocked_tenant_leaves_a_writer_to_others(
    db: Database, closed: threading.Event
) -> None:
    await test_blocked_tenant_leaves_a_thread_to_others(db, closed, write)


# Postgres has several writers; see above.
@pytest.mark.only("sqlite")
async def test_tenants_take_turns_at_the_only_writer(db: Database, closed: threading.Event) -> None:
    order: list[str] = []
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def block(_: Any) -> None:
        loop.call_soon_threadsafe(entered.set)
        closed.wait(PATIENCE)

    first = start("greedy", write, db, block)
    await entered.wait()
    greedy = [start("greedy", write, db, lambda _: order.append("greedy")) for _ in range(MANY)]
    await asyncio.sleep(0)
    modest = [start("modest", write, db, lambda _: order.append("modest")) for _ in range(2)]
    await asyncio.sleep(0)
    ended = asyncio.create_task(db.wait_for_writes())
    await asyncio.sleep(0)
    closed.set()
    await ended
    assert all(each.done() for each in (first, *greedy, *modest))
    assert [index for index, name in enumerate(order) if name == "modest"] in ([0, 2], [1, 3])


@pytest.mark.parametrize("run", [search, read, write, check_body])
async def test_waiting_work_of_a_tenant_is_bounded(
    db: Database, closed: threading.Event, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(database_module, "MOST_WAITING", MANY // 2)
    monkeypatch.setattr(json_limits, "MOST_WAITING", MANY // 2)
    started = [start("greedy", run, db, lambda _: closed.wait(PATIENCE)) for _ in range(MANY)]
    await asyncio.sleep(0)
    refused = [each.exception() for each in started if each.done()]
    assert refused
    for error in refused:
        assert isinstance(error, LimitReached)
        assert (error.status_code, error.limit) == (429, "tenant.waiting_operations")
        assert error.headers is not None and error.headers["retry-after"] == "1"
    # A run goes on, and other tenants are not affected.
    attempt = None if run is check_body else asyncio.create_task(run_as_attempt(run, db))
    await asyncio.sleep(0)
    closed.set()
    assert attempt is None or await attempt == "done"
    assert await start("modest", run, db, lambda _: "done") == "done"
    await asyncio.gather(*started, return_exceptions=True)


async def run_as_attempt(run: Run, db: Database) -> Any:
    request_context.claim.set(Claim("run", 1, None, 0.0, "owner"))
    return await start("greedy", run, db, lambda _: "done")
