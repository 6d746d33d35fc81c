"""Access to streams: which of them a caller may follow, as the database says.

The bus has events of runs that are gone, and does not know what a caller may see. So a stream is
followed by the run's row, which the caller must be able to see.
"""

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.ops.authorization import Filter
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.tenancy import scope


def is_restricted(permitted: Filter) -> bool:
    """Whether there is anything that the caller may not see.

    Args:
        permitted: The filter of the host's handler.
    """
    return bool(permitted) or not sees_everything()


def sees_everything() -> bool:
    """Return whether the calling task may see the rows of every tenant."""
    return scope.current(runtime.current().options.tenant_key) == scope.EVERYTHING


async def key_of(thread_id: UUID, run_id: Any = THREAD) -> StreamKey:
    """The key by which the caller follows a thread, or a run in it, which need not exist yet."""
    if runtime.current().options.tenant_key is not None:
        thread = await runtime.current().database.read(
            lambda conn: thread_rows.find(conn, thread_id)
        )
        if thread is not None:
            return StreamKey.of_thread(thread)._replace(run_id=str(run_id))
    return StreamKey.here(thread_id, run_id)


async def find_run(
    thread_id: UUID, run_id: UUID, permitted: Filter, *, may_be_gone: bool = False
) -> StreamKey | None:
    """The key of a run that the caller can see in a thread, or None.

    Args:
        permitted: The filter of the host's handler.
        may_be_gone: Whether the thread may be missing.

    Raises:
        HTTPException: (404) the filter hides the thread, or it is missing.
    """

    def fn(conn: Connection) -> StreamKey | None:
        if permitted and thread_rows.find_permitted(conn, thread_id, permitted) is None:
            if may_be_gone and thread_rows.find(conn, thread_id) is None:
                return None
            raise HTTPException(404, "Thread not found")
        row = run_rows.find(conn, run_id)
        return None if row is None or row["thread_id"] != thread_id else StreamKey.of_run(row)

    return await runtime.current().database.read(fn)


class Admission:
    """Says which events of a thread its follower may be told.

    A thread with the same id may have been deleted, and made again by another user.

    Args:
        thread_id: The thread.
        permitted: The filter of the host's handler.
    """

    def __init__(self, thread_id: UUID, permitted: Filter) -> None:
        self._thread_id, self._permitted = thread_id, permitted
        self._admits_all = not is_restricted(permitted)
        self._admitted: set[str] = set()

    async def admits(self, run_id: str, *, is_last: bool = False) -> bool:
        """Whether the follower can see a run of the thread, or with `THREAD` the thread itself.

        Args:
            run_id: The run; it is looked up once.
            is_last: Whether this is its last event.
        """
        if self._admits_all or run_id in self._admitted:
            if is_last:
                self._admitted.discard(run_id)
            return True
        if not await runtime.current().database.read(lambda conn: self._sees(conn, run_id)):
            return False
        if run_id != THREAD and not is_last:
            self._admitted.add(run_id)
        return True

    def _sees(self, conn: Connection, run_id: str) -> bool:
        if thread_rows.find_permitted(conn, self._thread_id, self._permitted) is None:
            return False
        if run_id == THREAD:
            return True
        try:
            run = UUID(run_id)
        except ValueError:
            # Anybody who reaches Redis may have written it.
            return False
        row = run_rows.find(conn, run)
        return row is not None and row["thread_id"] == self._thread_id
