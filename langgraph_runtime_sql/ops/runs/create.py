"""The creation of a run: its merged documents, and the changes of its thread."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import hooks, json_codec, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.gate import command, entries, limits
from langgraph_runtime_sql.gate.caller import Caller, user_fields
from langgraph_runtime_sql.gate.operations import RUN_CREATE
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.limits import members
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows
from langgraph_runtime_sql.ops.crons.firing import count_fired, note_fired
from langgraph_runtime_sql.ops.runs import announce
from langgraph_runtime_sql.ops.runs import result as run_result
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import ThreadStatus

Document = dict[str, Any]

_OWNER = ("tenant", "user_id", "priority")
_INSERT = Prepared(
    runs.insert().values({name: bindparam(name) for name in (*run_rows.FIELDS, *_OWNER)})
)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The arguments of `Runs.put` once it is admitted.

    Attributes:
        threads: The threads on which the caller may run something.
        assistants: The assistants that the caller may use.
    """

    assistant_id: UUID
    run_id: UUID
    thread_id: UUID
    kwargs: Document
    metadata: Document
    status: str
    multitask_strategy: str
    reject_if_in_flight: bool
    create_thread: bool
    after_seconds: float
    user_id: str | None
    langsmith_session_name: str | None
    threads: Visible
    assistants: Visible
    checked_graph: str | None
    caller: Caller
    firing: Any

    @property
    def config(self) -> Document:
        """Return the run's own config."""
        return self.kwargs.get("config") or {}


def create(conn: Connection, request: RunRequest) -> list[Row]:
    """Queue the run. Return it, followed by the other runs in flight on its thread.

    If `reject_if_in_flight` prevents the run, return only the others. If the thread or the
    assistant is missing or hidden, return nothing. Both change nothing.
    """
    pending_assistant = assistant_rows.prefetch(conn, request.assistant_id)
    pending_thread = thread_rows.prefetch(conn, request.thread_id)
    conn.prefetch_now()
    assistant, thread = request.assistants.only(pending_assistant.one()), pending_thread.one()
    if assistant is None:
        return []
    command.require_graph(assistant, request.checked_graph, request.kwargs)
    if thread is None and not request.create_thread:
        return []
    if thread is not None and not request.threads.shows(thread["metadata"]):
        return []
    others = [] if thread is None else _others(conn, request)
    row = _row(request, assistant, thread, conn.now())
    if thread is not None and others and request.reject_if_in_flight:
        with conn.rolled_back():
            # The hook's own refusal comes first.
            _call_hook(conn, request, thread, row)
        return [run_rows.public(other) for other in others]
    if thread is None:
        thread = _new_thread(conn, request, assistant)
    _call_hook(conn, request, thread, row)
    owner = _owner(request, thread["tenant"])
    limits.run(conn, row, owner["tenant"], owner["user_id"])
    if thread["status"] != ThreadStatus.BUSY:
        _occupy(conn, request, assistant, thread)
    if request.firing is not None:
        note_fired(conn, request.firing)
        count_fired(conn)
    whole = {**row, **owner}
    of_thread = {"thread_id": str(request.thread_id)}
    entries.record(conn, RUN_CREATE, request.run_id, tenant=whole["tenant"], detail=of_thread)
    conn.send(_INSERT, seal_row(conn, runs, request.run_id, thread["tenant"], whole))
    announce.made(conn, whole)
    announce.wake(conn)
    return [run_rows.public(row), *(run_rows.public(other) for other in others)]


def _others(conn: Connection, request: RunRequest) -> list[Row]:
    if request.multitask_strategy == "enqueue" and not request.reject_if_in_flight:
        # An enqueued run does not affect the runs before it, which may be many.
        return []
    return run_rows.in_flight(conn, request.thread_id)


def _call_hook(conn: Connection, request: RunRequest, thread: Row, run: Row) -> None:
    hooks.call("before_run_create", conn, request.caller, thread_rows.public(thread), run)


