"""Statements sent to Postgres in one batch: number of round trips, and failures."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Integer, Text, bindparam, func, literal, select

from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from langgraph_runtime_sql.database.schema import database_settings
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.request_context import claim
from tests.support import runtime
from tests.support.checkpoints import start_run

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.only("postgresql"),
    pytest.mark.graphs("echo"),
]

_NOTE = Prepared(
    database_settings.insert().values(name=bindparam("name"), value=bindparam("value"))
)
_VALUE = Prepared(
    select(database_settings.c.value).where(database_settings.c.name == bindparam("name"))
)
_COUNT = Prepared(select(func.count().label("count")).select_from(database_settings))
_DIVIDE = Prepared(select((literal(1) / bindparam("by", type_=Integer)).label("ratio")))
_ECHO = Prepared(select(bindparam("text", type_=Text).label("text")))


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime.opened(tmp_path / "pipeline.db") as opened:
        await runtime.register(("echo",))
        yield opened


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """Record the commands of each batch for which a write waits for the server."""
    seen: list[list[bytes]] = []
    exchange = Pipeline._exchange

    def counted(pipeline: Pipeline, waiting: list[Sent]) -> None:
        if threading.current_thread().name.startswith("postgres-write"):
            seen.append([sent.command.split()[0] for sent in waiting])
        exchange(pipeline, waiting)

    monkeypatch.setattr(Pipeline, "_exchange", counted)
    return seen


async def test_storing_a_checkpoint_is_one_round_trip(
    db: Database, round_trips: list[list[bytes]]
) -> None:
    owner = await start_run(db)
    claim.set(owner)
    saver, config = Checkpointer(), runtime_config()
    round_trips.clear()
    stored = await saver.aput(config, empty_checkpoint(), {"source": "loop"}, {})
    await saver.aput_writes(stored, [("x", 1), ("y", 2)], "task")
    assert [(each[0], each[-1]) for each in round_trips] == [(b"BEGIN", b"COMMIT")] * 2
    found = await Checkpointer().aget_tuple(stored)
    assert found is not None
    assert found.pending_writes == [("task", "x", 1), ("task", "y", 2)]


async def test_queueing_and_claiming_a_run_takes_few_round_trips(
    db: Database, round_trips: list[list[bytes]]
) -> None:
    asked: dict[str, Any] = {"messages": []}
    run = await runtime.start_run(uuid4(), "echo", asked)
    round_trips.clear()
    claimed = await db.write(lambda conn: run_claim.claim(conn, 5))
    assert [row["run_id"] for row, _ in claimed.runs] == [run["run_id"]]
    # Round trips: the time; the claim and the queue length; the thread's last event; the commit.
    assert len(round_trips) == 4
    counts = []
    for _ in range(2):
        round_trips.clear()
        await runtime.start_run(run["thread_id"], "echo", asked)
        counts.append(len(round_trips))
    # Round trips: the thread and assistant; the tenant's pending runs; the run. Once in ten minutes the
    # thread's labels follow.
    assert min(counts) == 3


def runtime_config() -> Any:
    return {"configurable": {"thread_id": str(uuid4()), "checkpoint_ns": ""}}


async def test_statements_after_a_failure_are_not_executed(db: Database) -> None:
    def fn(conn: Connection) -> None:
        conn.send(_NOTE, {"name": "before", "value": "1"})
        conn.send(_DIVIDE, {"by": 0})
        conn.send(_NOTE, {"name": "after", "value": "2"})

    before = await db.read(lambda conn: conn.scalar(_COUNT))
    for _ in range(3):
        with pytest.raises(ValueError, match="division by zero"):
            await db.write(fn)
    assert await db.read(lambda conn: conn.scalar(_COUNT)) == before


async def test_query_in_a_failed_transaction_raises(db: Database) -> None:
    def fn(conn: Connection) -> Any:
        asked = conn.prefetch(_ECHO, {"text": "never"})
        try:
            conn.scalar(_DIVIDE, {"by": 0})
        except psycopg.DataError:
            return asked.one(), conn.scalar(_ECHO, {"text": "in vain"})

    with pytest.raises(Exception, match="aborted"):
        await db.write(fn)
    assert await db.write(lambda conn: conn.scalar(_ECHO, {"text": "again"})) == "again"


async def test_deallocated_statement_is_prepared_again(db: Database) -> None:
    assert await db.write(lambda conn: conn.scalar(_ECHO, {"text": "one"})) == "one"
    await db.write(lambda conn: conn.raw.execute("DEALLOCATE ALL") and None)
    assert await db.write(lambda conn: conn.scalar(_ECHO, {"text": "two"})) == "two"


async def test_large_batch_does_not_block_both_sides(db: Database) -> None:
    """The data exceeds the network buffers, so both sides must read while they write."""
    large = "x" * 8_000_000

    def fn(conn: Connection) -> list[int]:
        asked = [conn.prefetch(_ECHO, {"text": large}) for _ in range(4)]
        return [len((each.one() or {})["text"]) for each in asked]

    assert await db.write(fn) == [len(large)] * 4


async def test_text_with_nul_is_refused_before_it_is_sent(db: Database) -> None:
    def fn(conn: Connection) -> None:
        with pytest.raises(psycopg.DataError, match="NUL"):
            conn.send(_NOTE, {"name": "nul", "value": "a\0b"})
        conn.send(_NOTE, {"name": "kept", "value": "b"})

    await db.write(fn)
    assert await db.read(lambda conn: conn.scalar(_VALUE, {"name": "kept"})) == "b"


async def test_write_is_repeated_on_a_new_connection(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def fn(conn: Connection) -> str:
        attempts.append(1)
        asked = conn.prefetch(_ECHO, {"text": "there"})
        if len(attempts) == 1:
            [pid] = conn.raw.execute("SELECT pg_backend_pid()").fetchone()
            with psycopg.connect(db.url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))
            conn.send(_NOTE, {"name": "lost", "value": "1"})
        row = asked.one()
        conn.send(_NOTE, {"name": "found", "value": "2"})
        return "" if row is None else str(row["text"])

    assert await db.write(fn) == "there"
    assert len(attempts) == 2
    assert await db.read(lambda conn: conn.scalar(_VALUE, {"name": "lost"})) is None
    assert await db.read(lambda conn: conn.scalar(_VALUE, {"name": "found"})) == "2"
