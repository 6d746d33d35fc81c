"""What the tests of checkpoints share: the API's settings, the runtime's database, a run."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from langgraph._internal import _serde
from langgraph.checkpoint.serde import _msgpack
from sqlalchemy import insert, update

from langgraph_runtime_sql import json_codec, migrations
from langgraph_runtime_sql.checkpoint import serialization
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.events.bus import LocalBus
from langgraph_runtime_sql.process import configuration, running
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import SqlStore
from tests.support import databases


@contextmanager
def api_settings() -> Iterator[None]:
    """`langgraph_api` as the platform sets it up, gone again afterwards.

    It reads its settings once, when it is imported, so a test that makes a
    platform in this process must not find it imported.
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
                # Its package was there before, and would still hand it out.
                vars(sys.modules[parent]).pop(child, None)
    # What was made of it stays with it.
    json_codec._encoder.cache_clear()
    serialization._serializer_class.cache_clear()


@asynccontextmanager
async def runtime_database(
    path: Path, *, store: SqlStore | None = None
) -> AsyncIterator[database.Database]:
    """The runtime's database, as it is while the platform runs."""
    opened = migrations.open_database(databases.url(path), store=store)
    await opened.start()
    with as_runtime(opened, store=store):
        yield opened
    await opened.stop()


@contextmanager
def as_runtime(db: database.Database, *, store: SqlStore | None = None) -> Iterator[Runtime]:
    """Make `db` the database of this process's runtime, which has a new bus and no queue."""
    configured = configuration()
    runtime = Runtime(
        database=db,
        bus=LocalBus(60),
        store=store or SqlStore(),
        options=configured.options,
        hooks=configured.hooks,
    )
    with running(runtime):
        yield runtime


async def start_run(db: database.Database, thread_id: UUID | None = None) -> Claim:
    """A run that is running its first attempt, as the queue leaves it."""
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
    """What the queue does to a run while its worker knows nothing of it."""
    changed = await db.write(
        lambda conn: conn.execute(
            update(runs).where(runs.c.run_id == UUID(run_id)).values(**values)
        )
    )
    assert changed == 1
