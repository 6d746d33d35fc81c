"""Guard of a thread's state: who may write onto it, and onto which checkpoint."""

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
from langgraph_runtime_sql.hooks import Caller, Reject
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import rows as thread_rows

_IN_FLIGHT = Prepared(
    select(runs.c.run_id).where(
        runs.c.thread_id == bindparam("thread_id"),
        run_rows.IN_FLIGHT,
    )
)

T = TypeVar("T")


class StateGuard:
    """While this is entered, each checkpoint written asks it, in its transaction.

    The first one asks the hook. Where nothing is written because something else is wrong, the
    hook is asked all the same: it may know a better reason to refuse.

    A graph reads the newest checkpoint before it writes the next one. What others have written
    in between, a run that has ended meanwhile included, would not be in it, and be lost.

    Args:
        configurable: Says where is written; with a `checkpoint_id` it is meant as it is.
    """

    def __init__(self, thread_id: UUID, who: Caller, configurable: Mapping[str, Any]) -> None:
        self._thread_id = thread_id
        self._caller = who
        self._namespace = str(configurable.get("checkpoint_ns") or "")
        self._onto_newest = not configurable.get("checkpoint_id")
        self._asked = False
        self._newest: str | None = None
        # The checkpoints that were written here.
        self._written: set[str] = set()

    async def look(self, read: Callable[[Connection], T]) -> T:
        """What `read` says of the thread, onto whose newest checkpoint is written from now on.

        Raises:
            HTTPException: (409) it has runs in flight.
        """

        def fn(conn: Connection) -> tuple[str | None, T]:
            self._refuse_in_flight(conn)
            return checkpoint.latest_id(conn, self._thread_id, self._namespace), read(conn)

        self._newest, found = await runtime.current().database.read(fn)
        return found

    async def __aenter__(self) -> Self:
        self._guard = request_context.write_guard.set(self._ask)
        # A graph may write another thread's state: that is its client's doing, not its run's.
        self._claim = request_context.claim.set(None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        request_context.write_guard.reset(self._guard)
        request_context.claim.reset(self._claim)
        by_us = isinstance(error, HTTPException) and not isinstance(error, Reject)
        if by_us and not self._asked and hooks.active("before_state_update"):
            await runtime.current().database.write(self._ask_in_vain)

    def _ask(self, conn: Connection, written: str | None) -> None:
        row = self._row(conn)
        if not self._asked:
            hooks.call("before_state_update", conn, self._caller, row)
            conn.after_commit(self._note_asked)
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
        """The thread is locked by now: nobody else is about to write."""
        if not self._onto_newest:
            return
        newest = checkpoint.latest_id(conn, self._thread_id, self._namespace)
        if newest == self._newest or newest in self._written:
            return
        if self._written:
            raise HTTPException(
                409,
                f"The state of thread {self._thread_id} was written by somebody else after "
                "the first of these supersteps: read it and send what is missing.",
            )
        raise Outdated

    def _ask_in_vain(self, conn: Connection) -> None:
        with conn.rolled_back():
            hooks.call("before_state_update", conn, self._caller, self._row(conn))

    def _row(self, conn: Connection) -> Row:
        row = thread_rows.find(conn, self._thread_id)
        if row is None:
            raise HTTPException(404, f"Thread {self._thread_id} not found.")
        return thread_rows.public(row)

    def _note_asked(self) -> None:
        self._asked = True
