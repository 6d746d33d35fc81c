"""The runtime in a test's own process: its database, its queue, real graphs, no HTTP."""

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

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.database import database
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

# Seconds; a run that takes longer than this is stuck.
PATIENCE = 60.0


@contextmanager
def serving(*names: str) -> Iterator[None]:
    """`langgraph_api` as the platform sets it up, with these of the test graphs."""
    with api_settings(), pytest.MonkeyPatch.context() as patch:
        from langgraph_api import graph

        # In place: other modules of it hold the same objects.
        for name in names:
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
    path: Path, connect: Any = None, *, shared: bool = False
) -> AsyncIterator[database.Database]:
    """The runtime's database and bus, as after the start of a process; nothing works on runs.

    Args:
        shared: Others may work with it at the same time. Postgres only.
    """
    db = migrations.open_database(
        databases.url(path),
        tenant_key=configuration().options.tenant_key,
        connect=connect,
        shared=shared,
    )
    await db.start()
    with as_runtime(db):
        try:
            yield db
        finally:
            await db.stop()


def set_options(patch: pytest.MonkeyPatch, **options: Any) -> None:
    """Give these options to the runtime that is opened, and to those opened from now on."""
    wanted = Options(**options)
    patch.setattr(process, "configuration", replace(process.configuration, options=wanted))
    if process.running is not None:
        patch.setattr(process.running, "options", wanted)


def set_hooks(patch: pytest.MonkeyPatch, hooks: Any) -> None:
    """The same with the host's hooks."""
    patch.setattr(process, "configuration", replace(process.configuration, hooks=hooks))
    if process.running is not None:
        patch.setattr(process.running, "hooks", hooks)


@asynccontextmanager
async def working(slots: int = 10, *, isolated: bool = False) -> AsyncIterator[queue.Queue]:
    """A queue that works on the runs of the opened database, as the lifespan has it."""
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
    """The assistants that a server makes of its graphs."""
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
    """What the route for new runs does; `payload` as in its body. Without a thread: stateless."""
    from langgraph_api.models.run import create_valid_run

    payload = {"assistant_id": graph, "input": input, "if_not_exists": "create", **payload}
    thread = None if thread_id is None else str(thread_id)
    body: Any = payload
    return await create_valid_run(None, thread, body, {})  # type: ignore[arg-type]  # no handle


async def status(run_id: UUID) -> str | None:
    """A run's status, None where it is gone."""
    statement = select(runs.c.status).where(runs.c.run_id == run_id)
    return await current().database.read(lambda conn: conn.scalar(statement))


async def ended(run_id: UUID) -> str | None:
    """Wait for the end of a run; its status, None where it is gone.

    Raises:
        TimeoutError: it did not end.
    """
    async with asyncio.timeout(PATIENCE):
        while (found := await status(run_id)) in IN_FLIGHT:
            await asyncio.sleep(0.005)
    return found


async def thread(thread_id: UUID) -> Any:
    """A thread as stored, None where it is gone."""

    def find(conn: Connection) -> Any:
        return thread_rows.find(conn, thread_id)

    return await current().database.read(find)
