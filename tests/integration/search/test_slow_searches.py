"""Slow searches: other requests do not wait for them, and they are cut off."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph.store.base import GetOp, Op, PutOp, SearchOp
from sqlalchemy import literal, select, text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from langgraph_runtime_sql.database import database, schema
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.errors import SearchTimeout
from langgraph_runtime_sql.migrations import open_database
from langgraph_runtime_sql.ops import Assistants, Crons
from langgraph_runtime_sql.ops.assistants import assistants
from langgraph_runtime_sql.ops.crons import crons
from langgraph_runtime_sql.ops.threads import search as thread_search
from langgraph_runtime_sql.store import batch as store_batch
from langgraph_runtime_sql.store.store import Store
from tests.support import databases
from tests.support.checkpoints import api_settings, as_runtime
from threadhold.http import error_handlers

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60
# A query without an end.
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"
ADVICE = "Ask for less."
ONE = Prepared(select(literal(1).label("one")))


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_database(databases.url(tmp_path / "data.db"))
    await opened.start()
    yield opened
    await opened.stop()


def endless(conn: Connection) -> None:
    conn.fetchall(text(COUNT))


async def test_endless_search_is_cut_off_and_the_next_search_works(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database, "SEARCH_SECONDS", 0.2)
        for _ in range(3):
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(SearchTimeout, match=r"cut off after 0.2 s. Ask for less"):
                    await db.search(endless, ADVICE)
    async with asyncio.timeout(PATIENCE):
        assert await db.search(lambda conn: conn.scalar(ONE), ADVICE) == 1


async def test_reads_do_not_wait_for_searches(db: Database) -> None:
    release = threading.Event()

    def waits(conn: Connection) -> int:
        release.wait(PATIENCE)
        return int(conn.scalar(ONE))

    searches = [asyncio.create_task(db.search(waits, ADVICE)) for _ in range(20)]
    try:
        async with asyncio.timeout(PATIENCE / 2):
            # The first searches run, and the others wait for them.
            for _ in range(20):
                assert await db.read(lambda conn: conn.scalar(ONE)) == 1
            await db.check()
        assert not any(search.done() for search in searches)
    finally:
        release.set()
    assert await asyncio.gather(*searches) == [1] * 20


async def test_error_of_a_search_is_raised_unchanged(db: Database) -> None:
    def fails(conn: Connection) -> None:
        conn.fetchall(select(threads.c.thread_id))
        raise KeyError("cause")

    with pytest.raises(KeyError, match="cause"):
        await db.search(fails, ADVICE)
    with pytest.raises(Exception, match="nowhere"):
        await db.search(lambda conn: conn.fetchall(text("SELECT 1 FROM nowhere")), ADVICE)


async def test_time_between_statements_counts_for_the_limit(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SEARCH_SECONDS", 0.2)

    def slow(conn: Connection) -> None:
        for _ in range(PATIENCE * 10):
            conn.check_deadline()
            time.sleep(0.1)

    with pytest.raises(SearchTimeout):
        await db.search(slow, ADVICE)
    # A read has no time limit.
    await db.read(lambda conn: conn.check_deadline())


# A condition that takes the whole time of a search.
SLOW = text(f"({COUNT}) > 0")


def slow_test(_filter: Any) -> Callable[[Any], bool]:
    def passes(_value: Any) -> bool:
        time.sleep(0.3)
        return False

    return passes


async def slow_condition(*_: Any) -> list[Any]:
    return [SLOW]


async def search_threads() -> Any:
    asked: Any = {"metadata": None, "values": None, "status": None, "limit": 1, "offset": 0}
    return await thread_search.search(None, **asked)


async def search_assistants() -> Any:
    asked: Any = {"graph_id": None, "name": None, "metadata": None, "limit": 1, "offset": 0}
    return await Assistants.search(None, **asked)


async def search_crons() -> Any:
    asked: Any = {"assistant_id": None, "thread_id": None, "enabled": None, "limit": 1, "offset": 0}
    return await Crons.search(None, **asked)


async def search_store_in_a_thread() -> Any:
    return await asyncio.to_thread(Store().search, ("a",), filter={"x": 1})


SEARCHES: dict[str, Callable[[], Awaitable[Any]]] = {
    "threads": search_threads,
    "threads/count": partial(thread_search.count, None),
    "assistants": search_assistants,
    "assistants/count": partial(Assistants.count, None),
    "crons": search_crons,
    "crons/count": partial(Crons.count, None),
    "store": lambda: Store().asearch(("a",), filter={"x": 1}),
    "store/sync": search_store_in_a_thread,
}


@pytest.fixture
async def stocked(db: Database) -> AsyncIterator[Database]:
    """Store an assistant, a cron and three items in the runtime's database."""
    with as_runtime(db):
        yield await fill_all(db)


