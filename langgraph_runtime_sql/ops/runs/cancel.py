"""Cancellation: end pending runs, and ask the workers of running ones to stop.

Each page of runs is a transaction of its own, so that other writers are not blocked for long.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, hooks, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.changes import changed
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.gate import entries, writes
from langgraph_runtime_sql.gate.operations import RUN_CANCEL
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.gate.writes import Admission
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import newest_state
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus
from langgraph_runtime_sql.tenancy import scope

ACTIONS = ("interrupt", ROLLBACK)
ALL = "all"
STATUSES = (RunStatus.PENDING, RunStatus.RUNNING, ALL)
# Runs per transaction.
PAGE = 200
# The creation date and number of the last run of a page.
_Cursor = tuple[datetime, int]
_START: _Cursor = datetime.fromtimestamp(0, UTC), 0


async def cancel(
    conn: Any,
    run_ids: Sequence[Any] | None = None,
    *,
    action: str = "interrupt",
    thread_id: Any = None,
    status: str | None = None,
    assistant_id: Any = None,
    ctx: Any = None,
    reason: str | None = None,
) -> None:
    """Cancel runs by `thread_id` and `run_ids`, by `status`, or by `assistant_id`.

    A running run keeps its status until its worker has stopped it, so that the next run of its
    thread does not start early.

    Raises:
        HTTPException: (422) invalid combination of arguments; (404) nothing to cancel.
    """
    _check_arguments(run_ids, thread_id, status, assistant_id, action)
    wanted = [as_uuid(each, "run ID") for each in run_ids or ()]
    thread = None if thread_id is None else as_uuid(thread_id, "thread ID")
    value = {
        "thread_id": thread,
        "action": action,
        "metadata": {"run_ids": wanted or None, "status": status},
    }
    admission = await writes.admit(ctx, RUN_CANCEL, value)
    if thread is None:
        assistant = None if assistant_id is None else as_uuid(assistant_id, "assistant ID")
        conditions = await _of_status(status or ALL, assistant)
    else:
        conditions = [
            and_(
                runs.c.thread_id == thread,
                runs.c.run_id.in_(wanted[start : start + PAGE]),
                run_rows.IN_FLIGHT,
            )
            for start in range(0, len(wanted), PAGE)
        ]
    cancelled = 0
    for condition in conditions:
        cancelled += await _cancel_all(condition, admission, Control(action, reason))
    if not cancelled and assistant_id is None:
        raise HTTPException(
            404, "No runs to cancel: check the ids, and that the runs have not ended."
        )


def _check_arguments(
    run_ids: Any, thread_id: Any, status: str | None, assistant_id: Any, action: str
) -> None:
    by_ids = thread_id is not None or run_ids is not None
    ways = (assistant_id is not None) + (status is not None) + by_ids
    if ways != 1 or (by_ids and (thread_id is None or run_ids is None)):
        raise HTTPException(
            422, "Give either `status`, or `assistant_id`, or both `thread_id` and `run_ids`"
        )
    if status is not None and status not in STATUSES:
        raise HTTPException(422, f"Unknown status {status!r}; use pending, running or all")
    if action not in ACTIONS:
        raise HTTPException(422, f"Unknown action {action!r}; use interrupt or rollback")


async def _of_status(status: str, assistant_id: UUID | None) -> list[ColumnElement[bool]]:
    """Return conditions on the runs that have a status now, in the order of their cancellation.

    They exclude runs created later, so that the cancellation ends. They include pending runs
    that start before the cancellation reaches them.
    """

    def now_and_newest(conn: Connection) -> tuple[datetime, int]:
        newest = conn.scalar(select(func.coalesce(func.max(runs.c.seq), 0).label("newest")))
        return conn.now(), newest

    # Runs of other tenants do no harm here. The cancellation skips them.
    with scope.within(scope.EVERYTHING):
        now, newest = await runtime.current().database.read(now_and_newest)
    these = runs.c.seq <= newest
    if assistant_id is not None:
        these = and_(these, runs.c.assistant_id == assistant_id)
    waiting = and_(these, runs.c.status == PENDING_LITERAL)
    running = and_(these, runs.c.status == RUNNING_LITERAL)
    started = and_(running, runs.c.updated_at >= now, runs.c.cancel_action.is_(None))
    return {
        RunStatus.PENDING: [waiting, started],
        RunStatus.RUNNING: [running],
        # Pending runs first: they could start as soon as the running ones stop.
        ALL: [waiting, running],
    }[status]


async def _cancel_all(
    condition: ColumnElement[bool], admission: Admission, control: Control
) -> int:
    """Cancel the visible runs that satisfy `condition`, and return their number."""
    count, cursor = 0, _START
    visible = admission.visible
    while True:
        page = partial(
            _cancel_page, condition=condition, cursor=cursor, visible=visible, control=control
        )
        cancelled, following = await admission.write(page)
        count += len(cancelled)
        with admission.opened():
            await _end_elsewhere(cancelled, control)
        if following is None:
            return count
        cursor = following


async def _end_elsewhere(cancelled: list[Row], control: Control) -> None:
    """Undo in the host's checkpointer what is rolled back, and show the states that remain."""
    if control.action == ROLLBACK:
        for row in cancelled:
            if row["status"] == RunStatus.PENDING:
                await custom_checkpointer.delete_run(row["run_id"])
    for thread_id in {row["thread_id"] for row in cancelled if _has_old_attempt(row)}:
        await newest_state.refresh_at_rest(thread_id)


