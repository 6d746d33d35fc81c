"""Batches: create several runs in one transaction.

The API creates each run of a batch in a task of its own. The last task to arrive here creates
the runs of all.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row

Create = Callable[[Connection], list[Row]]


class Batch:
    """The pending creations of `size` runs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._creations: list[Create] = []
        self._created: asyncio.Future[list[list[Row]]] = asyncio.get_running_loop().create_future()

    async def write(self, create: Create) -> list[Row]:
        """Wait for the other runs of the batch, and create all of them.

        If another task fails before it arrives, the API's handle cancels the waiting tasks.

        Raises:
            HTTPException: (404) there is no such assistant for one of them.
        """
        place = len(self._creations)
        self._creations.append(create)
        if len(self._creations) < self._size:
            return (await self._created)[place]
        try:
            created = await runtime.current().database.write(self._create_all)
        except Exception as error:
            self._created.set_exception(error)
            # Mark it as retrieved: all waiting tasks may have been cancelled.
            self._created.exception()
            raise
        self._created.set_result(created)
        return created[place]

    def _create_all(self, conn: Connection) -> list[list[Row]]:
        created = [create(conn) for create in self._creations]
        if not all(created):
            raise HTTPException(404, "Thread or assistant not found.")
        return created


def begin(bodies: list[Any]) -> None:
    """Create the following runs of this context, one for each of `bodies`, as a batch."""
    if bodies:
        request_context.batch.set(Batch(len(bodies)))


def take() -> Batch | None:
    """Return the batch of the run to be created, or None.

    Returned once in each task, because an authorization handler may create other runs.
    """
    batch: Batch | None = request_context.batch.get()
    if batch is not None:
        request_context.batch.set(None)
    return batch
