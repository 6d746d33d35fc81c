"""Cancelling runs: those that wait end at once, those that run are told to.

However many there are: a page of them is a transaction, so that others write in between.
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
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.bus import Control
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops import custom_checkpointer
from langgraph_runtime_sql.ops.authorization import Filter, as_uuid, authorize
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import newest_state
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus
from langgraph_runtime_sql.tenancy import scope

ACTIONS = ("interrupt", "rollback")
ALL = "all"
STATUSES = (RunStatus.PENDING, RunStatus.RUNNING, ALL)
# So many in a transaction.
PAGE = 200
# The date and number of the last run of a page: the next goes on behind it.
_Place = tuple[datetime, int]
_BEGINNING: _Place = datetime.fromtimestamp(0, UTC), 0


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
    """Cancel runs: by `thread_id` and `run_ids`, by `status`, or by `assistant_id`.

    A running run stays running until its worker has stopped it, so that the
    next run of its thread cannot start beside it.

    Raises:
        HTTPException: (422) not exactly one of those ways, (404) nothing to cancel.
    """
    _check_arguments(run_ids, thread_id, status, assistant_id, action)
    wanted = [as_uuid(each, "run ID") for each in run_ids or ()]
    thread = None if thread_id is None else as_uuid(thread_id, "thread ID")
    asked = {
        "thread_id": thread,
        "action": action,
        "metadata": {"run_ids": wanted or None, "status": status},
    }
    permitted = await authorize(ctx, "threads", "update", asked)
    if thread is None:
        assistant = None if assistant_id is None else as_uuid(assistant_id, "assistant ID")
        parts = await _of_status(status or ALL, assistant)
    else:
        parts = [
            and_(
                runs.c.thread_id == thread,
                runs.c.run_id.in_(wanted[start : start + PAGE]),
                run_rows.IN_FLIGHT,
            )
            for start in range(0, len(wanted), PAGE)
        ]
    stopped = 0
    for part in parts:
        stopped += await _cancel_all(part, permitted, Control(action, reason))
    if not stopped and assistant_id is None:
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
    """The runs that have a status now, in the order in which they are to be cancelled.

    Those that are made from now on are not among them, or there might be no end of it. Those that
    wait now, and have started before it is their turn, are.
    """

    def now_and_newest(conn: Connection) -> tuple[datetime, int]:
        newest = conn.scalar(select(func.coalesce(func.max(runs.c.seq), 0).label("newest")))
        return conn.now(), newest

    # Whoever they are of: what is not the caller's is passed over below.
    with scope.within(scope.EVERYTHING):
        moment, newest = await runtime.current().database.read(now_and_newest)
    these = runs.c.seq <= newest
    if assistant_id is not None:
        these = and_(these, runs.c.assistant_id == assistant_id)
    waiting = and_(these, runs.c.status == PENDING_LITERAL)
    running = and_(these, runs.c.status == RUNNING_LITERAL)
    started = and_(running, runs.c.updated_at >= moment, runs.c.cancel_action.is_(None))
    return {
        RunStatus.PENDING: [waiting, started],
        RunStatus.RUNNING: [running],
        # Who waits is first: what is behind a run that is told to stop would be started.
        ALL: [waiting, running],
    }[status]


async def _cancel_all(part: ColumnElement[bool], permitted: Filter, control: Control) -> int:
    """Cancel the runs of which `part` is true, and that may be touched; how many."""
    count, place = 0, _BEGINNING
    while True:
        page = partial(_cancel_page, part=part, place=place, permitted=permitted, control=control)
        stopped, last = await runtime.current().database.write(page)
        count += len(stopped)
        if control.action == "rollback":
            for row in stopped:
                if row["status"] == RunStatus.PENDING:
                    await custom_checkpointer.delete_run(row["run_id"])
        for thread_id in {row["thread_id"] for row in stopped if _was_begun(row)}:
            await newest_state.refresh_at_rest(thread_id)
        if last is None:
            return count
        place = last


def _was_begun(row: Row) -> bool:
    """Whether a run that waited has been worked on, and its thread does not show it yet."""
    is_waiting = row["status"] == RunStatus.PENDING and row["attempt"] > 0
    return is_waiting and not row["kwargs"].get("temporary")


def _cancel_page(
    conn: Connection,
    part: ColumnElement[bool],
    place: _Place,
    permitted: Filter,
    control: Control,
) -> tuple[list[Row], _Place | None]:
    """Cancel a page of runs: them, and the place of the last one looked at if there may be more."""
    date, seq = place
    found = conn.fetchall(
        select(runs.c.run_id, runs.c.thread_id, runs.c.created_at, runs.c.seq)
        .where(
            part,
            runs.c.created_at >= date,
            (runs.c.created_at > date) | (runs.c.seq > seq),
        )
        .order_by(runs.c.created_at, runs.c.seq)
        .limit(PAGE)
    )
    stopped = _still_in_flight(
        conn, [row for row in found if _touchable(conn, row["thread_id"], permitted)]
    )
    for row in stopped:
        if row["status"] == RunStatus.PENDING:
            cancel_pending(conn, row, control.action)
        else:
            _tell_worker(conn, row, control)
    if len(found) < PAGE:
        return stopped, None
    return stopped, (found[-1]["created_at"], found[-1]["seq"])


def _still_in_flight(conn: Connection, found: list[Row]) -> list[Row]:
    """Those of `found`, as they are once others can no longer start or end them."""
    for thread_id in sorted({row["thread_id"] for row in found}) if conn.locks else ():
        thread_rows.find(conn, thread_id)
    return conn.fetchall(
        select(runs)
        .where(runs.c.run_id.in_([row["run_id"] for row in found]), run_rows.IN_FLIGHT)
        .order_by(runs.c.created_at, runs.c.seq)
        .with_for_update(key_share=True)
    )


def _touchable(conn: Connection, thread_id: UUID, permitted: Filter) -> bool:
    if not permitted:
        return True
    metadata = conn.scalar(select(threads.c.metadata).where(threads.c.thread_id == thread_id))
    return filters.allows(permitted, metadata)


def cancel_pending(conn: Connection, row: Row, action: str) -> None:
    """End a run that nobody works on, with or without a trace."""
    run_id = row["run_id"]
    run = run_rows.find(conn, run_id) or row
    if row["kwargs"].get("temporary"):
        # A stateless run takes its thread with it, however it ends.
        thread_rows.delete(conn, row["thread_id"])
    elif action == "rollback":
        # An earlier attempt may have written some.
        checkpoint.delete_for_runs(conn, [run_id], row["thread_id"])
        run_rows.delete(conn, run_id)
    else:
        conn.execute(
            runs.update()
            .where(runs.c.run_id == run_id)
            .values(
                status=RunStatus.INTERRUPTED,
                updated_at=conn.now(),
                claimed_by=None,
                lease_until=None,
            )
        )
    thread_rows.rest(conn, row["thread_id"], busy=run_rows.any_in_flight(conn, row["thread_id"]))
    tell_hooks(conn, run, ROLLBACK if action == ROLLBACK else RunStatus.INTERRUPTED)
    announce_end(conn, row)


def tell_hooks(conn: Connection, run: Row, status: str) -> None:
    """Tell the host of a run that ends without a worker."""
    if not hooks.active("after_run_end"):
        return
    thread = thread_rows.find(conn, run["thread_id"])
    ended = {**run_rows.public(run), "status": status}
    hooks.call("after_run_end", conn, Caller(), thread, ended, status)


def announce_end(conn: Connection, row: Row) -> None:
    """Tell the run's followers, once this is committed, that it has ended."""
    announce.ended(conn, row)
    # What waited behind it may go now.
    announce.wake(conn)


def _tell_worker(conn: Connection, row: Row, control: Control) -> None:
    conn.execute(
        runs.update()
        .where(runs.c.run_id == row["run_id"])
        .values(cancel_action=control.action, cancel_reason=control.reason, updated_at=conn.now())
    )
    announce.stop(conn, row["run_id"], control)
