"""The end of a run: its status, its thread's, and who is told."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import bus, checkpoint, database, hooks, json_codec, labels
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.json_codec import Unstorable
from langgraph_runtime_sql.ops import run_result, run_rows, thread_rows
from langgraph_runtime_sql.ops.access import as_uuid
from langgraph_runtime_sql.ops.run_cancel import announce_end
from langgraph_runtime_sql.statements import Prepared, Row
from langgraph_runtime_sql.tables import runs, threads

_END = Prepared(
    runs.update()
    .where(runs.c.run_id == bindparam("ended_run"))
    .values(
        status=bindparam("new_status"),
        updated_at=bindparam("moment"),
        claimed_by=None,
        lease_until=None,
    )
)
_THREAD = {
    "updated_at",
    "state_updated_at",
    "metadata",
    "status",
    "resting_status",
    "error",
    "expires_at",
}
_VALUES = {"values", "interrupts"}


def _update(columns: set[str]) -> Prepared:
    return Prepared(
        threads.update()
        .where(threads.c.thread_id == bindparam("id"))
        .values({name: bindparam(f"new_{name}") for name in columns})
    )


_ENDED_THREAD = _update(_THREAD)
_ENDED_THREAD_WITH_VALUES = _update(_THREAD | _VALUES)


async def set_joint_status(
    conn: Any,
    thread_id: Any,
    run_id: Any,
    run_status: str,
    graph_id: str,
    checkpoint: Mapping[str, Any] | None = None,
    exception: BaseException | None = None,
) -> None:
    """End a run (or delete it, for `rollback`) and bring its thread up to date, as one step.

    Raises:
        HTTPException: (404) the run or its thread is gone.
        SupersededAttempt: another attempt owns the run by now.
    """
    run_uuid, thread_uuid = as_uuid(run_id, "run ID"), as_uuid(thread_id, "thread ID")
    outcome = _outcome(checkpoint, exception)
    claim = _claim()

    def fn(conn: Connection) -> None:
        asked_thread = thread_rows.ask(conn, thread_uuid)
        asked_run = run_rows.ask(conn, run_uuid)
        others = run_rows.ask_others(conn, run_uuid, thread_uuid)
        conn.ask_now()
        thread, run = asked_thread.one(), asked_run.one()
        if thread is None or run is None or run["thread_id"] != thread_uuid:
            what = f"Thread {thread_uuid}" if thread is None else f"Run {run_uuid}"
            raise HTTPException(404, f"{what} not found")
        check_owned(run, claim)
        outcome["graph_id"] = graph_id
        end(conn, thread, run, run_status, outcome, busy=others.one() is not None)

    await bus.current().flushing(database.current().write(fn))


def _claim() -> checkpoint.Claim | None:
    return checkpoint.claim.get()


def check_owned(run: Row, claim: checkpoint.Claim | None) -> None:
    """Refuse what an attempt does to its run once that is no longer its own.

    Raises:
        SupersededAttempt: another attempt has taken the run over, or it has ended.
    """
    if claim is None or claim.run_id != str(run["run_id"]):
        return
    ours = run["attempt"] == claim.attempt and claim.owner in (None, run["claimed_by"])
    if run["status"] != run_rows.RUNNING or not ours:
        raise SupersededAttempt(
            f"Attempt {claim.attempt} of run {claim.run_id} no longer owns the run"
        )


def _outcome(state: Mapping[str, Any] | None, exception: BaseException | None) -> dict[str, Any]:
    """What a run leaves behind, as the thread's columns, already plain JSON."""
    from langgraph_api.errors import UserInterrupt, UserRollback
    from langgraph_api.state import patch_interrupt

    outcome: dict[str, Any] = {"status": "idle", "error": None}
    if exception is not None:
        outcome["error"] = json_codec.plain(exception)
    if exception is not None and not isinstance(exception, UserInterrupt | UserRollback):
        outcome["status"] = "error"
    elif state is not None and state["next"]:
        outcome["status"] = "interrupted"
    if state is None:
        # Nothing was written that could replace what the thread has.
        return outcome
    try:
        outcome["values"] = json_codec.plain(state["values"])
        outcome["interrupts"] = json_codec.plain(
            {
                task["id"]: [patch_interrupt(each) for each in task["interrupts"]]
                for task in state["tasks"]
                if task.get("interrupts")
            }
        )
    except Unstorable as error:
        # The state is in the checkpoints; only this view of it cannot be shown.
        outcome |= {"status": "error", "error": {"error": "Unstorable", "message": error.detail}}
    return outcome


def end(
    conn: Connection,
    thread: Row,
    run: Row,
    run_status: str,
    outcome: Mapping[str, Any],
    *,
    busy: bool,
) -> None:
    """End `run` inside a transaction.

    Args:
        outcome: The thread's new columns and graph id.
        busy: Whether other runs of the thread are in flight.
    """
    moment = conn.now()
    if run_status == "rollback":
        checkpoint.delete_for_runs(conn, [run["run_id"]], thread["thread_id"])
        run_rows.delete(conn, run["run_id"])
    else:
        conn.send(_END, {"ended_run": run["run_id"], "new_status": run_status, "moment": moment})
    # A run that is undone leaves its thread as it was.
    resting = thread["resting_status"] if run_status == "rollback" else outcome["status"]
    metadata = dict(thread["metadata"])
    if outcome.get("graph_id"):
        metadata["graph_id"] = outcome["graph_id"]
    columns = {
        "updated_at": moment,
        "state_updated_at": moment,
        "metadata": metadata,
        "status": "busy" if busy else resting,
        "resting_status": resting,
        "error": outcome["error"],
        "expires_at": thread["expires_at"],
        **thread_rows.renewed(thread, moment),
    }
    statement = _ENDED_THREAD
    if "values" in outcome and "interrupts" in outcome:
        statement = _ENDED_THREAD_WITH_VALUES
        columns |= {name: outcome[name] for name in _VALUES}
    conn.send(
        statement,
        {"id": thread["thread_id"], **{f"new_{name}": columns[name] for name in columns}},
    )
    labels.relabel(conn, thread["thread_id"], thread["metadata"], metadata, moment)
    ended = {**run, "status": run_status, "updated_at": moment}
    hooks.call(
        "after_run_end", conn, Caller(), {**thread, **columns}, run_rows.public(ended), run_status
    )


def give_up(conn: Connection, run_id: UUID, attempt: int, error: Exception, owner: str) -> None:
    """End as an error a run that `owner` holds with this attempt and that nobody can work on."""
    run = run_rows.find(conn, run_id)
    if run is None or not run_rows.is_held(conn, run_id, attempt, owner):
        return
    thread = thread_rows.find(conn, run["thread_id"])
    if thread is None or run["kwargs"].get("temporary"):
        if not run_result.keep(conn, run, error):
            thread_rows.delete(conn, run["thread_id"])
    else:
        outcome = {"status": "error", "error": json_codec.plain(error)}
        others = run_rows.ask_others(conn, run_id, run["thread_id"])
        end(conn, thread, run, "error", outcome, busy=others.one() is not None)
    announce_end(conn, run)
