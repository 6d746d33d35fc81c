"""Runs: the operations that the API and the worker call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, request_context, runtime, stopping
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.interface import Handle
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.gate import command, entries, idempotency, reads, writes
from langgraph_runtime_sql.gate.operations import (
    ASSISTANT_READ,
    RUN_CREATE,
    RUN_DELETE,
    THREAD_READ,
    THREAD_SEARCH,
)
from langgraph_runtime_sql.hooks import Reject
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.answers import Rows, pick, rows
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows
from langgraph_runtime_sql.ops.assistants.assistants import is_system
from langgraph_runtime_sql.ops.crons.firing import disable, take_firing
from langgraph_runtime_sql.ops.runs import announce, leases, recovery
from langgraph_runtime_sql.ops.runs import batch as run_batch
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import call_end_hook, cancel
from langgraph_runtime_sql.ops.runs.create import RunRequest, create
from langgraph_runtime_sql.ops.runs.end import set_joint_status
from langgraph_runtime_sql.ops.runs.stream import Stream
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.newest_state import refresh_at_rest
from langgraph_runtime_sql.statuses import ENDED, ROLLBACK, RunStatus
from langgraph_runtime_sql.telemetry import tracing
from langgraph_runtime_sql.tenancy import scope

_PENDING = Prepared(
    select(runs.c.thread_id, runs.c.created_at).where(runs.c.status == PENDING_LITERAL)
)
_RUNNING = Prepared(select(runs.c.thread_id).where(runs.c.status == RUNNING_LITERAL))


def _create(
    conn: Connection, request: RunRequest, repeatable: idempotency.Repeatable | None
) -> list[Row]:
    if repeatable is None:
        return create(conn, request)
    idempotency.refuse_repetition(conn, repeatable)
    created = create(conn, request)
    if created and created[0]["run_id"] == request.run_id:
        thread = thread_rows.find(conn, request.thread_id)
        if thread is not None:
            idempotency.note(conn, repeatable, thread, request.run_id)
    return created


class Runs:
    """Operations on runs. Each has its own transaction; `conn` is only a handle of the API."""

    Stream = Stream
    cancel = staticmethod(cancel)

    @staticmethod
    async def put(
        conn: Any,
        assistant_id: Any,
        kwargs: dict[str, Any],
        *,
        thread_id: Any = None,
        user_id: str | None = None,
        run_id: Any = None,
        status: str | None = RunStatus.PENDING,
        metadata: dict[str, Any] | None,
        prevent_insert_if_inflight: bool,
        multitask_strategy: str = "reject",
        if_not_exists: str = "reject",
        after_seconds: float = 0,
        ctx: Any = None,
        langsmith_session_name: str | None = None,
    ) -> Rows:
        """Queue a run. Return it, followed by the other runs in flight on its thread.

        Without the new run, if the others prevent it. Empty, if the thread or the assistant is
        missing or hidden.

        Raises:
            Reject: a hook refuses the run. If it does so for good, the cron of the run is disabled.
        """
        from langgraph_api.utils.uuids import uuid7

        if isinstance(conn, Handle):
            conn.enlist()
        # Before the handlers, which may create other runs.
        firing, batch, repeatable = take_firing(), run_batch.take(), idempotency.take()
        assistant = as_uuid(assistant_id, "assistant ID")
        thread = None if thread_id is None else as_uuid(thread_id, "thread ID")
        run = uuid7() if run_id is None else as_uuid(run_id, "run ID")
        value: dict[str, Any] = {
            "thread_id": None if kwargs.get("temporary") else thread,
            "assistant_id": assistant,
            "run_id": run,
            "status": status,
            "metadata": metadata or {},
            "prevent_insert_if_inflight": prevent_insert_if_inflight,
            "multitask_strategy": multitask_strategy,
            "if_not_exists": if_not_exists,
            "after_seconds": after_seconds,
            "kwargs": kwargs,
        }
        admission = await writes.admit(ctx, RUN_CREATE, value)
        usable = reads.ALL
        if not is_system(assistant):
            usable = await reads.admit(ctx, ASSISTANT_READ, {"assistant_id": assistant})
        checked = await command.check(
            partial(assistant_rows.find, assistant_id=assistant), kwargs, admission.permissions
        )
        request = RunRequest(
            assistant_id=assistant,
            run_id=run,
            thread_id=thread or uuid7(),
            kwargs=_with_trace(kwargs),
            metadata=dict(value["metadata"] or {}),
            status=status or RunStatus.PENDING,
            multitask_strategy=multitask_strategy,
            reject_if_in_flight=prevent_insert_if_inflight,
            create_thread=thread is None or if_not_exists == "create",
            after_seconds=after_seconds,
            user_id=user_id,
            langsmith_session_name=langsmith_session_name,
            threads=admission.visible,
            assistants=usable,
            checked_graph=checked,
            caller=admission.caller,
            firing=firing,
        )
        write = runtime.current().database.write if batch is None else batch.write
        try:
            with admission.opened():
                return rows(await write(lambda conn: _create(conn, request, repeatable)))
        except Reject as refusal:
            if firing is not None and refusal.is_final:
                await disable(firing, refusal.detail)
            raise

    @staticmethod
    async def get(conn: Any, run_id: Any, *, thread_id: Any, ctx: Any = None) -> Rows:
        """Yield a run of a thread, if it exists and is visible."""
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread})

        def fn(conn: Connection) -> list[Row]:
            row = run_rows.find_in_thread(conn, run, thread)
            if row is None:
                return []
            if visible.is_limited and thread_rows.find_visible(conn, thread, visible) is None:
                return []
            return [run_rows.public(row)]

        return rows(await runtime.current().database.read(fn))

    @staticmethod
    async def search(
        conn: Any,
        thread_id: Any,
        *,
        limit: int = 10,
        offset: int = 0,
        status: str | None = None,
        select: Sequence[str] | None = None,
        ctx: Any = None,
    ) -> Rows:
        """Yield the runs of a thread, newest first."""
        thread = as_uuid(thread_id, "thread ID")
        value = {"thread_id": thread, "metadata": {}}
        visible = await reads.admit(ctx, THREAD_SEARCH, value)
        statement = _of_thread(thread, status, int(limit), int(offset))

        def fn(conn: Connection) -> list[Row]:
            if visible.is_limited and thread_rows.find_visible(conn, thread, visible) is None:
                return []
            return conn.fetchall(statement)

        found = await runtime.current().database.read(fn)
        return rows([pick(run_rows.public(row), select) for row in found])

    @staticmethod
    async def delete(conn: Any, run_id: Any, *, thread_id: Any, ctx: Any = None) -> Rows:
        """Delete a run with its checkpoints, and stop its worker.

        Raises:
            HTTPException: (404) there is no such run in the thread.
        """
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        value = {"run_id": run, "thread_id": thread}
        admission = await writes.admit(ctx, RUN_DELETE, value)
        visible = admission.visible

        def fn(conn: Connection) -> bool | None:
            if visible.is_limited and thread_rows.find_visible(conn, thread, visible) is None:
                return None
            row = run_rows.find_in_thread(conn, run, thread)
            if row is None:
                raise HTTPException(404, "Run not found")
            was_last = run_rows.last(conn, thread) == run
            before = checkpoint.latest_version(conn, thread)
            _delete(conn, row)
            of_thread = {"thread_id": str(thread)}
            entries.record(conn, RUN_DELETE, run, tenant=row["tenant"], detail=of_thread)
            is_changed = checkpoint.latest_version(conn, thread) != before
            return is_changed or (was_last and row["status"] in ENDED)

        is_stale = await admission.write(fn)
        if is_stale is None:
            return rows([])
        with admission.opened():
            await custom_checkpointer.delete_run(run)
            if is_stale:
                await refresh_at_rest(thread)
        return rows([run])  # type: ignore[list-item]  # the bare id

    @staticmethod
    async def stats(conn: Any) -> dict[str, Any]:
        """Return the numbers of pending and running runs, and the waiting times in seconds."""

        def fn(conn: Connection) -> tuple[list[Row], list[Row], datetime]:
            return conn.fetchall(_PENDING), conn.fetchall(_RUNNING), conn.now()

        # The figures are those of all tenants, for any caller.
        with scope.within(scope.EVERYTHING):
            pending, running, now = await runtime.current().database.read(fn)
        busy = {row["thread_id"] for row in running}
        waits = [(now - row["created_at"]).total_seconds() for row in pending]
        unblocked = [
            wait
            for wait, row in zip(waits, pending, strict=True)
            if wait > 0 and row["thread_id"] not in busy
        ]
        return {
            "n_pending": len(pending),
            "n_running": len(running),
            "pending_runs_wait_time_max_secs": max(waits, default=None),
            "pending_runs_wait_time_med_secs": median(waits) if waits else None,
            "pending_unblocked_runs_wait_time_max_secs": max(unblocked, default=None),
        }

    @staticmethod
    async def pool_stats() -> dict[str, Any]:
        """Return no pool figures: the interface asks for them, and this runtime has none."""
        return {}

    @staticmethod
    async def set_status(conn: Any, run_id: Any, status: str) -> None:
        """Set a run's status. A worker requests another attempt with `pending`."""
        identifier, here = as_uuid(run_id, "run ID"), runtime.current()
        if status == RunStatus.PENDING:
            # An attempt that the queue's shutdown cuts short does not count.
            await _return(identifier, counted=here.queue is None or not here.queue.stopping)
            return
        await here.bus.publisher.flush()
        await here.database.write(partial(_set_status, run_id=identifier, status=status))

    @staticmethod
    async def requeue(conn: Any, run_id: Any, reason: str) -> None:
        """Return a run to the queue that has stopped at the end of a step, as it was asked to.

        A graph may ask for that itself, for ever. So this counts as an attempt, unless a server has asked
        that stops.
        """
        await _return(as_uuid(run_id, "run ID"), counted=reason != stopping.REASON)

    @staticmethod
    async def next(wait: bool, limit: int = 1) -> AsyncIterator[tuple[Row, int]]:
        """Claim due runs, and yield each with its attempt, counted from 1."""
        claimed = await runtime.current().database.write(lambda conn: run_claim.claim(conn, limit))
        for run, attempt in claimed.runs:
            yield run_rows.public(run), attempt

    @staticmethod
    @asynccontextmanager
    async def enter(
        run_id: Any, thread_id: Any, loop: asyncio.AbstractEventLoop, resumable: bool
    ) -> AsyncIterator[Any]:
        """Enter the work on a run. Yield an event that is set when the run is to stop.

        A normal exit means that the run has ended. An exception means another attempt, unless
        the run was deleted, or the database has ended it but its answer was lost.
        """
        from langgraph_api.asyncio import ValueEvent
        from langgraph_api.errors import UserInterrupt, UserRollback

        worker_loop = asyncio.get_running_loop()
        # A worker that outlives its runtime must not use the next one.
        here = runtime.current()
        stop: Any = ValueEvent()

        def receive(control: Control) -> None:
            kind = UserRollback if control.action == "rollback" else UserInterrupt
            error = kind(control.reason) if control.reason else kind()
            worker_loop.call_soon_threadsafe(stop.set, error)
            if (queue := here.queue) is not None:
                queue.note_stop_request(key)

        run, key = as_uuid(run_id, "run ID"), str(run_id)
        stream = StreamKey.here(thread_id or run_id, run_id)
        stop_listening = here.bus.controls.listen(key, receive)
        try:
            yield stop
        except BaseException:
            if await _has_ended_here(run):
                here.bus.writers.ended(stream, resumable=resumable)
            else:
                # The run may be claimed again already.
                claim = request_context.claim.get()
                attempt = None if claim is None or claim.run_id != key else claim.attempt
                here.bus.writers.released(key, attempt)
            raise
        else:
            here.bus.writers.ended(stream, resumable=resumable)
        finally:
            stop_listening()
            run_result.forget(key)

    @staticmethod
    async def sweep() -> None:
        """Return the runs that have lost their worker to the queue."""
        queue = runtime.current().queue
        await (recovery.recover() if queue is None else queue.sweep())


