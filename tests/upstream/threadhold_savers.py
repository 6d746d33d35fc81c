"""Savers: a plugin of pytest that gives langgraph's own tests our saver in place of its SQLite savers.

`THREADHOLD_TESTS_TEMPLATE` may name a Postgres database with all tables: each test then has a copy of it.

It runs beside their `tests` package, so it imports nothing of ours but the runtime. Each test has a database of
its own, on an event loop of its own: the saver blocks any thread, and works on any loop.
"""

import asyncio
import itertools
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy.engine import make_url

SECONDS = 60.0
REPLACED = ("_checkpointer_sqlite", "_checkpointer_sqlite_aio")

_loop = asyncio.new_event_loop()
_folder = TemporaryDirectory(prefix="threadhold-upstream-")
_numbers = itertools.count()
_template = os.environ.get("THREADHOLD_TESTS_TEMPLATE")


def pytest_configure(config: pytest.Config) -> None:
    threading.Thread(target=_loop.run_forever, daemon=True).start()


def pytest_unconfigure(config: pytest.Config) -> None:
    _loop.call_soon_threadsafe(_loop.stop)
    _folder.cleanup()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the savers, after the conftest of the tests has imported them by name."""
    replaced = 0
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[2] in ("conftest", "conftest_checkpointer"):
            for each, made in zip(REPLACED, (saver, async_saver), strict=True):
                if hasattr(module, each):
                    setattr(module, each, made)
                    replaced += 1
    if not replaced:
        raise pytest.UsageError("the tests have no savers of the expected names")


@contextmanager
def saver() -> Iterator[Any]:
    """Yield a saver on a new database."""
    from langgraph_runtime_sql import migrations
    from langgraph_runtime_sql.checkpoint import Checkpointer
    from langgraph_runtime_sql.events.bus import Bus
    from langgraph_runtime_sql.ops.runs import claim
    from langgraph_runtime_sql.process import configuration, running
    from langgraph_runtime_sql.runtime import Runtime
    from langgraph_runtime_sql.store.store import SqlStore

    url = _new_database()
    database = migrations.open_database(url)
    configured = configuration()
    _await(database.start())
    opened = Runtime(
        database=database,
        bus=Bus(database, claim.OWNER),
        store=SqlStore(),
        options=configured.options,
        hooks=configured.hooks,
    )
    try:
        with running(opened):
            yield Checkpointer()
    finally:
        _await(database.stop())
        _drop(url)


def _new_database() -> str:
    """Create a database, and return its URL."""
    name = f"upstream_{os.getpid()}_{next(_numbers)}"
    if not _template:
        return f"sqlite:///{_folder.name}/{name}.db"
    url = make_url(_template)
    _execute("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, str(url.database))
    return url.set(database=name).render_as_string(hide_password=False)


def _drop(url: str) -> None:
    """Remove a database of `_new_database`."""
    if _template:
        _execute("DROP DATABASE {} WITH (FORCE)", str(make_url(url).database))
        return
    path = Path(str(make_url(url).database))
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def _execute(statement: str, *names: str) -> None:
    import psycopg
    from psycopg import sql

    dsn = make_url(str(_template)).set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True) as raw:
        raw.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@asynccontextmanager
async def async_saver() -> AsyncIterator[Any]:
    """Yield a saver on a new database, to a test of another loop."""
    with saver() as made:
        yield made


def _await(work: Any) -> None:
    asyncio.run_coroutine_threadsafe(work, _loop).result(SECONDS)
