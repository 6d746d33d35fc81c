"""The guard of a thread's state: check each checkpoint that a client writes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self, TypeVar
from uuid import UUID

from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, hooks, request_context, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.errors import Outdated
from langgraph_runtime_sql.gate import entries
from langgraph_runtime_sql.gate.caller import Caller
from langgraph_runtime_sql.gate.operations import STATE_WRITE
from langgraph_runtime_sql.hooks import Reject
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows

_IN_FLIGHT = Prepared(
    select(runs.c.run_id).where(runs.c.thread_id == bindparam("thread_id"), run_rows.IN_FLIGHT)
)

T = TypeVar("T")


class StateGuard:
    """A context that checks each written checkpoint in its transaction.

    The first checkpoint calls the hook. If another error prevents it, the exit calls the hook, so
    that the hook's own refusal comes first.

    A graph reads the newest checkpoint before it writes the next. The guard refuses a checkpoint
    that would overwrite the work of another writer in between.

    Args:
        configurable: The target. A `checkpoint_id` writes onto that checkpoint, even an old one.
    """

    def __init__(self, thread_id: UUID, requester: Caller, configurable: Mapping[str, Any]) -> None:
        self._thread_id = thread_id
        self._caller = requester
        self._namespace = str(configurable.get("checkpoint_ns") or "")
        self._onto_newest = not configurable.get("checkpoint_id")
        self._is_hook_called = False
        self._newest: str | None = None
        # The checkpoints that this context has written.
        self._written: set[str] = set()

    async def begin(self, read: Callable[[Connection], T]) -> T:
        """Note the newest checkpoint, and return the result of `read`.

        Raises:
            HTTPException: (409) the thread has runs in flight.
        """

        def fn(conn: Connection) -> tuple[str | None, T]:
            self._refuse_in_flight(conn)
            return checkpoint.latest_id(conn, self._thread_id, self._namespace), read(conn)

        self._newest, found = await runtime.current().database.read(fn)
        return found

    async def __aenter__(self) -> Self:
        self._guard = request_context.write_guard.set(self._check)
        # A run may write another thread's state: the fence of its own thread does not apply.
        self._claim = request_context.claim.set(None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        request_context.write_guard.reset(self._guard)
        request_context.claim.reset(self._claim)
        is_own_refusal = isinstance(error, HTTPException) and not isinstance(error, Reject)
        if is_own_refusal and not self._is_hook_called and hooks.active("before_state_update"):
            await runtime.current().database.write(self._call_hook_only)

    def _check(self, conn: Connection, written: str | None) -> None:
        row = self._locked_row(conn)
        if not self._is_hook_called:
            self._call_hook(conn, row)
            conn.after_commit(self._note_hook_call)
            entries.record(conn, STATE_WRITE, self._thread_id)
        self._refuse_in_flight(conn)
        self._refuse_outdated(conn)
        if written is not None:
            conn.after_commit(partial(self._written.add, written))

    def _refuse_in_flight(self, conn: Connection) -> None:
        found = conn.fetchall(_IN_FLIGHT, {"thread_id": self._thread_id})
        if found:
            raise HTTPException(
                409,
                f"Thread {self._thread_id} has runs in flight: "
                f"{', '.join(str(row['run_id']) for row in found)}. "
                "Wait for them or cancel them, then write the state.",
            )

    def _refuse_outdated(self, conn: Connection) -> None:
        # The caller has locked the thread, so the newest checkpoint cannot change any more.
        if not self._onto_newest:
            return
        newest = checkpoint.latest_id(conn, self._thread_id, self._namespace)
        if newest == self._newest or newest in self._written:
            return
        if self._written:
            raise HTTPException(
                409,
                f"Another client has written the state of thread {self._thread_id} after the "
                "first of these supersteps. Read the state and send the missing supersteps.",
            )
        raise Outdated

    def _call_hook(self, conn: Connection, row: Row) -> None:
        hooks.call("before_state_update", conn, self._caller, row)

    def _call_hook_only(self, conn: Connection) -> None:
        with conn.rolled_back():
            self._call_hook(conn, self._locked_row(conn))

    def _locked_row(self, conn: Connection) -> Row:
        row = thread_rows.find(conn, self._thread_id)
        if row is None:
            raise HTTPException(404, f"Thread {self._thread_id} not found.")
        return thread_rows.public(row)

    def _note_hook_call(self) -> None:
        self._is_hook_called = True