async def _return(run_id: UUID, *, counted: bool) -> None:
    """Return the run of the current attempt to the queue, or end it if it is cancelled."""
    here, claim = runtime.current(), request_context.claim.get()

    def fn(conn: Connection) -> bool:
        if claim is None:
            _set_status(conn, run_id, RunStatus.PENDING)
        elif _is_cancelled(run_rows.find(conn, run_id)):
            return False
        else:
            run_claim.release(conn, run_id, claim.attempt, counted=counted, owner=claim.owner)
        return True

    # Publish this attempt's events before those of the next one.
    await here.bus.publisher.flush()
    while not await here.database.write(fn):
        await _stop(run_id)


def _set_status(conn: Connection, run_id: UUID, status: str) -> None:
    changes = {"status": status, "updated_at": conn.now()}
    conn.execute(runs.update().where(runs.c.run_id == run_id).values(changes))


def _is_cancelled(run: Row | None) -> bool:
    """Return whether a running run has a cancellation request, and its thread outlives it."""
    return bool(
        run is not None
        and run["status"] == RunStatus.RUNNING
        and run["cancel_action"]
        and not run["kwargs"].get("temporary")
    )


async def _stop(run_id: UUID) -> None:
    """End a cancelled run whose worker has failed before it could stop."""
    from langgraph_api.errors import UserInterrupt, UserRollback

    run = await runtime.current().database.read(lambda conn: run_rows.find(conn, run_id))
    if run is None or not _is_cancelled(run):
        return
    is_rollback = run["cancel_action"] == ROLLBACK
    status = ROLLBACK if is_rollback else RunStatus.INTERRUPTED
    error = UserRollback() if is_rollback else UserInterrupt()
    graph_id = run["kwargs"]["config"]["configurable"]["graph_id"]
    await set_joint_status(None, run["thread_id"], run_id, status, graph_id, None, error)
    if is_rollback:
        await custom_checkpointer.delete_run(run_id)


