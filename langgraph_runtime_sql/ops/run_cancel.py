"""Cancelling runs: those that wait end at once, those that run are told to."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import bus, checkpoint, database, filters, hooks
from langgraph_runtime_sql.bus import Control
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops import custom_checkpointer, run_rows, thread_rows
from langgraph_runtime_sql.ops.access import Filter, as_uuid, authorize
from langgraph_runtime_sql.statements import Row
from langgraph_runtime_sql.tables import runs, threads

ACTIONS = ("interrupt", "rollback")
_GROUPS = {"pending": ("pending",), "running": ("running",), "all": ("pending", "running")}


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
    if assistant_id is not None:
        chosen = select(runs).where(runs.c.assistant_id == as_uuid(assistant_id, "assistant ID"))
    elif status is not None:
        chosen = select(runs).where(runs.c.status.in_(_GROUPS[status]))
    else:
        chosen = select(runs).where(runs.c.thread_id == thread, runs.c.run_id.in_(wanted))

    def fn(conn: Connection) -> list[Row]:
        return _cancel(conn, chosen, permitted, Control(action, reason))

    stopped = await database.current().write(fn)
    if not stopped and assistant_id is None:
        raise HTTPException(
            404, "No runs to cancel: check the ids, and that the runs have not ended."
        )
    if action == "rollback":
        for row in stopped:
            if row["status"] == run_rows.PENDING:
                await custom_checkpointer.delete_run(row["run_id"])


def _check_arguments(
    run_ids: Any, thread_id: Any, status: str | None, assistant_id: Any, action: str
) -> None:
    by_ids = thread_id is not None or run_ids is not None
    ways = (assistant_id is not None) + (status is not None) + by_ids
    if ways != 1 or (by_ids and (thread_id is None or run_ids is None)):
        raise HTTPException(
            422, "Give either `status`, or `assistant_id`, or both `thread_id` and `run_ids`"
        )
    if status is not None and status not in _GROUPS:
        raise HTTPException(422, f"Unknown status {status!r}; use pending, running or all")
    if action not in ACTIONS:
        raise HTTPException(422, f"Unknown action {action!r}; use interrupt or rollback")


def _cancel(
    conn: Connection, chosen: Select[Any], permitted: Filter, control: Control
) -> list[Row]:
    """Cancel the chosen runs that are in flight and may be touched; returns them."""
    in_flight = conn.fetchall(
        chosen.where(runs.c.status.in_(_GROUPS["all"])).order_by(runs.c.created_at, runs.c.seq)
    )
    stopped = [row for row in in_flight if _touchable(conn, row["thread_id"], permitted)]
    if conn.locks:
        stopped = _still_in_flight(conn, stopped)
    for row in stopped:
        if row["status"] == run_rows.PENDING:
            cancel_pending(conn, row, control.action)
        else:
            _tell_worker(conn, row, control)
    return stopped


def _still_in_flight(conn: Connection, found: list[Row]) -> list[Row]:
    """Those of `found`, as they are once others can no longer start or end them."""
    locked = {
        row["run_id"]: row
        for thread_id in sorted({row["thread_id"] for row in found})
        if thread_rows.find(conn, thread_id) is not None
        for row in run_rows.in_flight(conn, thread_id)
    }
    return [locked[row["run_id"]] for row in found if row["run_id"] in locked]


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
            .values(status="interrupted", updated_at=conn.now(), claimed_by=None, lease_until=None)
        )
    thread_rows.rest(conn, row["thread_id"], busy=run_rows.any_in_flight(conn, row["thread_id"]))
    tell_hooks(conn, run, "rollback" if action == "rollback" else "interrupted")
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
    run_id, thread_id = str(row["run_id"]), str(row["thread_id"])
    resumable = bool(row["kwargs"].get("resumable"))
    conn.after_commit(lambda: bus.current().run_ended(run_id, thread_id, resumable=resumable))
    # What waited behind it may go now.
    conn.after_commit(lambda: bus.current().wake())


def _tell_worker(conn: Connection, row: Row, control: Control) -> None:
    conn.execute(
        runs.update()
        .where(runs.c.run_id == row["run_id"])
        .values(cancel_action=control.action, cancel_reason=control.reason, updated_at=conn.now())
    )
    run_id = str(row["run_id"])
    conn.after_commit(lambda: bus.current().send_control(run_id, control))
