"""Runs: what the API and its worker do with them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.interface import Handle
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.assistants.assistants import is_system
from langgraph_runtime_sql.ops.authorization import (
    Rows,
    as_uuid,
    authorize,
    caller,
    pick,
    rows,
)
from langgraph_runtime_sql.ops.crons.firing import take_firing
from langgraph_runtime_sql.ops.runs import announce, leases, recovery
from langgraph_runtime_sql.ops.runs import (
    batch as run_batch,
)
from langgraph_runtime_sql.ops.runs import (
    claim as run_claim,
)
from langgraph_runtime_sql.ops.runs import (
    result as run_result,
)
from langgraph_runtime_sql.ops.runs import (
    rows as run_rows,
)
from langgraph_runtime_sql.ops.runs.cancel import cancel, tell_hooks
from langgraph_runtime_sql.ops.runs.create import RunRequest, create
from langgraph_runtime_sql.ops.runs.end import set_joint_status
from langgraph_runtime_sql.ops.runs.stream import Stream
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.newest_state import refresh_at_rest
from langgraph_runtime_sql.statuses import ENDED, ROLLBACK, RunStatus
from langgraph_runtime_sql.tenancy import scope

_PENDING = Prepared(
    select(runs.c.thread_id, runs.c.created_at).where(runs.c.status == PENDING_LITERAL)
)
_RUNNING = Prepared(select(runs.c.thread_id).where(runs.c.status == RUNNING_LITERAL))
_LAST = Prepared(
    select(runs.c.run_id)
    .where(runs.c.thread_id == bindparam("id"))
    .order_by(runs.c.created_at.desc(), runs.c.seq.desc())
    .limit(1)
)
_SET_STATUS = Prepared(
    runs.update()
    .where(runs.c.run_id == bindparam("id"))
    .values(status=bindparam("new_status"), updated_at=bindparam("moment"))
)


class Runs:
    """Operations on runs. `conn` is the interface's handle; each owns its transaction."""

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
        """Queue a run: it comes first, the others in flight on its thread after it.

        Only those others come when they prevent it; nothing when the thread or
        the assistant is missing or hidden.
        """
        from langgraph_api.utils.uuids import uuid7

        if isinstance(conn, Handle):
            conn.enlist()
        # First of all: handlers may create runs of their own, which are not the cron's.
        fired, batch = take_firing(), run_batch.take()
        assistant = as_uuid(assistant_id, "assistant ID")
        thread = None if thread_id is None else as_uuid(thread_id, "thread ID")
        run = uuid7() if run_id is None else as_uuid(run_id, "run ID")
        asked: dict[str, Any] = {
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
        thread_filter = await authorize(ctx, "threads", "create_run", asked)
        assistant_filter = None
        if not is_system(assistant):
            assistant_filter = await authorize(
                ctx, "assistants", "read", {"assistant_id": assistant}
            )
        request = RunRequest(
            assistant_id=assistant,
            run_id=run,
            thread_id=thread or uuid7(),
            kwargs=kwargs,
            metadata=dict(asked["metadata"] or {}),
            status=status or RunStatus.PENDING,
            multitask_strategy=multitask_strategy,
            reject_if_in_flight=prevent_insert_if_inflight,
            create_thread=thread is None or if_not_exists == "create",
            after_seconds=after_seconds,
            user_id=user_id,
            langsmith_session_name=langsmith_session_name,
            thread_filter=thread_filter,
            assistant_filter=assistant_filter,
            caller=caller(ctx),
            firing=fired,
        )
        write = runtime.current().database.write if batch is None else batch.write
        return rows(await write(lambda conn: create(conn, request)))

    @staticmethod
    async def get(conn: Any, run_id: Any, *, thread_id: Any, ctx: Any = None) -> Rows:
        """One run of a thread; none when it is missing or hidden."""
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        permitted = await authorize(ctx, "threads", "read", {"thread_id": thread})

        def fn(conn: Connection) -> list[Row]:
            row = run_rows.find(conn, run)
            if row is None or row["thread_id"] != thread:
                return []
            if permitted and thread_rows.find_permitted(conn, thread, permitted) is None:
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
        """The runs of a thread, newest first."""
        thread = as_uuid(thread_id, "thread ID")
        asked = {"thread_id": thread, "metadata": {}}
        permitted = await authorize(ctx, "threads", "search", asked)
        statement = _of_thread(thread, status).limit(int(limit)).offset(int(offset))

        def fn(conn: Connection) -> list[Row]:
            if permitted and thread_rows.find_permitted(conn, thread, permitted) is None:
                return []
            return conn.fetchall(statement)

        return rows([pick(row, select) for row in await runtime.current().database.read(fn)])

    @staticmethod
    async def delete(conn: Any, run_id: Any, *, thread_id: Any, ctx: Any = None) -> Rows:
        """Delete a run with the checkpoints it wrote; its worker, if any, is told to stop.

        Raises:
            HTTPException: (404) there is no such run in the thread.
        """
        run, thread = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
        permitted = await authorize(ctx, "threads", "delete", {"run_id": run, "thread_id": thread})

        def fn(conn: Connection) -> bool | None:
            if permitted and thread_rows.find_permitted(conn, thread, permitted) is None:
                return None
            row = run_rows.find(conn, run)
            if row is None or row["thread_id"] != thread:
                raise HTTPException(404, "Run not found")
            was_last = conn.scalar(_LAST, {"id": thread}) == run
            before = checkpoint.latest_version(conn, thread)
            _delete(conn, row)
            is_changed = checkpoint.latest_version(conn, thread) != before
            return is_changed or (was_last and row["status"] in ENDED)

        left_its_state = await runtime.current().database.write(fn)
        if left_its_state is None:
            return rows([])
        await custom_checkpointer.delete_run(run)
        if left_its_state:
            await refresh_at_rest(thread)
        return rows([run])  # type: ignore[list-item]  # the bare id

    @staticmethod
    async def stats(conn: Any) -> dict[str, Any]:
        """How many runs wait and run, and how long the waiting have waited, in seconds."""

        def fn(conn: Connection) -> tuple[list[Row], list[Row], datetime]:
            return conn.fetchall(_PENDING), conn.fetchall(_RUNNING), conn.now()

        # The process's own figures, whoever asks for them.
        with scope.within(scope.EVERYTHING):
            pending, running, moment = await runtime.current().database.read(fn)
        taken = {row["thread_id"] for row in running}
        waits = [(moment - row["created_at"]).total_seconds() for row in pending]
        unblocked = [
            wait
            for wait, row in zip(waits, pending, strict=True)
            if wait > 0 and row["thread_id"] not in taken
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
        """Pool figures of a client-server database; SQLite has none."""
        return {}

    @staticmethod
    async def set_status(conn: Any, run_id: Any, status: str) -> None:
        """Set a run's status; `pending` is the worker's way to ask for another attempt."""
        identifier = as_uuid(run_id, "run ID")
        owner = request_context.claim.get()
        queue = runtime.current().queue
        # What a queue that stops hands back was not the run's fault.
        counted = queue is None or not queue.stopping

        def fn(conn: Connection) -> bool:
            if status != RunStatus.PENDING or owner is None:
                conn.execute(
                    _SET_STATUS, {"id": identifier, "new_status": status, "moment": conn.now()}
                )
            elif _is_asked_to_stop(run_rows.find(conn, identifier)):
                return False
            else:
                run_claim.release(
                    conn, identifier, owner.attempt, counted=counted, owner=owner.owner
                )
            return True

        # The next attempt's events come after this one's.
        await runtime.current().bus.flush()
        while not await runtime.current().database.write(fn):
            await _stop(identifier)

    @staticmethod
    async def next(wait: bool, limit: int = 1) -> AsyncIterator[tuple[Row, int]]:
        """Claim runs that are due; (run, attempt) each, the first attempt being 1."""
        claimed = await runtime.current().database.write(lambda conn: run_claim.claim(conn, limit))
        for run, attempt in claimed.runs:
            yield run_rows.public(run), attempt

    @staticmethod
    @asynccontextmanager
    async def enter(
        run_id: Any, thread_id: Any, loop: asyncio.AbstractEventLoop, resumable: bool
    ) -> AsyncIterator[Any]:
        """Work on a run: the event that is yielded is set when somebody wants it stopped.

        Leaving without an exception means that the run has ended, and its
        followers are told. Leaving with one means another attempt will come, unless the
        run is gone, or has ended and the answer to that was lost.
        """
        from langgraph_api.asyncio import ValueEvent
        from langgraph_api.errors import UserInterrupt, UserRollback

        our_loop = asyncio.get_running_loop()
        # To the end the runtime of the beginning: a worker may be left behind when it stops.
        here = runtime.current()
        stop: Any = ValueEvent()

        def hear(control: bus.Control) -> None:
            kind = UserRollback if control.action == "rollback" else UserInterrupt
            error = kind(control.reason) if control.reason else kind()
            our_loop.call_soon_threadsafe(stop.set, error)
            if (queue := here.queue) is not None:
                queue.note_stop_request(key)

        run, key = as_uuid(run_id, "run ID"), str(run_id)
        stream = StreamKey.here(thread_id or run_id, run_id)
        forget = here.bus.listen(key, hear)
        try:
            yield stop
        except BaseException:
            if await _has_ended_here(run):
                here.bus.run_ended(stream, resumable=resumable)
            else:
                here.bus.run_released(key)
            raise
        else:
            here.bus.run_ended(stream, resumable=resumable)
        finally:
            forget()
            run_result.forget(key)

    @staticmethod
    async def sweep() -> None:
        """Free the runs that lost their worker."""
        queue = runtime.current().queue
        await (recovery.recover() if queue is None else queue.sweep())


def _is_asked_to_stop(run: Row | None) -> bool:
    """Whether a run is to end, and leaves a thread behind to be brought up to date."""
    return bool(
        run is not None
        and run["status"] == RunStatus.RUNNING
        and run["cancel_action"]
        and not run["kwargs"].get("temporary")
    )


async def _stop(run_id: UUID) -> None:
    """End a run that was told to stop, and whose worker failed of that, or before he heard of it."""
    from langgraph_api.errors import UserInterrupt, UserRollback

    run = await runtime.current().database.read(lambda conn: run_rows.find(conn, run_id))
    if run is None or not _is_asked_to_stop(run):
        return
    graph_id = run["kwargs"]["config"]["configurable"]["graph_id"]
    if run["cancel_action"] == "rollback":
        ending = ROLLBACK, graph_id, None, UserRollback()
    else:
        ending = RunStatus.INTERRUPTED, graph_id, None, UserInterrupt()
    await set_joint_status(None, run["thread_id"], run_id, *ending)
    if run["cancel_action"] == "rollback":
        await custom_checkpointer.delete_run(run_id)


async def _has_ended_here(run_id: UUID) -> bool:
    """Whether a run is over, and not by another attempt, which says so itself.

    What that one has sent may come later than the word of an end from here.
    """
    claim = request_context.claim.get()
    found = await runtime.current().database.read(lambda conn: run_rows.attempt(conn, run_id))
    if found is None:
        return claim is None or leases.is_sure(claim)
    status, attempt = found
    return status in ENDED and (claim is None or attempt == claim.attempt)


def _of_thread(thread_id: Any, status: str | None) -> Any:
    statement = select(*run_rows.PUBLIC).where(runs.c.thread_id == thread_id)
    if status is not None:
        statement = statement.where(runs.c.status == status)
    return statement.order_by(runs.c.created_at.desc(), runs.c.seq.desc())


def _delete(conn: Connection, row: Row) -> None:
    """Delete a run in any status."""
    checkpoint.delete_for_runs(conn, [row["run_id"]], row["thread_id"])
    run_rows.delete(conn, row["run_id"])
    if row["status"] in ENDED:
        announce.dropped(conn, row)
        return
    thread_rows.rest(conn, row["thread_id"], busy=run_rows.any_in_flight(conn, row["thread_id"]))
    tell_hooks(conn, row, ROLLBACK)
    if row["status"] == RunStatus.RUNNING:
        announce.stop(conn, row["run_id"], bus.Control("rollback", "the run was deleted"))
    else:
        announce.ended(conn, row)
    announce.dropped(conn, row)
    announce.wake(conn)


__all__ = ["Runs"]
