"""The runtime in the test's process: its database, its queue and graphs, without HTTP."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from langgraph_runtime_sql import lifespan, migrations
from langgraph_runtime_sql.database import database, outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.ops.assistants.assistants import Assistants
from langgraph_runtime_sql.ops.assistants.rows import system_id
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.process import configuration, process
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.statuses import IN_FLIGHT
from tests.support import databases
from tests.support.checkpoints import api_settings, as_runtime
from tests.support.operations import rows
from tests.support.processes import GRAPHS

# Seconds; far more than any run needs, so that only a stuck run reaches the limit.
PATIENCE = 60.0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "graphs(*names): the test graphs that `settings` serves")


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Configure `langgraph_api` for a module as the platform does, with its `graphs`."""
    marker = request.node.get_closest_marker("graphs")
    with serving(*(() if marker is None else marker.args)):
        yield


@contextmanager
def serving(*names: str) -> Iterator[None]:
    """Configure `langgraph_api` as the platform does, with test graphs of these names."""
    with api_settings(), pytest.MonkeyPatch.context() as patch:
        # Change the objects in place, because other modules refer to them.
        for name in names:
            from langgraph_api import graph

            patch.setitem(graph.GRAPHS, name, _load(name))
            graph.SYSTEM_ASSISTANT_IDS.add(str(system_id(name)))
        yield


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"graph_{name}", GRAPHS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.graph


@asynccontextmanager
async def opened(
    path: Path,
    connect: Any = None,
    *,
    shared: bool = False,
    redis_url: str | None = None,
    prefix: str | None = None,
) -> AsyncIterator[database.Database]:
    """Open the runtime's database and bus, as at the start of a process, without a queue.

    Args:
        connect: Replaces the function that opens connections.
        shared: Whether other processes may use the database at the same time. Postgres only.
        redis_url: A Redis that carries events. Postgres only.
        prefix: The prefix of the channels in Redis.
    """
    db = migrations.open_database(
        databases.url(path),
        tenant_key=configuration().options.tenant_key,
        connect=connect,
        shared=shared,
    )
    await db.start()
    bus = await lifespan._make_bus(db, redis_url, prefix)
    watching = asyncio.create_task(outage.watch(db, bus.followers.wake))
    with as_runtime(db, bus=bus):
        try:
            await bus.start()
            yield db
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            await bus.stop()
            await db.stop()


def set_options(patch: pytest.MonkeyPatch, **options: Any) -> None:
    """Set options of the open runtime and of later ones."""
    wanted = Options(**options)
    patch.setattr(process, "configuration", replace(process.configuration, options=wanted))
    if process.running is not None:
        patch.setattr(process.running, "options", wanted)


def set_hooks(patch: pytest.MonkeyPatch, hooks: Any) -> None:
    """Set the host's hooks of the open runtime and of later ones."""
    patch.setattr(process, "configuration", replace(process.configuration, hooks=hooks))
    if process.running is not None:
        patch.setattr(process.running, "hooks", hooks)


@asynccontextmanager
async def working(slots: int = 10, *, isolated: bool = False) -> AsyncIterator[queue.Queue]:
    """Run a queue on the open database until the end of the block.

    Args:
        slots: The maximum number of concurrent runs.
    """
    work = queue.Queue(current(), slots, isolated=isolated)
    task = asyncio.create_task(work.run())
    try:
        yield work
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def register(names: Iterable[str]) -> None:
    """Create the system assistants of these graphs, as a server does."""
    for name in names:
        await rows(
            Assistants.put(
                None,
                system_id(name),
                graph_id=name,
                config={},
                context={},
                metadata={"created_by": "system"},
                if_exists="do_nothing",
                name=name,
                system=True,
            )
        )


async def start_run(thread_id: UUID | None, graph: str, input: Any, **payload: Any) -> Any:
    """Create a run as the route does.

    Args:
        thread_id: The run's thread; None for a stateless run.
        payload: More fields of the request's body.
    """
    from langgraph_api.models.run import create_valid_run

    payload = {"assistant_id": graph, "input": input, "if_not_exists": "create", **payload}
    thread = None if thread_id is None else str(thread_id)
    body: Any = payload
    return await create_valid_run(None, thread, body, {})  # type: ignore[arg-type]  # no handle


async def status(run_id: UUID) -> str | None:
    """Return a run's status, or None if the run does not exist."""
    statement = select(runs.c.status).where(runs.c.run_id == run_id)
    return await current().database.read(lambda conn: conn.scalar(statement))


async def ended(run_id: UUID) -> str | None:
    """Wait for the end of a run and return its status, or None if the run does not exist.

    Raises:
        TimeoutError: the run did not end within `PATIENCE` seconds.
    """
    async with asyncio.timeout(PATIENCE):
        while (found := await status(run_id)) in IN_FLIGHT:
            await asyncio.sleep(0.005)
    return found


async def thread(thread_id: UUID) -> Any:
    """Return a thread's row, or None if the thread does not exist."""

    def find(conn: Connection) -> Any:
        return thread_rows.find(conn, thread_id)

    return await current().database.read(find)
