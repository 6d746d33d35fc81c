"""Searches that take long: nobody else waits for them, and they come to an end."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import literal, select, text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from langgraph_runtime_sql import database, guard
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.database import Database, open_database
from langgraph_runtime_sql.errors import TooSlow
from langgraph_runtime_sql.ops import thread_search
from langgraph_runtime_sql.statements import Prepared
from langgraph_runtime_sql.tables import threads
from tests.support import databases
from tests.support.checkpoints import api_settings

pytestmark = pytest.mark.usefixtures("each_database")

PATIENCE = 60
# It has no end.
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"
ONE = Prepared(select(literal(1).label("one")))


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_database(databases.url(tmp_path / "data.db"))
    await opened.start()
    yield opened
    await opened.stop()


def endless(conn: Connection) -> None:
    conn.fetchall(text(COUNT))


async def test_a_search_that_does_not_end_is_cut_off_and_the_next_is_not(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database, "SEARCH_SECONDS", 0.2)
        for _ in range(3):
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(TooSlow, match=r"cut off after 0.2 s"):
                    await db.search(endless)
    async with asyncio.timeout(PATIENCE):
        assert await db.search(lambda conn: conn.scalar(ONE)) == 1


async def test_whoever_reads_does_not_wait_for_those_who_search(db: Database) -> None:
    go_on = threading.Event()

    def waits(conn: Connection) -> int:
        go_on.wait(PATIENCE)
        return int(conn.scalar(ONE))

    searches = [asyncio.create_task(db.search(waits)) for _ in range(20)]
    try:
        async with asyncio.timeout(PATIENCE / 2):
            # The first of them are under way, and the others wait behind them.
            for _ in range(20):
                assert await db.read(lambda conn: conn.scalar(ONE)) == 1
            await db.check()
        assert not any(search.done() for search in searches)
    finally:
        go_on.set()
    assert await asyncio.gather(*searches) == [1] * 20


async def test_an_error_of_a_search_stays_what_it_is(db: Database) -> None:
    def fails(conn: Connection) -> None:
        conn.fetchall(select(threads.c.thread_id))
        raise KeyError("cause")

    with pytest.raises(KeyError, match="cause"):
        await db.search(fails)
    with pytest.raises(Exception, match="nowhere"):
        await db.search(lambda conn: conn.fetchall(text("SELECT 1 FROM nowhere")))


async def test_threads_are_searched_and_counted_so_and_the_client_is_told(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_current", db)
    monkeypatch.setattr(database, "SEARCH_SECONDS", 0.2)
    monkeypatch.setattr(thread_search, "_query", lambda conn, *_: endless(conn))

    async def search(request: Request) -> JSONResponse:
        found, _ = await thread_search.search(
            None, metadata=None, values=None, status=None, limit=1, offset=0
        )
        return JSONResponse([each async for each in found])

    async def count(request: Request) -> JSONResponse:
        return JSONResponse(await thread_search.count(None))

    app = Starlette(
        routes=[Route("/search", search), Route("/count", count)],
        exception_handlers=dict(guard.HANDLERS),
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for path in ("/search", "/count"):
            with api_settings():
                answer = await client.get(path, timeout=PATIENCE)
            assert answer.status_code == 503
            assert "cut off after 0.2 s. Ask for fewer threads" in answer.json()["detail"]
