"""The end of threads: deleted, pruned, or expired."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.authorization import Filter, Rows, as_uuid, authorize, rows
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import (
    end as run_end,
)
from langgraph_runtime_sql.ops.runs import (
    result as run_result,
)
from langgraph_runtime_sql.ops.runs import (
    rows as run_rows,
)
from langgraph_runtime_sql.ops.runs.cancel import tell_hooks
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus, ThreadStatus


async def delete(conn: Any, thread_id: Any, ctx: Any = None) -> Rows:
    """Delete a thread with all it holds; a run in flight is told to stop.

    Raises:
        HTTPException: (404) it does not exist or may not be deleted.
        SupersededAttempt: the caller works on the thread's run, and another has taken it over.
    """
    identifier = as_uuid(thread_id, "thread ID")
    claim = request_context.claim.get()
    # A temporary thread goes with its run, whatever its user's handlers say.
    internal = claim is not None and claim.temporary_thread_id == str(identifier)
    asked = {"thread_id": identifier}
    permitted = None if internal else await authorize(ctx, "threads", "delete", asked)
    worker = claim if internal else None
    spare = UUID(worker.run_id) if worker else None

    def fn(conn: Connection) -> None:
        if worker is not None and spare is not None:
            # The end of a stateless run: only whoever has the run may bring it.
            run = run_rows.find(conn, spare)
            if run is not None:
                run_end.check_owned(run, worker)
                if runtime.current().bus.shared and run_result.keep(conn, run):
                    return
        if not _delete(conn, identifier, permitted, spare=spare):
            raise HTTPException(404, f"Thread with ID {identifier} not found")

    written = runtime.current().database.write(fn)
    if internal:
        await runtime.current().bus.flushing(written)
    else:
        await written
        # Whoever is answered may make a thread with the same id.
        await runtime.current().bus.flush()
    await custom_checkpointer.delete_thread(identifier)
    return rows([identifier])  # type: ignore[list-item]  # the interface yields the bare id


async def prune(
    thread_ids: Sequence[Any], strategy: str = "delete", batch_size: int = 100, ctx: Any = None
) -> int:
    """Delete threads, or all but their newest checkpoint with `keep_latest`; how many.

    Raises:
        HTTPException: (404) a handler's filter applies and hides any of them.
    """
    wanted = [as_uuid(each, "thread ID") for each in thread_ids]
    if not wanted:
        return 0
    permitted = await authorize(ctx, "threads", "delete", {"thread_ids": list(thread_ids)})

    def check(conn: Connection) -> None:
        if permitted and not all(
            thread_rows.find_permitted(conn, each, permitted) for each in wanted
        ):
            raise HTTPException(404, "At least one thread not found or not authorized")

    def prune_some(batch: list[UUID], conn: Connection) -> list[UUID]:
        one = _keep_latest if strategy == "keep_latest" else _delete
        return [each for each in batch if one(conn, each, permitted)]

    await runtime.current().database.read(check)
    pruned: list[UUID] = []
    for start in range(0, len(wanted), batch_size):
        batch = wanted[start : start + batch_size]
        pruned += await runtime.current().database.write(partial(prune_some, batch))
    await runtime.current().bus.flush()
    for each in pruned:
        await _end_elsewhere(each, strategy)
    return len(pruned)


async def sweep_ttl(
    conn: Any = None, *, limit: int | None = None, batch_size: int = 100
) -> tuple[int, int]:
    """End the life of threads whose time has come.

    Returns:
        How many were due, and how many were deleted or pruned.
    """
    done = 0
    while limit is None or done < limit:
        size = batch_size if limit is None else min(batch_size, limit - done)
        swept = await runtime.current().database.write(partial(_sweep, size))
        for row in swept:
            await _end_elsewhere(row["thread_id"], row["ttl_strategy"])
        done += len(swept)
        if len(swept) < size:
            break
    return done, done


def _delete(
    conn: Connection, thread_id: UUID, permitted: Filter = None, *, spare: UUID | None = None
) -> bool:
    """Delete a thread, if it is there and permitted; its runs, but for `spare`, are told."""
    thread = thread_rows.find_permitted(conn, thread_id, permitted)
    if thread is None:
        return False
    stop = bus.Control("rollback", f"thread {thread_id} was deleted")
    lost = [row for row in run_rows.in_flight(conn, thread_id) if row["run_id"] != spare]
    for row in lost:
        if row["status"] == RunStatus.RUNNING:
            announce.stop(conn, row["run_id"], stop)
        else:
            announce.ended(conn, row)
    thread_rows.delete(conn, thread_id)
    if spare is None:
        # What a stateless run has told is still on its way to its maker.
        conn.after_commit(partial(runtime.current().bus.drop, StreamKey.of_thread(thread)))
    for row in lost:
        tell_hooks(conn, row, ROLLBACK)
    return True


def _keep_latest(conn: Connection, thread_id: UUID, permitted: Filter = None) -> bool:
    if thread_rows.find_permitted(conn, thread_id, permitted) is None:
        return False
    checkpoint.prune_thread(conn, thread_id)
    return True


async def _end_elsewhere(thread_id: UUID, strategy: str | None) -> None:
    if strategy == "keep_latest":
        await custom_checkpointer.prune_thread(thread_id)
    else:
        await custom_checkpointer.delete_thread(thread_id)


def _sweep(size: int, conn: Connection) -> list[Row]:
    due = conn.fetchall(
        select(threads.c.thread_id, threads.c.ttl_strategy)
        .where(threads.c.expires_at <= conn.now(), threads.c.status != ThreadStatus.BUSY)
        .order_by(threads.c.expires_at)
        .limit(size)
        # Whoever holds one of them is using it.
        .with_for_update(key_share=True, skip_locked=True)
    )
    for row in due:
        if row["ttl_strategy"] != "keep_latest":
            _delete(conn, row["thread_id"])
            continue
        _keep_latest(conn, row["thread_id"])
        # Until it is used again there is nothing more to prune.
        conn.execute(
            threads.update().where(threads.c.thread_id == row["thread_id"]).values(expires_at=None)
        )
    return due
