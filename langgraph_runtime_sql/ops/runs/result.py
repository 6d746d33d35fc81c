"""Results of stateless runs: stored until the process that waits for them has read them.

A stateless run is deleted with its thread and events when it ends, so a client at another process
could miss the result. So if another process waits, the rows of the run and its thread stay with the
result, without checkpoints, until it was read, or for `KEEP`.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from langgraph_runtime_sql import checkpoint, json_codec, runtime
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.gate.writes import own_write
from langgraph_runtime_sql.json_codec import Unstorable
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ENDED, RunStatus, ThreadStatus

logger = logging.getLogger(__name__)

KEEP = timedelta(minutes=2)
# The key in a run's `configurable` of the process that waits for the result.
AWAITED_BY = "__awaited_by__"

# The last event with the state or error of each run of this process.
_last_output: dict[str, tuple[str, bytes]] = {}
_discarding: set[asyncio.Task[None]] = set()


def mark(run_id: UUID, kwargs: Row) -> Row:
    """Return the entry for the `configurable` of a new run, if this process waits for it."""
    bus = runtime.current().bus
    is_awaited = bus.shared and kwargs.get("temporary") and bus.followers.follows(str(run_id))
    return {AWAITED_BY: bus.name} if is_awaited else {}


def record(claim: Claim, name: str, data: bytes) -> None:
    """Record an event of a run of this process, if it may contain the result."""
    if claim.temporary_thread_id is None:
        return
    if name in ("values", "error") or (name == "updates" and b"__interrupt__" in data):
        _last_output[claim.run_id] = name, data


def forget(run_id: str) -> None:
    """Forget the recorded event of a run. Repeatable."""
    _last_output.pop(run_id, None)


def outcome(run: Row) -> dict[str, Any]:
    """Return what a webhook says about a stateless run of this process that ends."""
    failed, result = _outcome(run, None)
    if failed:
        return {"status": RunStatus.ERROR, "error": result}
    return {"status": RunStatus.SUCCESS, "values": result}


def keep(conn: Connection, run: Row, failure: Exception | None = None) -> bool:
    """End a run and store its result, if another process waits for it.

    Args:
        failure: Why no worker could start the run.

    Returns:
        False if no other process waits. The caller then deletes the run.
    """
    if _awaited_by(run) in (None, runtime.current().bus.name):
        return False
    failed, result = _outcome(run, failure)
    now = conn.now()
    checkpoint.delete_thread(conn, run["thread_id"])
    run_rows.end(conn, run["run_id"], RunStatus.ERROR if failed else RunStatus.SUCCESS, now)
    status = ThreadStatus.ERROR if failed else ThreadStatus.IDLE
    documents = {"values": None if failed else result, "error": result if failed else None}
    conn.execute(
        threads.update()
        .where(threads.c.thread_id == run["thread_id"])
        .values(
            {
                **seal_row(conn, threads, run["thread_id"], run["tenant"], documents),
                "status": status,
                "resting_status": status,
                "updated_at": now,
                "ttl_strategy": "delete",
                "ttl_minutes": KEEP.total_seconds() / 60,
                "expires_at": now + KEEP,
            }
        )
    )
    return True


def _outcome(run: Row, failure: Exception | None) -> tuple[bool, Any]:
    """Return whether the run has failed, and its error or values."""
    if failure is not None:
        return True, json_codec.plain(failure)
    name, data = _last_output.get(str(run["run_id"]), ("", b"null"))
    if b"\\u0000" in data:
        # Postgres cannot store it. The client has it only from the stream.
        return name == "error", None
    try:
        return name == "error", json_codec.plain(json_codec.loads(data))
    except Unstorable as error:
        return True, {"error": "Unstorable", "message": error.detail}


def discard_soon(run_id: UUID, thread_id: UUID) -> None:
    """Start to delete a stored result that was read."""
    here = runtime.current()
    if not here.bus.shared or here.bus.runs.has_ended(str(run_id)):
        return

    def fn(conn: Connection) -> None:
        run = run_rows.find(conn, run_id)
        if run is not None and run["status"] in ENDED and _awaited_by(run):
            thread_rows.delete(conn, thread_id)
            stream = StreamKey.of_run(run).thread
            conn.after_commit(lambda: here.bus.followers.drop(stream))

    async def discard() -> None:
        try:
            with own_write("result"):
                await here.database.write(fn)
        except RuntimeSqlError as error:
            # The thread is deleted when it expires.
            logger.info("Deletion of thread %s failed: %s", thread_id, type(error).__name__)

    task = asyncio.get_running_loop().create_task(discard())
    _discarding.add(task)
    task.add_done_callback(_discarding.discard)


def _awaited_by(run: Row) -> Any:
    config = run["kwargs"].get("config") or {}
    return (config.get("configurable") or {}).get(AWAITED_BY)
