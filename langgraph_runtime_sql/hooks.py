"""Hooks: how a host takes part in the runtime's transactions.

A host gives one object with any of the methods of `Hooks`. Each is called
inside the transaction it is about, whichever route asked for it, and before
it commits: raising `Reject` undoes the whole write and answers the request.
Hooks are plain functions and must not wait for anything.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import BigInteger, bindparam, func, literal, or_, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, process, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    PENDING_LITERAL,
    RUNNING_LITERAL,
    runs,
    threads,
)
from langgraph_runtime_sql.database.statements import Prepared, Row
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
_thread = select(threads).where(threads.c.thread_id == bindparam("thread_id"))
_THREAD = Prepared(_thread)
_LOCK_THREAD = Prepared(_thread.with_for_update(key_share=True))
# Selected from, because what it returns is nothing that has a type.
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
    """A hook's refusal. The request is answered with `status_code` and `body` as JSON.

    Args:
        status: An HTTP status from 400 to 499.
        body: What the client gets.
    """

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        if not 400 <= status <= 499:
            raise ValueError(f"A refusal's status is from 400 to 499, not {status}")
        self.body = dict(body)
        # Routes that format errors themselves (MCP, A2A, event streams) show this text.
        detail = self.body.get("detail") or self.body.get("error") or "Refused"
        super().__init__(status, str(detail))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asked, as authentication knows them.

    Attributes:
        identity: The user's identity, or None without authentication.
        user: The authenticated user object, or None.
        note: What the host's middleware passed with `request_note`.
    """

    identity: str | None = None
    user: Any = None
    note: Mapping[str, Any] = field(default_factory=dict)


class Transaction:
    """What a hook may do: look at threads, change their metadata, take a lock, note the commit.

    Attributes:
        caller: Who asked for the write.
    """

    def __init__(self, conn: Connection, caller: Caller) -> None:
        self._conn = conn
        self.caller = caller

    def find_threads(
        self, metadata: Mapping[str, Any], *, limit: int = 100, oldest_first: bool = False
    ) -> list[Row]:
        """Threads whose metadata contains `metadata`, last updated first unless `oldest_first`."""
        query = thread_query.plan(self._conn, metadata, None)
        query = query.sorted_by("updated_at", ascending=oldest_first)
        return self._conn.fetchall(query.page(), {**query.parameters, "limit": limit, "start": 0})

    def get_thread(self, thread_id: UUID) -> Row | None:
        """A thread by id, or None."""
        statement = _LOCK_THREAD if self._conn.locks else _THREAD
        return self._conn.fetchone(statement, {"thread_id": thread_id})

    def patch_thread(self, thread_id: UUID, metadata: Mapping[str, Any]) -> None:
        """Set top-level keys of a thread's metadata.

        That is no use of the thread: its dates stay, and no other hook is called.
        """
        thread = self.get_thread(thread_id)
        if thread is None:
            raise LookupError(f"There is no thread {thread_id}")
        merged = {**thread["metadata"], **json_codec.plain(dict(metadata))}
        self._conn.execute(
            threads.update()
            .where(threads.c.thread_id == thread_id)
            .values(metadata=merged, tenant=tenants.of(merged))
        )
        metadata_index.update(
            self._conn, thread_id, thread["metadata"], merged, thread["updated_at"]
        )

    def in_flight(self, thread_id: UUID) -> bool:
        """Whether a thread has runs that have not ended; none begins or ends until the commit."""
        if self._conn.locks:
            self._conn.fetchone(_LOCK_THREAD, {"thread_id": thread_id})
        return self._conn.fetchone(_IN_FLIGHT, {"thread_id": thread_id}) is not None

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn`, which must neither fail nor wait, once this write is committed."""
        self._conn.after_commit(fn)

    def lock(self, name: str) -> None:
        """Hold `name` until the transaction ends, against every other process.

        SQLite has one writer, so a transaction there already holds everything.
        """
        if self._conn.locks:
            digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
            key = int.from_bytes(digest, "big", signed=True)
            self._conn.scalar(_LOCK_NAME, {"key": key})


class Hooks(Protocol):
    """Every hook there is; implement those you need.

    The dicts are the rows as they will be written. `metadata` of a new thread
    and of a new run, what is merged into a thread's, and `without` of a search
    may be changed in place; anything else is for reading.
    """

    def before_thread_create(self, tx: Transaction, thread: Row) -> None:
        """A thread is about to be created, by any route."""

    def before_thread_update(self, tx: Transaction, thread: Row, metadata: dict[str, Any]) -> None:
        """`metadata` is about to be merged into an existing thread's."""

    def before_run_create(self, tx: Transaction, thread: Row, run: Row) -> None:
        """A run is about to be queued on `thread`."""

    def before_state_update(self, tx: Transaction, thread: Row) -> None:
        """A client is about to write a checkpoint of `thread`."""

    def after_run_end(self, tx: Transaction, thread: Row | None, run: Row, status: str) -> None:
        """A run ends with `status`; `thread` is None if it goes too."""

    def before_thread_search(self, tx: Transaction, search: dict[str, Any]) -> None:
        """Threads are searched or counted; those with an entry of `search["without"]` stay out."""


NAMES = tuple(name for name in vars(Hooks) if name.startswith(("before_", "after_")))


def check(hooks: Any) -> None:
    """Refuse an object that cannot serve as hooks; None serves as none.

    Raises:
        TypeError: it has a hook-like method that does not exist here, or a
            hook that cannot run inside a transaction.
    """
    for name in dir(hooks) if hooks is not None else ():
        if not name.startswith(("before_", "after_")):
            continue
        if name not in NAMES:
            raise TypeError(f"Unknown hook {name!r}; there are: {', '.join(NAMES)}")
        if inspect.iscoroutinefunction(getattr(hooks, name)):
            raise TypeError(f"Hook {name!r} is a coroutine function; hooks run in a transaction")


def call(name: str, conn: Connection, caller: Caller, *arguments: Any) -> None:
    """Call hook `name` if the host has it."""
    hook = getattr(runtime.current().hooks, name, None)
    if hook is not None:
        hook(Transaction(conn, caller), *arguments)


def configured() -> Any:
    """The host's object with hooks, or None, also before the start."""
    return process.configuration().hooks


def active(name: str) -> bool:
    """Whether the host has hook `name`."""
    return getattr(runtime.current().hooks, name, None) is not None
