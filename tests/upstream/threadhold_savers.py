"""Savers: a plugin of pytest that gives langgraph's own tests our saver in place of its SQLite savers.

It runs beside their `tests` package, so it imports nothing of ours but the runtime. Each test has a database of
its own, on an event loop of its own: the saver blocks any thread, and works on any loop.
"""

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

SECONDS = 60.0
REPLACED = ("_checkpointer_sqlite", "_checkpointer_sqlite_aio")

_loop = asyncio.new_event_loop()
_folder = TemporaryDirectory(prefix="threadhold-upstream-")
_numbers = itertools.count()


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

    path = Path(_folder.name) / f"{next(_numbers)}.db"
    database = migrations.open_database(f"sqlite:///{path}")
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
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()


@asynccontextmanager
async def async_saver() -> AsyncIterator[Any]:
    """Yield a saver on a new database, to a test of another loop."""
    with saver() as made:
        yield made


def _await(work: Any) -> None:
    asyncio.run_coroutine_threadsafe(work, _loop).result(SECONDS)