async def fill_all(db: Database) -> Database:
    now = datetime.now(UTC)
    about = {"assistant_id": uuid4(), "metadata": {}, "created_at": now, "updated_at": now}
    versioned = {"graph_id": "g", "name": "n", "config": {}, "context": {}, "version": 1}
    due = {"schedule": "0 0 1 1 *", "enabled": False, "next_run_date": now, "payload": {}}

    def fill(conn: Connection) -> None:
        conn.execute(schema.assistants.insert().values(**about, **versioned))
        conn.execute(schema.crons.insert().values(cron_id=uuid4(), **about, **due))

    await db.write(fill)
    for name in ("first", "second", "third"):
        await Store().aput(("a",), name, {"x": 2})
    return db


@pytest.mark.parametrize("name", SEARCHES)
async def test_every_slow_search_is_answered_with_503(
    name: str, stocked: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SEARCH_SECONDS", 0.2)
    monkeypatch.setattr(thread_search, "query_of", lambda conn, *_: endless(conn))
    monkeypatch.setattr(assistants, "_matching", lambda *_: [SLOW])
    monkeypatch.setattr(crons, "_matching", slow_condition)
    monkeypatch.setattr(store_batch, "compile_filter", slow_test)

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(repr(await SEARCHES[name]()))

    app = Starlette(routes=[Route("/", answer)], exception_handlers=dict(error_handlers.HANDLERS))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        with api_settings():
            response = await client.get("/", timeout=PATIENCE)
    assert response.status_code == 503
    kind = name.partition("/")[0]
    advice = "Search a longer namespace" if kind == "store" else f"Ask for fewer {kind}"
    assert f"cut off after 0.2 s. {advice}" in response.json()["detail"]


async def test_only_searches_wait_for_searches(
    stocked: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SEARCH_SECONDS", PATIENCE)
    release = threading.Event()
    held = [asyncio.create_task(stocked.search(lambda _: release.wait(PATIENCE), ADVICE))]
    held += [asyncio.create_task(stocked.search(lambda _: release.wait(PATIENCE), ADVICE))]
    store = Store()
    mixed: list[Op] = [SearchOp(("a",)), GetOp(("a",), "first"), PutOp(("a",), "first", {"x": 3})]
    with api_settings():
        # Before the searches, whose threads would import it at the same time.
        import_module("langgraph_api.config")
        waiting = [asyncio.ensure_future(search()) for search in SEARCHES.values()]
        waiting += [asyncio.ensure_future(store.alist_namespaces())]
        writing = asyncio.create_task(store.abatch(mixed))
        try:
            async with asyncio.timeout(PATIENCE / 2):
                for number in range(10):
                    await store.aput(("b",), "key", {"number": number})
                    found = await store.aget(("b",), "key")
                    assert found is not None
                    assert found.value == {"number": number}
            assert not any(each.done() for each in (*waiting, writing))
        finally:
            release.set()
        await asyncio.gather(*held, *waiting)
    results: list[Any] = await writing
    before, first, _ = results
    assert {item.key: item.value["x"] for item in before} == dict.fromkeys(
        ("first", "second", "third"), 2
    )
    assert first.value == {"x": 2}
    after = await store.aget(("a",), "first")
    assert after is not None
    assert after.value == {"x": 3}
