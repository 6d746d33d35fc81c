"""The end of a run: its status, its thread's row, and the host's hook."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import bindparam
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, hooks, json_codec, request_context, runtime
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.errors import Outdated, SupersededAttempt
from langgraph_runtime_sql.events import log
from langgraph_runtime_sql.events.changes import changed_metadata
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.json_codec import Unstorable
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.runs.cancel import announce_end
from langgraph_runtime_sql.ops.threads import long_values, newest_state
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.search import metadata_index
from langgraph_runtime_sql.statuses import ROLLBACK, RunStatus, ThreadStatus
from langgraph_runtime_sql.webhooks import outbox

logger = structlog.stdlib.get_logger(__name__)

Check = Callable[[Connection], None]


@cache
def _update(*columns: str) -> Prepared:
    """Return the statement that sets columns of the thread `id`, each to `new_` and its name."""
    return Prepared(
        threads.update()
        .where(threads.c.thread_id == bindparam("id"))
        .values({name: bindparam(f"new_{name}") for name in columns})
    )


async def set_joint_status(
    conn: Any,
    thread_id: Any,
    run_id: Any,
    run_status: str,
    graph_id: str,
    checkpoint: Mapping[str, Any] | None = None,
    exception: BaseException | None = None,
) -> None:
    """End a run, or delete it for `rollback`, and update its thread in the same transaction.

    Raises:
        HTTPException: (404) the run or its thread does not exist.
        SupersededAttempt: another attempt owns the run.
    """
    from langgraph_api.errors import UserInterrupt

    thread, run = as_uuid(thread_id, "thread ID"), as_uuid(run_id, "run ID")
    ending = _Ending(thread, run, run_status, graph_id, request_context.claim.get())
    is_early = isinstance(exception, UserInterrupt | TimeoutError)
    if run_status != ROLLBACK and (is_early or _is_of_another_run(checkpoint, run)):
        await _end_with_newest(ending, checkpoint, exception)
    else:
        await ending.write(_outcome(checkpoint, exception))
    if run_status == ROLLBACK:
        await newest_state.refresh_after_rollback(thread, graph_id)


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a run by the worker with this claim."""

    thread_id: UUID
    run_id: UUID
    status: str
    graph_id: str
    claim: Claim | None

    async def write(self, outcome: dict[str, Any], check: Check | None = None) -> None:
        """Write the end of the run and its outcome, unless `check` raises."""

        def fn(conn: Connection) -> None:
            pending_thread = thread_rows.prefetch(conn, self.thread_id)
            pending_run = run_rows.prefetch(conn, self.run_id)
            others = run_rows.prefetch_others(conn, self.run_id, self.thread_id)
            conn.prefetch_now()
            thread, run = pending_thread.one(), pending_run.one()
            if thread is None or run is None or run["thread_id"] != self.thread_id:
                what = f"Thread {self.thread_id}" if thread is None else f"Run {self.run_id}"
                raise HTTPException(404, f"{what} not found")
            check_owned(run, self.claim)
            if check is not None:
                check(conn)
            changes = {**outcome, "graph_id": self.graph_id}
            end(conn, thread, run, self.status, changes, busy=others.one() is not None)
            if self.status == ROLLBACK:
                # The worker announces the end later, when the thread's state is refreshed.
                log.drop_run(conn, self.thread_id, str(self.run_id))
            else:
                announce.ended(conn, run)

        await runtime.current().database.write(fn)


def _is_of_another_run(checkpoint: Mapping[str, Any] | None, run_id: UUID) -> bool:
    """Return whether another run has written the reported state.

    A run of the v2 protocol reports no state, so the worker reads it by the run's own config. For a
    fork, this names the checkpoint where the run began.
    """
    metadata = None if checkpoint is None else checkpoint.get("metadata")
    writer = None if metadata is None else metadata.get("run_id")
    return writer is not None and str(writer) != str(run_id)


async def _end_with_newest(
    ending: _Ending, reported: Mapping[str, Any] | None, exception: BaseException | None
) -> None:
    """End a run with the stored state of its thread instead of the reported one."""
    while True:
        try:
            version, state = await newest_state.find(ending.thread_id, ending.graph_id)
        except Exception:
            # The graph's own code has failed. The run ends anyway.
            logger.exception("Reading a thread's state failed", action="refresh_failed")
            await ending.write(_outcome(reported, exception))
            return
        check = partial(newest_state.refuse_outdated, thread_id=ending.thread_id, version=version)
        # Read again if a late checkpoint of the run has arrived meanwhile.
        with suppress(Outdated):
            await ending.write(_outcome(state, exception), check)
            return


def check_owned(run: Row, claim: Claim | None) -> None:
    """Check that the attempt of `claim` still owns its run.

    Raises:
        SupersededAttempt: another attempt owns the run, or it has ended.
    """
    if claim is None or claim.run_id != str(run["run_id"]):
        return
    is_owner = run["attempt"] == claim.attempt and claim.owner in (None, run["claimed_by"])
    if run["status"] != RunStatus.RUNNING or not is_owner:
        raise SupersededAttempt(
            f"Attempt {claim.attempt} of run {claim.run_id} no longer owns the run"
        )