def _new_thread(conn: Connection, request: RunRequest, assistant: Row) -> Row:
    metadata = _merged(
        {"graph_id": assistant["graph_id"], "assistant_id": str(request.assistant_id)},
        request.config.get("metadata"),
        request.metadata,
    )
    configurable = dict(_configurable(assistant["config"]))
    config = _merged(assistant["config"], request.config, {"configurable": configurable})
    thread_id, requester = request.thread_id, request.caller
    try:
        return thread_rows.insert(
            conn, thread_id, metadata, requester, config=config, status=ThreadStatus.BUSY
        )
    except thread_rows.ThreadExists as error:
        # A hidden thread looks like a missing one.
        raise HTTPException(404, "Thread or assistant not found.") from error


def _occupy(conn: Connection, request: RunRequest, assistant: Row, thread: Row) -> None:
    """Make an existing thread busy with this assistant."""
    if hooks.active("before_run_create"):
        # The hook may have patched the thread.
        thread = thread_rows.find(conn, request.thread_id) or thread
    changes = {"graph_id": assistant["graph_id"], "assistant_id": str(request.assistant_id)}
    metadata = _merged(thread["metadata"], changes)
    configs = assistant["config"], thread["config"]
    configurable = _merged(*map(_configurable, configs))
    config = _merged(*configs, request.config, {"configurable": configurable})
    thread_rows.occupy(conn, thread, metadata=metadata, config=config)


def _row(request: RunRequest, assistant: Row, thread: Row | None, now: datetime) -> Row:
    """Return the run as it is stored. Later documents win, key by key."""
    config = request.config
    thread_config = thread["config"] if thread else {}
    metadata = _merged(
        assistant["metadata"],
        thread["metadata"] if thread else None,
        # The metadata that `_occupy` gives to an idle thread.
        {"graph_id": assistant["graph_id"]}
        if thread and thread["status"] != ThreadStatus.BUSY
        else None,
        config.get("metadata"),
        request.metadata,
        # Last, so that a client cannot name another assistant.
        {"assistant_id": str(request.assistant_id)},
    )
    configs = config, thread_config, assistant["config"]
    user_ids = (_configurable(each).get("user_id") for each in configs)
    user_id = next(filter(None, user_ids), request.user_id)
    configurable = _merged(
        _configurable(assistant["config"]),
        _configurable(thread_config),
        _configurable(config),
        {
            "run_id": str(request.run_id),
            "thread_id": str(request.thread_id),
            "graph_id": assistant["graph_id"],
            "assistant_id": str(request.assistant_id),
            "user_id": user_id,
        },
        run_result.mark(request.run_id, request.kwargs),
    )
    user = configurable.get("langgraph_auth_user")
    if user is not None and not isinstance(user, dict):
        configurable["langgraph_auth_user"] = user_fields(user)
    own = {"configurable": configurable, "metadata": metadata}
    kwargs = {
        **request.kwargs,
        "config": _merged(assistant["config"], config, own),
        "context": _merged(assistant["context"], request.kwargs.get("context")),
    }
    try:
        due = now + timedelta(seconds=float(request.after_seconds or 0))
    except OverflowError as error:
        raise HTTPException(422, "`after_seconds` is too far in the future") from error
    return {
        "run_id": request.run_id,
        "thread_id": request.thread_id,
        "assistant_id": request.assistant_id,
        "created_at": due,
        "updated_at": now,
        "status": request.status,
        "metadata": metadata,
        "kwargs": kwargs,
        "multitask_strategy": request.multitask_strategy,
        "langsmith_session_name": request.langsmith_session_name,
    }


def _owner(request: RunRequest, tenant: str | None) -> Row:
    """Return whose run it is, and its priority among the runs of its tenant."""
    user = request.caller.identity or request.user_id
    user = json_codec.as_stored(user) if user else None
    from_cron = request.firing is not None
    limits = runtime.current().options.limits
    rank = members.priority(limits, tenant, user, request.assistant_id, from_cron=from_cron)
    return {"tenant": tenant, "user_id": user, "priority": rank}


def _merged(*documents: Mapping[str, Any] | None) -> Document:
    merged: Document = {}
    for document in documents:
        merged.update(document or {})
    return merged


def _configurable(config: Mapping[str, Any]) -> Document:
    return config.get("configurable") or {}
