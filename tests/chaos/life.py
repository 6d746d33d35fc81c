"""Life: what a client does with runs, in this process, from the creation of one to its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID, uuid4

from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.statuses import ENDED, RunStatus
from tests.support import runtime

GRAPHS = ("steps", "sleeper")

T = TypeVar("T")
Ends = dict[UUID, set[str | None]]


async def insist(deed: Callable[[], Awaitable[T]]) -> T:
    """What a client does whose request got a 503: it asks again."""
    async with asyncio.timeout(runtime.PATIENCE):
        while True:
            try:
                return await deed()
            except (DatabaseOverloaded, DatabaseBusy):
                await asyncio.sleep(0.005)


class Life:
    """Runs on one thread that are created, claimed, checkpointed, finished and cancelled.

    Attributes:
        acknowledged: The runs that were acknowledged, and how each may end, by what has
            been asked and acknowledged of it since; None is without a trace.
    """

    def __init__(self) -> None:
        self.thread = uuid4()
        self.acknowledged: Ends = {}

    def so_far(self) -> Ends:
        """A copy of what has been acknowledged."""
        return {run_id: set(ends) for run_id, ends in self.acknowledged.items()}

    async def knock(self) -> None:
        """A write that changes nothing."""
        await current().database.check()

    async def live(self) -> None:
        """All of it, once."""
        run = await insist(lambda: runtime.start_run(self.thread, "steps", {"count": 2}))
        self.acknowledged[run["run_id"]] = {"success"}
        await insist(lambda: runtime.ended(run["run_id"]))
        for action, end in (("interrupt", "interrupted"), ("rollback", None)):
            sleeper = await insist(self._sleep)
            self.acknowledged[sleeper["run_id"]] = {"interrupted", end}
            await self._wait_until_running()
            await insist(lambda action=action: self._cancel(action))
            self.acknowledged[sleeper["run_id"]] = {end}

    async def _sleep(self) -> dict[str, UUID]:
        created: dict[str, UUID] = await runtime.start_run(
            self.thread, "sleeper", {"seconds": 60}, multitask_strategy="enqueue"
        )
        return created

    async def _wait_until_running(self) -> None:
        """Or until nothing is left that could."""

        def statuses(conn: Connection) -> set[str]:
            return {row["status"] for row in run_rows.in_flight(conn, self.thread)}

        async with asyncio.timeout(runtime.PATIENCE):
            while await insist(lambda: current().database.read(statuses)) == {RunStatus.PENDING}:
                await asyncio.sleep(0.002)

    async def _cancel(self, action: str) -> None:
        """Everything on the thread: a creation that was not acknowledged may have left a run."""

        def ids(conn: Connection) -> list[UUID]:
            return [row["run_id"] for row in run_rows.in_flight(conn, self.thread)]

        while found := await current().database.read(ids):
            try:
                await Runs.cancel(None, found, thread_id=self.thread, action=action)
            except HTTPException as error:
                assert error.status_code == 404
            await asyncio.sleep(0.005)

    async def finish(self, acknowledged: Ends) -> None:
        """Bring to its end what a dead process has left, of which this was acknowledged."""
        for run_id, ends in acknowledged.items():
            if ends == {"success"}:
                assert await runtime.ended(run_id) == "success"
        await self._cancel("interrupt")
        self.acknowledged = acknowledged
        await self.has_ended_well()

    async def has_ended_well(self, *, allowing: str | None = None) -> None:
        """Every run has ended as it may, or so, and nothing keeps a thread busy."""
        for run_id, ends in self.acknowledged.items():
            assert await runtime.ended(run_id) in ends | ({allowing} if allowing else set())

        def in_flight(conn: Connection) -> list[UUID]:
            going = select(runs.c.run_id).where(runs.c.status.not_in(ENDED))
            return [row["run_id"] for row in conn.fetchall(going)]

        async with asyncio.timeout(runtime.PATIENCE):
            while await current().database.read(in_flight):
                await asyncio.sleep(0.005)
        busy = select(threads.c.thread_id).where(threads.c.status == "busy")
        assert await current().database.read(lambda conn: conn.fetchall(busy)) == []
