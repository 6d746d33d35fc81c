"""What a client does with runs, in this process, from creation to end."""

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


async def retry_503(action: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request that fails with 503, as a client does."""
    async with asyncio.timeout(runtime.PATIENCE):
        while True:
            try:
                return await action()
            except (DatabaseOverloaded, DatabaseBusy):
                await asyncio.sleep(0.005)


class Life:
    """Runs on one thread that are created, claimed, checkpointed, finished and cancelled.

    Attributes:
        acknowledged: The acknowledged runs and the end states that each may have after its
            acknowledged requests. None means that the run is deleted.
    """

    def __init__(self) -> None:
        self.thread = uuid4()
        self.acknowledged: Ends = {}

    def snapshot(self) -> Ends:
        """Return a copy of the acknowledged runs."""
        return {run_id: set(ends) for run_id, ends in self.acknowledged.items()}

    async def write_nothing(self) -> None:
        """Do a write that changes nothing."""
        await current().database.check()

    async def live(self) -> None:
        """Create, finish and cancel runs once."""
        run = await retry_503(lambda: runtime.start_run(self.thread, "steps", {"count": 2}))
        self.acknowledged[run["run_id"]] = {"success"}
        await retry_503(lambda: runtime.ended(run["run_id"]))
        for action, end in (("interrupt", "interrupted"), ("rollback", None)):
            sleeper = await retry_503(self._sleep)
            self.acknowledged[sleeper["run_id"]] = {"interrupted", end}
            await self._wait_until_running()
            await retry_503(lambda action=action: self._cancel(action))
            self.acknowledged[sleeper["run_id"]] = {end}

    async def _sleep(self) -> dict[str, UUID]:
        created: dict[str, UUID] = await runtime.start_run(
            self.thread, "sleeper", {"seconds": 60}, multitask_strategy="enqueue"
        )
        return created

    async def _wait_until_running(self) -> None:
        """Wait until a run is running or none is pending."""

        def statuses(conn: Connection) -> set[str]:
            return {row["status"] for row in run_rows.in_flight(conn, self.thread)}

        async with asyncio.timeout(runtime.PATIENCE):
            while await retry_503(lambda: current().database.read(statuses)) == {RunStatus.PENDING}:
                await asyncio.sleep(0.002)

    async def _cancel(self, action: str) -> None:
        """Cancel every run on the thread: an unacknowledged creation may have left one."""

        def ids(conn: Connection) -> list[UUID]:
            return [row["run_id"] for row in run_rows.in_flight(conn, self.thread)]

        while found := await current().database.read(ids):
            try:
                await Runs.cancel(None, found, thread_id=self.thread, action=action)
            except HTTPException as error:
                assert error.status_code == 404
            await asyncio.sleep(0.005)

    async def finish(self, acknowledged: Ends) -> None:
        """End the runs that a dead process left, given the runs that it acknowledged."""
        for run_id, ends in acknowledged.items():
            if ends == {"success"}:
                assert await runtime.ended(run_id) == "success"
        await self._cancel("interrupt")
        self.acknowledged = acknowledged
        await self.check_ends()

    async def check_ends(self, *, allowing: str | None = None) -> None:
        """Check that every run has an allowed end, or `allowing`, and no thread is busy."""
        for run_id, ends in self.acknowledged.items():
            assert await runtime.ended(run_id) in ends | ({allowing} if allowing else set())

        def in_flight(conn: Connection) -> list[UUID]:
            unfinished = select(runs.c.run_id).where(runs.c.status.not_in(ENDED))
            return [row["run_id"] for row in conn.fetchall(unfinished)]

        async with asyncio.timeout(runtime.PATIENCE):
            while await current().database.read(in_flight):
                await asyncio.sleep(0.005)
        busy = select(threads.c.thread_id).where(threads.c.status == "busy")
        assert await current().database.read(lambda conn: conn.fetchall(busy)) == []
