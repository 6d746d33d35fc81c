"""Hooks: let a host take part in the runtime's transactions.

A host passes an object with any of the methods of `Hooks`. The runtime calls them inside the
transaction, before its commit, for every route. A `Reject` rolls the transaction back and answers
the request. Hooks are plain functions and must not wait.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import BigInteger, bindparam, func, literal, or_, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, process, runtime
from langgraph_runtime_sql.audit.entry import POLICY, Note
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    crons,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import LockingSelect, Prepared, Row
from langgraph_runtime_sql.encryption.documents import moved_to_tenant
from langgraph_runtime_sql.events.changes import changed_metadata
from langgraph_runtime_sql.gate.caller import Caller
from langgraph_runtime_sql.request_context import request_note
from langgraph_runtime_sql.search import metadata_index, thread_query
from langgraph_runtime_sql.tenancy import scope, tenants

_IN_FLIGHT = Prepared(
    select(runs.c.seq)
    .where(
        runs.c.thread_id == bindparam("thread_id"),
        or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL),
    )
    .limit(1)
)
_DISABLE_CRONS = Prepared(
    crons.update()
    .where(crons.c.thread_id == bindparam("thread"), crons.c.enabled.is_(True))
    .values(enabled=False)
)
_THREAD = LockingSelect(select(threads).where(threads.c.thread_id == bindparam("thread_id")))
# In the FROM clause, because the function returns `void`, which has no Python type.
_LOCK_NAME = Prepared(
    select(literal(1).label("one")).select_from(
        func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger))
    )
)

__all__ = [
    "NAMES",
    "Caller",
    "Hooks",
    "Reject",
    "Transaction",
    "active",
    "call",
    "check",
    "configured",
    "label",
    "request_note",
]

label = scope.label


class Reject(HTTPException):
    """A hook's refusal of a request.

    Args:
        status: The HTTP status of the answer, from 400 to 499.
        body: The JSON body of the answer.
        is_final: Whether the same request will always be refused. A cron whose run is refused so
            is disabled.
    """

    def __init__(self, status: int, body: Mapping[str, Any], *, is_final: bool = False) -> None:
        if not 400 <= status <= 499:
            raise ValueError(f"The status of a Reject must be from 400 to 499, not {status}")
        self.body = dict(body)
        self.is_final = is_final
        # MCP, A2A and event streams format errors themselves, and show only this text.
        detail = self.body.get("detail") or self.body.get("error") or "Refused"
        super().__init__(status, str(detail))


class Transaction:
    """The operations of a hook: read threads, change their metadata, lock, and await the commit.

    Attributes:
        caller: The caller of the request.
    """

    def __init__(self, conn: Connection, caller: Caller) -> None:
        self._conn = conn
        self.caller = caller

    def find_threads(
        self, metadata: Mapping[str, Any], *, limit: int = 100, oldest_first: bool = False
    ) -> list[Row]:
        """Return threads whose metadata contains `metadata`, sorted by `updated_at`."""
        query = thread_query.plan(self._conn, metadata, None)
        query = query.sorted_by("updated_at", ascending=oldest_first)
        return self._conn.fetchall(query.page(), {**query.parameters, "limit": limit, "start": 0})

    def get_thread(self, thread_id: UUID) -> Row | None:
        """Return a thread, or None, and lock it."""
        return self._conn.fetchone(_THREAD, {"thread_id": thread_id})

    def patch_thread(self, thread_id: UUID, metadata: Mapping[str, Any]) -> None:
        """Set top-level keys of a thread's metadata, without other hooks or changes of its dates.

        Raises:
            LookupError: the thread does not exist.
        """
        thread = self.get_thread(thread_id)
        if thread is None:
            raise LookupError(f"Thread {thread_id} not found")
        merged = {**thread["metadata"], **json_codec.plain(dict(metadata))}
        columns: Row = {"metadata": merged, "tenant": tenants.of(merged)}
        if columns["tenant"] != thread["tenant"]:
            columns = moved_to_tenant(self._conn, thread, columns)
        self._conn.execute(
            threads.update().where(threads.c.thread_id == thread_id).values(**columns)
        )
        changed_metadata(self._conn, thread, {**thread, **columns})
        metadata_index.update(
            self._conn, thread_id, thread["metadata"], merged, thread["updated_at"]
        )

    def in_flight(self, thread_id: UUID) -> bool:
        """Return whether a thread has runs that have not ended, and lock it."""
        if self._conn.locks:
            self.get_thread(thread_id)
        return self._conn.fetchone(_IN_FLIGHT, {"thread_id": thread_id}) is not None

    def disable_crons(self, thread_id: UUID) -> int:
        """Disable the crons of a thread, and return their number."""
        return self._conn.execute(_DISABLE_CRONS, {"thread": thread_id})

    def audit(self, action: str, thread_id: UUID | None = None, **detail: Any) -> None:
        """Write a policy decision to the audit log, if the transaction commits.

        The server itself writes a `Reject`, which rolls the transaction back, with its body's
        `error`.

        Args:
            action: The name of the decision.
            thread_id: The thread that it concerns.
            detail: Further facts, as JSON values.
        """
        kind = None if thread_id is None else "thread"
        self._conn.notes.append(Note(kind, thread_id, action, POLICY, detail=detail))

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn` after the commit. It must neither fail nor wait."""
        self._conn.after_commit(fn)

    def lock(self, name: str) -> None:
        """Lock `name` until the transaction ends, in all processes.

        SQLite has a single writer, so it needs no lock.
        """
        if self._conn.locks:
            digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
            key = int.from_bytes(digest, "big", signed=True)
            self._conn.scalar(_LOCK_NAME, {"key": key})