def _outcome(state: Mapping[str, Any] | None, exception: BaseException | None) -> dict[str, Any]:
    """Return the thread's new columns after a run, as plain JSON."""
    from langgraph_api.errors import UserInterrupt, UserRollback
    from langgraph_api.state import patch_interrupt

    outcome: dict[str, Any] = {"status": ThreadStatus.IDLE, "error": None}
    if exception is not None:
        outcome["error"] = json_codec.plain(exception)
    if exception is not None and not isinstance(exception, UserInterrupt | UserRollback):
        outcome["status"] = ThreadStatus.ERROR
    elif state is not None and state["next"]:
        outcome["status"] = ThreadStatus.INTERRUPTED
    if state is None:
        # Without a new state, the thread keeps its values and interrupts.
        return outcome
    try:
        outcome["values"] = json_codec.plain(state["values"])
        if not state["next"]:
            # The values of a waiting thread may contain what its tasks have written since.
            outcome["checkpoint_id"] = (state.get("checkpoint") or {}).get("checkpoint_id")
        outcome["interrupts"] = json_codec.plain(
            {
                task["id"]: [patch_interrupt(each) for each in task["interrupts"]]
                for task in state["tasks"]
                if task.get("interrupts")
            }
        )
    except Unstorable as error:
        # The checkpoints have the state. Only this copy of it cannot be stored.
        outcome["status"] = ThreadStatus.ERROR
        outcome["error"] = {"error": "Unstorable", "message": error.detail}
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
    now = conn.now()
    if run_status == ROLLBACK:
        checkpoint.delete_for_runs(conn, [run["run_id"]], thread["thread_id"])
        run_rows.delete(conn, run["run_id"])
    else:
        run_rows.end(conn, run["run_id"], run_status, now)
    # A rollback leaves the thread's status as it was before the run.
    resting = thread["resting_status"] if run_status == ROLLBACK else outcome["status"]
    is_cancelled = run_status in (RunStatus.INTERRUPTED, ROLLBACK)
    # The run says why it was cancelled, if the installed API shows that.
    error = None if is_cancelled and run_rows.tell_why_cancelled() else outcome["error"]
    metadata = dict(thread["metadata"])
    if outcome.get("graph_id"):
        metadata["graph_id"] = outcome["graph_id"]
    columns = {
        "updated_at": now,
        "state_updated_at": now,
        "metadata": metadata,
        "status": ThreadStatus.BUSY if busy else resting,
        "resting_status": resting,
        "error": error,
        "expires_at": thread["expires_at"],
        **thread_rows.renewed(thread, now),
    }
    if "values" in outcome and "interrupts" in outcome:
        columns["interrupts"] = outcome["interrupts"]
        columns |= long_values.columns(
            conn,
            thread["thread_id"],
            outcome["values"],
            outcome.get("graph_id"),
            outcome.get("checkpoint_id"),
        )
    sealed = seal_row(conn, threads, thread["thread_id"], thread["tenant"], columns)
    values = {f"new_{name}": value for name, value in sealed.items()}
    conn.send(_update(*columns), {"id": thread["thread_id"], **values})
    changed_metadata(conn, thread, {**thread, "metadata": metadata})
    metadata_index.update(conn, thread["thread_id"], thread["metadata"], metadata, now)
    ended = {**run, "status": run_status, "updated_at": now}
    shown = run_rows.public(ended)
    outbox.add(conn, run, shown, thread["tenant"], {**outcome, "status": run_status})
    ended_thread = {**thread, **columns}
    if "values" in outcome:
        ended_thread["values"] = outcome["values"]
    hooks.call("after_run_end", conn, Caller(), ended_thread, shown, run_status)


def give_up(conn: Connection, run_id: UUID, attempt: int, error: Exception, owner: str) -> None:
    """End with an error a run that no worker can start, if this attempt still holds it."""
    run = run_rows.find(conn, run_id)
    if run is None or not run_rows.is_held(conn, run_id, attempt, owner):
        return
    thread = thread_rows.find(conn, run["thread_id"])
    if thread is None or run["kwargs"].get("temporary"):
        failed = {"status": RunStatus.ERROR, "error": json_codec.plain(error)}
        outbox.add(conn, run, run_rows.public(run), run["tenant"], failed)
        if not run_result.keep(conn, run, error):
            thread_rows.delete(conn, run["thread_id"])
    else:
        outcome = {"status": ThreadStatus.ERROR, "error": json_codec.plain(error)}
        others = run_rows.prefetch_others(conn, run_id, run["thread_id"])
        end(conn, thread, run, RunStatus.ERROR, outcome, busy=others.one() is not None)
    announce_end(conn, run)