async def _has_ended_here(run_id: UUID) -> bool:
    """Return whether this attempt must announce the end of its run.

    If another attempt has ended the run, that attempt announces it after its last event.
    """
    claim = request_context.claim.get()
    found = await runtime.current().database.read(lambda conn: run_rows.attempt(conn, run_id))
    if found is None:
        return claim is None or leases.is_sure(claim)
    status, attempt = found
    return status in ENDED and (claim is None or attempt == claim.attempt)


def _of_thread(thread_id: Any, status: str | None, limit: int, offset: int) -> Any:
    # In `search`, a parameter hides `select`.
    statement = select(*run_rows.SHOWN).where(runs.c.thread_id == thread_id)
    if status is not None:
        statement = statement.where(runs.c.status == status)
    ordered = statement.order_by(runs.c.created_at.desc(), runs.c.seq.desc())
    return ordered.limit(limit).offset(offset)


def _delete(conn: Connection, row: Row) -> None:
    checkpoint.delete_for_runs(conn, [row["run_id"]], row["thread_id"])
    run_rows.delete(conn, row["run_id"])
    if row["status"] in ENDED:
        announce.dropped(conn, row)
        return
    thread_rows.rest(conn, row["thread_id"], busy=run_rows.any_in_flight(conn, row["thread_id"]))
    call_end_hook(conn, row, ROLLBACK)
    announce.deleted(conn, row, "the run was deleted")
    announce.dropped(conn, row)
    announce.wake(conn)


def _with_trace(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a run with the context of its request, if traces are on."""
    carrier = tracing.current_carrier()
    return kwargs if carrier is None else {**kwargs, tracing.KEY: carrier}
