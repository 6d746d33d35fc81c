"""Access to streams: decide by the database which streams a caller may follow.

The bus knows no permissions and still has events of deleted runs. So a caller may follow only the
streams of runs whose rows it can see.
"""

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.events.stream_key import THREAD, StreamKey
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.tenancy import scope


def is_restricted(visible: Visible) -> bool:
    """Return whether a filter or the tenant hides anything from the caller."""
    return visible.is_limited or not sees_everything()


def sees_everything() -> bool:
    """Return whether the calling task may see the rows of every tenant."""
    return scope.current(runtime.current().options.tenant_key) == scope.EVERYTHING


async def key_of(thread_id: UUID, run_id: Any = THREAD) -> StreamKey:
    """Return the caller's stream key for a thread, or for a run, which need not exist yet."""
    here = runtime.current()
    if here.options.tenant_key is not None:
        thread = await here.database.read(lambda conn: thread_rows.find(conn, thread_id))
        if thread is not None:
            return StreamKey.of_thread(thread)._replace(run_id=str(run_id))
    return StreamKey.here(thread_id, run_id)


async def find_run(
    thread_id: UUID, run_id: UUID, visible: Visible, *, may_be_gone: bool = False
) -> StreamKey | None:
    """Return the stream key of a run that the caller can see in a thread, or None.

    Args:
        visible: What the caller may see.
        may_be_gone: Whether to return None if the thread is missing.

    Raises:
        HTTPException: (404) the filter hides the thread, or it is missing.
    """

    def fn(conn: Connection) -> StreamKey | None:
        if visible.is_limited and thread_rows.find_visible(conn, thread_id, visible) is None:
            if may_be_gone and thread_rows.find(conn, thread_id) is None:
                return None
            raise HTTPException(404, "Thread not found")
        row = run_rows.find_in_thread(conn, run_id, thread_id)
        return None if row is None else StreamKey.of_run(row)

    return await runtime.current().database.read(fn)


class Admission:
    """Decides which events of a thread its subscriber may see.

    The thread may be deleted meanwhile, and another user may create one with the same id.

    Args:
        thread_id: The thread.
        visible: What the caller may see.
    """

    def __init__(self, thread_id: UUID, visible: Visible) -> None:
        self._thread_id, self._visible = thread_id, visible
        self._admits_all = not is_restricted(visible)
        self._admitted: set[str] = set()

    async def admits(self, run_id: str, *, is_last: bool = False) -> bool:
        """Return whether the subscriber can see a run of the thread.

        Args:
            run_id: The run, looked up once, or `THREAD` for the thread itself.
            is_last: Whether this is the run's last event.
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
        if thread_rows.find_visible(conn, self._thread_id, self._visible) is None:
            return False
        if run_id == THREAD:
            return True
        try:
            run = UUID(run_id)
        except ValueError:
            # Any client of Redis may have written it.
            return False
        return run_rows.find_in_thread(conn, run, self._thread_id) is not None
