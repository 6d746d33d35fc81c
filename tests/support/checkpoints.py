"""Helpers for tests of checkpoints: the API's settings, the runtime's database, a run."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph._internal import _serde
from langgraph.checkpoint.serde import _msgpack
from sqlalchemy import insert, select, update

from langgraph_runtime_sql import json_codec, migrations
from langgraph_runtime_sql.checkpoint import VALUES, examination, serialization
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.process import configuration, running
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import SqlStore
from tests.support import databases


@contextmanager
def api_settings() -> Iterator[None]:
    """Configure `langgraph_api` as the platform does, and unload it at the end of the block.

    `langgraph_api` reads its settings once, at its import. A later test that creates a platform in
    this process must import it again.
    """
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGGRAPH_RUNTIME_EDITION", "sql")
        patch.setenv("REDIS_URI", "none")
        for module in (_msgpack, _serde):
            patch.setattr(module, "STRICT_MSGPACK_ENABLED", True)
        yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "langgraph_api":
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            if parent in before and parent in sys.modules:
                # The package was loaded before the block and keeps a reference.
                vars(sys.modules[parent]).pop(child, None)
    # These caches hold objects of the unloaded modules.
    json_codec._encoder.cache_clear()
    serialization._serializer_class.cache_clear()


@asynccontextmanager
async def runtime_database(
    path: Path, *, store: SqlStore | None = None
) -> AsyncIterator[database.Database]:
    """Open the runtime's database as the platform does."""
    opened = migrations.open_database(databases.url(path), store=store)
    await opened.start()
    with as_runtime(opened, store=store):
        yield opened
    await opened.stop()


@contextmanager
def as_runtime(
    db: database.Database, *, store: SqlStore | None = None, bus: Bus | None = None
) -> Iterator[Runtime]:
    """Make `db` the database of this process's runtime, which has no queue.

    Args:
        bus: The bus; a new one that is not started by default.
    """
    configured = configuration()
    runtime = Runtime(
        database=db,
        bus=bus or Bus(db, run_claim.OWNER),
        store=store or SqlStore(),
        options=configured.options,
        hooks=configured.hooks,
    )
    with running(runtime):
        yield runtime


async def start_run(db: database.Database, thread_id: UUID | None = None) -> Claim:
    """Store a run in its first attempt, as the queue does, and return its claim.

    Args:
        thread_id: An existing thread; None creates one.
    """
    run_id, thread = uuid4(), thread_id or uuid4()
    now = datetime.now(UTC)
    dates = {"created_at": now, "updated_at": now}

    def start(conn: Connection) -> None:
        if thread_id is None:
            conn.execute(
                insert(threads).values(
                    thread_id=thread,
                    state_updated_at=now,
                    metadata={},
                    config={},
                    status="busy",
                    interrupts={},
                    **dates,
                )
            )
        conn.execute(
            insert(runs).values(
                run_id=run_id,
                thread_id=thread,
                assistant_id=uuid4(),
                status="running",
                metadata={},
                kwargs={},
                multitask_strategy="enqueue",
                attempt=1,
                **dates,
            )
        )

    await db.write(start)
    return Claim(run_id=str(run_id), attempt=1)


async def change_run(db: database.Database, run_id: str, **values: object) -> None:
    """Change a run's row without notice to its worker, as another process does."""
    changed = await db.write(
        lambda conn: conn.execute(
            update(runs).where(runs.c.run_id == UUID(run_id)).values(**values)
        )
    )
    assert changed == 1


def stored_rows(conn: Connection, thread_id: str | None = None) -> dict[str, list[Row]]:
    """Return the rows of checkpoints, of one thread or of all, by table in the order of their keys."""
    return {
        table.name: conn.fetchall(
            select(table)
            .where(*(() if thread_id is None else (table.c.thread_id == thread_id,)))
            .order_by(*table.primary_key.columns)
        )
        for table in VALUES
    }


def damage(conn: Connection, thread_id: str) -> list[Any]:
    """Return what is wrong with the stored checkpoints of a thread, and writes onto nothing."""
    rows = stored_rows(conn, thread_id)
    place = "checkpoint_ns", "checkpoint_id"
    there = {tuple(row[each] for each in place) for row in rows["thread_checkpoints"]}
    onto = {tuple(row[each] for each in place) for row in rows["thread_writes"]}
    return [*examination.broken(conn, thread_id), *(onto - there)]
