"""The end of threads: delete, prune and expire them."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, hooks, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.gate import entries, reads, writes
from langgraph_runtime_sql.gate.operations import THREAD_DELETE, THREAD_PRUNE
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.answers import Rows, rows
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import end as run_end
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import call_end_hook
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ROLLBACK, ThreadStatus
from langgraph_runtime_sql.webhooks import outbox


async def delete(conn: Any, thread_id: Any, ctx: Any = None) -> Rows:
    """Delete a thread with its runs and checkpoints, and stop its workers.

    Raises:
        HTTPException: (404) it does not exist or may not be deleted.
        SupersededAttempt: the calling worker's attempt no longer owns the thread's run.
    """
    identifier = as_uuid(thread_id, "thread ID")
    here, claim = runtime.current(), request_context.claim.get()
    # A worker deletes the temporary thread of its run without authorization.
    is_worker = claim is not None and claim.temporary_thread_id == str(identifier)
    own_run, admission = None, None
    if claim is not None and is_worker:
        own_run = UUID(claim.run_id)
    else:
        admission = await writes.admit(ctx, THREAD_DELETE, {"thread_id": identifier})
    visible = reads.ALL if admission is None else admission.visible

    def fn(conn: Connection) -> None:
        run = None if own_run is None else run_rows.find(conn, own_run)
        if run is not None:
            run_end.check_owned(run, claim)
            shown = run_rows.public(run)
            outbox.add(conn, run, shown, run["tenant"], run_result.outcome(run))
            if here.bus.shared and run_result.keep(conn, run):
                announce.ended(conn, run)
                return
        if not _delete(conn, identifier, visible, own_run=own_run):
            raise HTTPException(404, f"Thread with ID {identifier} not found")

    with nullcontext() if admission is None else admission.opened():
        await here.database.write(fn)
        await custom_checkpointer.delete_thread(identifier)
    return rows([identifier])  # type: ignore[list-item]  # the interface yields the bare id


async def prune(
    thread_ids: Sequence[Any], strategy: str = "delete", batch_size: int = 100, ctx: Any = None
) -> int:
    """Delete threads, or with `keep_latest` all but their newest checkpoint.

    Returns:
        The number of threads deleted or pruned.

    Raises:
        HTTPException: (404) a handler's filter hides any of them.
        Reject: a hook refuses to cut the history of any of them; none is cut.
    """
    wanted = [as_uuid(each, "thread ID") for each in thread_ids]
    if not wanted:
        return 0
    operation = THREAD_PRUNE if strategy == "keep_latest" else THREAD_DELETE
    admission = await writes.admit(ctx, operation, {"thread_ids": list(thread_ids)})
    visible = admission.visible

    def check(conn: Connection) -> None:
        if visible.is_limited and not all(
            thread_rows.find_visible(conn, each, visible) for each in wanted
        ):
            raise HTTPException(404, "At least one thread not found or not authorized")
        # Asked for all threads first, because batches commit one by one.
        ask_hook(wanted, conn)

    def ask_hook(batch: list[UUID], conn: Connection) -> None:
        if strategy != "keep_latest" or not hooks.active("before_thread_prune"):
            return
        for each in batch:
            if (thread := thread_rows.find_visible(conn, each, visible)) is not None:
                shown = thread_rows.public(thread)
                hooks.call("before_thread_prune", conn, admission.caller, shown)

    def prune_some(batch: list[UUID], conn: Connection) -> list[UUID]:
        one = _keep_latest if strategy == "keep_latest" else _delete
        ask_hook(batch, conn)
        return [each for each in batch if one(conn, each, visible)]

    await runtime.current().database.read(check)
    pruned: list[UUID] = []
    for start in range(0, len(wanted), batch_size):
        batch = wanted[start : start + batch_size]
        pruned += await admission.write(partial(prune_some, batch))
    with admission.opened():
        for each in pruned:
            await _end_elsewhere(each, strategy)
    return len(pruned)


async def sweep_ttl(
    conn: Any = None, *, limit: int | None = None, batch_size: int = 100
) -> tuple[int, int]:
    """Delete or prune expired threads.

    Args:
        limit: The maximum number of threads. Default: all.
        batch_size: Threads per transaction.

    Returns:
        The number of expired threads, and the number of threads deleted or pruned.
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


async def sweep_hook() -> None:
    """Let the host's hooks tidy up, in one transaction."""
    if hooks.active("before_sweep"):
        await runtime.current().database.write(
            lambda conn: hooks.call("before_sweep", conn, hooks.Caller())
        )


def _delete(
    conn: Connection, thread_id: UUID, visible: Visible, *, own_run: UUID | None = None
) -> bool:
    """Delete a visible thread, and stop its runs except the caller's own."""
    thread = thread_rows.find_visible(conn, thread_id, visible)
    if thread is None:
        return False
    stopped = [row for row in run_rows.in_flight(conn, thread_id) if row["run_id"] != own_run]
    for row in stopped:
        announce.deleted(conn, row, f"thread {thread_id} was deleted")
    thread_rows.delete(conn, thread_id)
    if own_run is None:
        # The client of a stateless run may still read its events.
        conn.after_commit(
            partial(runtime.current().bus.followers.drop, StreamKey.of_thread(thread))
        )
        entries.record(conn, THREAD_DELETE, thread_id, tenant=thread["tenant"])
    for row in stopped:
        call_end_hook(conn, row, ROLLBACK)
    return True


def _keep_latest(conn: Connection, thread_id: UUID, visible: Visible) -> bool:
    thread = thread_rows.find_visible(conn, thread_id, visible)
    if thread is None:
        return False
    checkpoint.prune_thread(conn, thread_id, keep=_starts(conn, thread_id))
    entries.record(conn, THREAD_PRUNE, thread_id, tenant=thread["tenant"])
    return True


def _starts(conn: Connection, thread_id: UUID) -> list[str]:
    """Return the checkpoints from which runs in flight start, or have started."""
    configs = (row["kwargs"].get("config", {}) for row in run_rows.in_flight(conn, thread_id))
    named = (each.get("configurable", {}).get("checkpoint_id") for each in configs)
    return [str(each) for each in named if each]


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
        # A locked thread is in use.
        .with_for_update(key_share=True, skip_locked=True)
    )
    for row in due:
        if row["ttl_strategy"] != "keep_latest":
            _delete(conn, row["thread_id"], reads.ALL)
            continue
        _keep_latest(conn, row["thread_id"], reads.ALL)
        # Nothing remains to prune until the thread is used again.
        conn.execute(
            threads.update().where(threads.c.thread_id == row["thread_id"]).values(expires_at=None)
        )
    return due
