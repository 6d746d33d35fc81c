"""The connection is lost during a commit, so its result is unknown."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import literal, select

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.errors import DatabaseOverloaded
from tests.support import runtime
from tests.support.served import lines

GRAPHS = ("steps",)
pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.only("postgresql"),
    pytest.mark.graphs(*GRAPHS),
]

_FIVE = Prepared(select(literal(5).label("five")))
STEPS = 12


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "postgres.db") as opened:
        await runtime.register(GRAPHS)
        yield opened


class Loss:
    """Loses the connection at the next commit of the named threads, once it is armed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._exchange = Pipeline._exchange
        self._threads: str | None = None
        self._done = False
        patch.setattr(Pipeline, "_exchange", lambda pipeline, sent: self.exchange(pipeline, sent))

    def arm(self, threads: str, *, done: bool = False) -> None:
        """Lose the next commit, after it has happened if `done`, otherwise before."""
        self._done, self._threads = done, threads

    def exchange(self, pipeline: Pipeline, sent: list[Sent]) -> None:
        """Replace the pipeline's own exchange."""
        here = threading.current_thread().name
        if (
            sent[-1].command != b"COMMIT"
            or self._threads is None
            or not here.startswith(self._threads)
        ):
            self._exchange(pipeline, sent)
            return
        self._threads = None
        if self._done:
            self._exchange(pipeline, sent)
        pipeline.raw.close()
        raise psycopg.OperationalError("the connection is lost")


@pytest.mark.parametrize("done", [False, True])
async def test_run_continues_after_a_commit_with_unknown_result(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    loss, record, thread_id = Loss(monkeypatch), tmp_path / "record", uuid4()
    async with runtime.working():
        asked = {"count": STEPS, "delay": 0.05, "record": str(record)}
        run = await runtime.start_run(thread_id, "steps", asked)
        await lines(record, 3)
        loss.arm("postgres-write", done=done)
        assert await runtime.ended(run["run_id"]) == "success"
        thread = await runtime.thread(thread_id)
    assert thread["values"]["done"] == list(range(STEPS))
    assert loss._threads is None


# The API passes `durability` also for stateless runs, where it has no effect.
@pytest.mark.filterwarnings("ignore:`durability` has no effect")
async def test_stateless_run_is_retried_after_a_lost_commit(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, record = Loss(monkeypatch), tmp_path / "record"
    async with runtime.working():
        run = await runtime.start_run(
            None, "steps", {"count": 3, "delay": 0.05, "record": str(record)}
        )
        await lines(record, 3)
        # The next write is the end of the run.
        loss.arm("postgres-write")
        assert await runtime.ended(run["run_id"]) is None
        async with asyncio.timeout(runtime.PATIENCE):
            while await runtime.thread(run["thread_id"]) is not None:
                await asyncio.sleep(0.005)


async def test_read_returns_its_rows_although_its_commit_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = Loss(monkeypatch)
    loss.arm("postgres-read")
    assert await db.read(lambda conn: conn.scalar(_FIVE)) == 5
    assert await db.read(lambda conn: conn.scalar(_FIVE)) == 5
    async with asyncio.timeout(runtime.PATIENCE):
        # A read does not wait for its commit.
        while loss._threads is not None:
            await asyncio.sleep(0.005)
    assert await db.read(lambda conn: conn.scalar(_FIVE)) == 5


async def test_write_with_unknown_result_is_not_repeated(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, calls = Loss(monkeypatch), []
    loss.arm("postgres-write")
    with pytest.raises(DatabaseOverloaded, match="may or may not be stored"):
        await db.write(lambda conn: calls.append(1))
    assert calls == [1]