class Hooks(Protocol):
    """All hooks; a host implements those that it needs.

    The dicts are the rows to be written. A hook may change in place: the `metadata` of a new
    thread or run, the `kwargs` of a new run, the `metadata` to be merged into a thread, and `without`
    of a search.

    The `values` of a thread lack lists from 16 KB on, except in `after_run_end`.
    """

    def before_thread_create(self, tx: Transaction, thread: Row) -> None:
        """Called before any route creates a thread."""

    def before_thread_update(self, tx: Transaction, thread: Row, metadata: dict[str, Any]) -> None:
        """Called before `metadata` is merged into that of an existing thread."""

    def before_run_create(self, tx: Transaction, thread: Row, run: Row) -> None:
        """Called before a run is queued on `thread`."""

    def before_state_update(self, tx: Transaction, thread: Row) -> None:
        """Called before a client writes a checkpoint of `thread`."""

    def before_thread_prune(self, tx: Transaction, thread: Row) -> None:
        """Called before a client deletes the history of `thread` but its newest checkpoint."""

    def before_sweep(self, tx: Transaction) -> None:
        """Called regularly by each process, without a caller, to tidy up threads of all tenants."""

    def after_run_end(self, tx: Transaction, thread: Row | None, run: Row, status: str) -> None:
        """Called when a run ends with `status`; `thread` is None if it is deleted, too."""

    def before_thread_search(self, tx: Transaction, search: dict[str, Any]) -> None:
        """Called before a search or count; `search["without"]` omits threads with its entries."""


NAMES = tuple(name for name in vars(Hooks) if name.startswith(("before_", "after_")))


def check(hooks: Any) -> None:
    """Check that an object, unless it is None, can serve as hooks.

    Raises:
        TypeError: it has an unknown hook, or a hook that is a coroutine function.
    """
    for name in dir(hooks) if hooks is not None else ():
        if not name.startswith(("before_", "after_")):
            continue
        if name not in NAMES:
            raise TypeError(f"Unknown hook {name!r}. Known hooks: {', '.join(NAMES)}")
        if inspect.iscoroutinefunction(getattr(hooks, name)):
            raise TypeError(f"Hook {name!r} must be a plain function, not a coroutine function")


def call(name: str, conn: Connection, caller: Caller, *arguments: Any) -> None:
    """Call the host's hook `name`, if it exists."""
    hook = getattr(runtime.current().hooks, name, None)
    if hook is not None:
        hook(Transaction(conn, caller), *arguments)


def configured() -> Any:
    """Return the host's object with hooks, or None, even before the start."""
    return process.configuration().hooks


def active(name: str) -> bool:
    """Return whether the host has hook `name`."""
    return getattr(runtime.current().hooks, name, None) is not None