def _has_old_attempt(row: Row) -> bool:
    """Return whether a pending run may have checkpoints that its thread's row does not show."""
    is_retried = row["status"] == RunStatus.PENDING and row["attempt"] > 0
    return is_retried and not row["kwargs"].get("temporary")


def _cancel_page(
    conn: Connection,
    condition: ColumnElement[bool],
    cursor: _Cursor,
    visible: Visible,
    control: Control,
) -> tuple[list[Row], _Cursor | None]:
    """Cancel a page of runs. Return them, and the cursor of the next page or None."""
    date, seq = cursor
    found = conn.fetchall(
        select(runs.c.run_id, runs.c.thread_id, runs.c.created_at, runs.c.seq)
        .where(
            condition, runs.c.created_at >= date, (runs.c.created_at > date) | (runs.c.seq > seq)
        )
        .order_by(runs.c.created_at, runs.c.seq)
        .limit(PAGE)
    )
    cancelled = _still_in_flight(
        conn, [row for row in found if _shows(conn, row["thread_id"], visible)]
    )
    for row in cancelled:
        detail = {"thread_id": str(row["thread_id"]), "action": control.action}
        entries.record(conn, RUN_CANCEL, row["run_id"], tenant=row["tenant"], detail=detail)
        if row["status"] == RunStatus.PENDING:
            cancel_pending(conn, row, control.action)
            run_rows.note_reason(conn, row["run_id"], control.reason)
        else:
            _request_stop(conn, row, control)
    if len(found) < PAGE:
        return cancelled, None
    return cancelled, (found[-1]["created_at"], found[-1]["seq"])


def _still_in_flight(conn: Connection, found: list[Row]) -> list[Row]:
    """Lock the runs of `found`, and return those that are still in flight."""
    for thread_id in sorted({row["thread_id"] for row in found}) if conn.locks else ():
        thread_rows.find(conn, thread_id)
    return conn.fetchall(
        select(runs)
        .where(runs.c.run_id.in_([row["run_id"] for row in found]), run_rows.IN_FLIGHT)
        .order_by(runs.c.created_at, runs.c.seq)
        .with_for_update(key_share=True)
    )


def _shows(conn: Connection, thread_id: UUID, visible: Visible) -> bool:
    if not visible.is_limited:
        return True
    metadata = conn.scalar(select(threads.c.metadata).where(threads.c.thread_id == thread_id))
    return visible.shows(metadata)


def cancel_pending(conn: Connection, row: Row, action: str) -> None:
    """End a run without a worker; delete it if `action` is `rollback`."""
    run_id = row["run_id"]
    run = run_rows.find(conn, run_id) or row
    if run["kwargs"].get("temporary"):
        # The thread of a stateless run goes with it.
        thread_rows.delete(conn, row["thread_id"])
    elif action == ROLLBACK:
        # An earlier attempt may have written checkpoints.
        checkpoint.delete_for_runs(conn, [run_id], row["thread_id"])
        run_rows.delete(conn, run_id)
        log.drop_run(conn, row["thread_id"], str(run_id))
    else:
        run_rows.end(conn, run_id, RunStatus.INTERRUPTED, conn.now())
    thread_rows.rest(conn, row["thread_id"], busy=run_rows.any_in_flight(conn, row["thread_id"]))
    call_end_hook(conn, run, ROLLBACK if action == ROLLBACK else RunStatus.INTERRUPTED)
    announce_end(conn, run)


def call_end_hook(conn: Connection, run: Row, status: str) -> None:
    """Call the host's hook for a run that ends without a worker."""
    if not hooks.active("after_run_end"):
        return
    thread = thread_rows.find(conn, run["thread_id"])
    ended = {**run_rows.public(run), "status": status}
    hooks.call("after_run_end", conn, Caller(), thread, ended, status)


def announce_end(conn: Connection, row: Row) -> None:
    """Announce the end of a run, and wake the queue for the next run of its thread."""
    announce.ended(conn, row)
    announce.wake(conn)


def _request_stop(conn: Connection, row: Row, control: Control) -> None:
    conn.execute(
        runs.update()
        .where(runs.c.run_id == row["run_id"])
        .values(cancel_action=control.action, cancel_reason=control.reason, updated_at=conn.now())
    )
    announce.stop(conn, row["run_id"], control)
    changed(conn, row)
