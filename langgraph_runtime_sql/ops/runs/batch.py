"""A batch of runs: all of them are created, or none.

The API creates each run of a batch in a task of its own. Those tasks meet here,
and the last one to come creates them all, in one transaction.
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
    """The creations of `size` runs, each awaited by its task."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._creations: list[Create] = []
        self._created: asyncio.Future[list[list[Row]]] = asyncio.get_running_loop().create_future()

    async def write(self, create: Create) -> list[Row]:
        """Create this run with all the others. Until they have come, it waits.

        Where one fails before it comes, the API's handle cancels those that wait.

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
            # Nobody may be left to hear it.
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
    """What is created from here, one run for each of `bodies`, is one batch."""
    if bodies:
        request_context.batch.set(Batch(len(bodies)))


def take() -> Batch | None:
    """The batch that the run about to be created belongs to, or None.

    Given to a task once: an authorization handler may create runs of its own.
    """
    batch: Batch | None = request_context.batch.get()
    if batch is not None:
        request_context.batch.set(None)
    return batch
