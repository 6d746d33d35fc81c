"""The result of a run whose thread goes with it: kept until its maker, elsewhere, has it.

What he is sent on the way from the process that works on it may be lost, and the database
knows nothing of such a run once it has ended. So where another process waits for it, both
rows stay with the result, without checkpoints, until it was read, or for `KEEP`.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from langgraph_runtime_sql import checkpoint, json_codec, runtime
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.json_codec import Unstorable
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ENDED, RunStatus, ThreadStatus

logger = logging.getLogger(__name__)

KEEP = timedelta(minutes=2)
# In a run's `configurable`: the process in which somebody waits for it.
AWAITED_BY = "__awaited_by__"

# The last that each run worked on here has said about its state.
_said: dict[str, tuple[str, bytes]] = {}
_discarding: set[asyncio.Task[None]] = set()


def mark(run_id: UUID, kwargs: Row) -> Row:
    """What goes into the `configurable` of a run that is being made."""
    here = runtime.current().bus
    awaited = here.shared and kwargs.get("temporary") and here.follows(str(run_id))
    return {AWAITED_BY: here.name} if awaited else {}


def note(claim: Claim, name: str, data: bytes) -> None:
    """Remember an event of a run that is worked on here, if its result may be in it."""
    if claim.temporary_thread_id is None or not runtime.current().bus.shared:
        return
    if name in ("values", "error") or (name == "updates" and b"__interrupt__" in data):
        _said[claim.run_id] = name, data


def forget(run_id: str) -> None:
    """An attempt at the run is over. Repeatable."""
    _said.pop(run_id, None)


def keep(conn: Connection, run: Row, failure: Exception | None = None) -> bool:
    """End a run with its result in place of deleting it, if somebody elsewhere waits for it.

    Args:
        failure: Why nobody can work on it.
    """
    if _awaited_by(run) in (None, runtime.current().bus.name):
        return False
    failed, said = _outcome(run, failure)
    # The clock of whoever sweeps what has had its time.
    moment = conn.now()
    checkpoint.delete_thread(conn, run["thread_id"])
    conn.execute(
        runs.update()
        .where(runs.c.run_id == run["run_id"])
        .values(
            status=RunStatus.ERROR if failed else RunStatus.SUCCESS,
            updated_at=moment,
            claimed_by=None,
            lease_until=None,
        )
    )
    status = ThreadStatus.ERROR if failed else ThreadStatus.IDLE
    conn.execute(
        threads.update()
        .where(threads.c.thread_id == run["thread_id"])
        .values(
            {
                "values": None if failed else said,
                "error": said if failed else None,
                "status": status,
                "resting_status": status,
                "updated_at": moment,
                "ttl_strategy": "delete",
                "ttl_minutes": KEEP.total_seconds() / 60,
                "expires_at": moment + KEEP,
            }
        )
    )
    return True


def _outcome(run: Row, failure: Exception | None) -> tuple[bool, Any]:
    """Whether the run has failed, and its error or values."""
    if failure is not None:
        return True, json_codec.plain(failure)
    name, data = _said.get(str(run["run_id"]), ("", b"null"))
    if b"\\u0000" in data:
        # Postgres cannot hold it. Its maker gets it on the way, unless that fails.
        return name == "error", None
    try:
        return name == "error", json_codec.plain(json_codec.loads(data))
    except Unstorable as error:
        return True, {"error": "Unstorable", "message": error.detail}


def discard_soon(run_id: UUID, thread_id: UUID) -> None:
    """Delete what was kept for a maker who has read it, without waiting for that."""
    if not runtime.current().bus.shared or runtime.current().bus.ended_here(str(run_id)):
        return

    def fn(conn: Connection) -> None:
        run = run_rows.find(conn, run_id)
        if run is not None and run["status"] in ENDED and _awaited_by(run):
            thread_rows.delete(conn, thread_id)
            stream = StreamKey.of_run(run).thread
            conn.after_commit(lambda: runtime.current().bus.drop(stream))

    async def discard() -> None:
        try:
            await runtime.current().database.write(fn)
        except RuntimeSqlError as error:
            # It goes when its time is over.
            logger.info("Cannot delete thread %s yet: %s", thread_id, error)

    task = asyncio.get_running_loop().create_task(discard())
    _discarding.add(task)
    task.add_done_callback(_discarding.discard)


def _awaited_by(run: Row) -> Any:
    config = run["kwargs"].get("config") or {}
    return (config.get("configurable") or {}).get(AWAITED_BY)
