"""Changes: tell the clients that list threads which of these have changed.

The commit of a change notes the thread in every process. One that has listening clients reads the rows of
a quarter of a second together, once for all clients, and shows each client those that it may see.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, zip_longest
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import structlog
from sqlalchemy import or_, select

from langgraph_runtime_sql import json_codec, pacing, process
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import PENDING_LITERAL, RUNNING_LITERAL, runs, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.tenancy.scope import Scope

logger = structlog.stdlib.get_logger(__name__)

FIELDS = ("thread_id", "status", "updated_at", "state_updated_at", "metadata", "interrupts")
# A thread changes some times in each step of a run. A client sees its newest row this often.
EVERY_SECONDS = 0.25
PAUSE_SECONDS = 0.5
# Rows of one read, and changed threads of a tenant that wait for it.
PAGE, MOST_PENDING = 100, 1_000
# Runs of a thread that an event names, and those of one read.
MOST_RUNS, MOST_RUNS_READ = 50, 5_000
# What waits for a client that reads too slowly.
MOST_WAITING, WAITING_BYTES = 1_000, 4 * 2**20
# Earlier metadata that a message between processes carries, and how many of a thread are kept.
MOST_CHARACTERS, MOST_EARLIER = 2_000, 4
# What a row and a client take of the event loop, in milliseconds.
ROW_MS = 0.02

Metadata = Mapping[str, Any]
Item = tuple[bytes, bytes]
"""The name and the data of an event."""
READY: Item = b"ready", b"{}"
OVERFLOW: Item = b"overflow", b"{}"

_COLUMNS = [*(threads.c[name] for name in FIELDS), threads.c.tenant]


class View(Protocol):
    """The threads that a client may list."""

    @property
    def scope(self) -> Scope:
        """The rows of its tenant."""

    @property
    def is_limited(self) -> bool:
        """Whether anything else hides threads from it."""

    def shows(self, metadata: Metadata, status: str | None = None) -> bool:
        """Return whether it shows a thread with this metadata, and this status if it is known."""


class _Change(NamedTuple):
    """A changed thread.

    Attributes:
        tenant: The tenant whose clients are told.
        earlier: What its metadata was before; None is unknown.
    """

    tenant: str | None
    thread_id: UUID
    earlier: list[Metadata | None]


class Listener:
    """What waits for one client. It belongs to the event loop of the bus.

    Args:
        view: The threads that it may see.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        # The newest event of each thread.
        self._waiting: dict[UUID, Item] = {}
        self._bytes, self._is_lost = 0, False
        self._due = asyncio.Event()

    def hears(self, tenant: str | None) -> bool:
        """Return whether it is told of the threads of a tenant."""
        here = self.view.scope
        return here == scope.EVERYTHING or (here.tenant is not None and here.tenant == tenant)

    def put(self, thread_id: UUID, item: Item) -> None:
        """Add the newest event of a thread, in place of one that was not read."""
        earlier = self._waiting.get(thread_id)
        self._bytes += len(item[1]) - (0 if earlier is None else len(earlier[1]))
        self._waiting[thread_id] = item
        if len(self._waiting) > MOST_WAITING or self._bytes > WAITING_BYTES:
            self.lose()
        self._due.set()

    def lose(self) -> None:
        """Let the client read its list again, in place of what waits."""
        self._waiting, self._bytes, self._is_lost = {}, 0, True
        self._due.set()

    def wake(self) -> None:
        """Let `take` return."""
        self._due.set()

    async def take(self) -> list[Item]:
        """Wait for events, and return them. Empty after `wake`."""
        await self._due.wait()
        self._due.clear()
        found = [OVERFLOW] if self._is_lost else []
        found += self._waiting.values()
        self._waiting, self._bytes, self._is_lost = {}, 0, False
        return found


class Changes:
    """The changes that this process tells and hears.

    Args:
        database: Where the threads are.
        wires: The wires to other processes.
    """

    def __init__(self, database: Database, wires: Wires) -> None:
        self._database, self._wires = database, wires
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()
        # By tenant and thread: what its metadata was before.
        self._pending: dict[str | None, dict[UUID, list[Metadata | None]]] = {}
        # Tenants of whose threads more have changed than are remembered.
        self._flooded: set[str | None] = set()
        self._due = asyncio.Event()

    @contextmanager
    def listen(self, view: View) -> Iterator[Listener]:
        """Hear of changes in the block. Call it on the event loop of the bus."""
        listener = Listener(view)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def note(self, key: StreamKey, was: Metadata | None) -> None:
        """Tell all processes of a committed change, from any thread. Arguments: `changed`."""
        earlier = [] if was is None else [was]
        self._add(_Change(key.tenant, UUID(key.thread_id), [*earlier]))
        if self._wires.shared:
            text = None if was is None else json_codec.dumps(was)
            if text is not None and len(text) > MOST_CHARACTERS:
                text = ""
            self._wires.tell(wire.changed(key.thread_id, key.tenant, text))

    def receive(self, thread_id: str, tenant: Any, was: str | None) -> None:
        """Hear of a change that another process has committed."""
        try:
            earlier = [] if was is None else [json_codec.loads(was) if was else None]
            change = _Change(tenant, UUID(thread_id), earlier)
        except ValueError:
            # Other users of the database can send notifications, too.
            return
        if isinstance(tenant, str | None) and all(
            isinstance(each, dict | None) for each in earlier
        ):
            self._add(change)

    def _add(self, change: _Change) -> None:
        if not self._listeners:
            return
        with self._lock:
            pending = self._pending.setdefault(change.tenant, {})
            earlier = pending.setdefault(change.thread_id, [])
            earlier += [each for each in change.earlier if each not in earlier]
            if len(earlier) > MOST_EARLIER:
                earlier[:] = [None]
            if len(pending) > MOST_PENDING:
                del self._pending[change.tenant]
                self._flooded.add(change.tenant)
        self._wires.soon(self._due.set)

    def look_again(self) -> None:
        """Let all clients read their lists again: messages may be lost."""
        for listener in list(self._listeners):
            listener.lose()

    # --- reading

    async def run(self) -> None:
        """Give changes to the clients until cancelled."""
        with outage.waited_for(), scope.within(scope.EVERYTHING):
            while True:
                await self._due.wait()
                self._due.clear()
                with self._lock:
                    pending, self._pending = self._pending, {}
                    flooded, self._flooded = self._flooded, set()
                for listener in [each for each in self._listeners if any(map(each.hears, flooded))]:
                    listener.lose()
                try:
                    for page in _pages(pending):
                        await self._show(page)
                except RuntimeSqlError as error:
                    logger.warning("Changed threads could not be read: %s", error)
                    self.look_again()
                    await asyncio.sleep(PAUSE_SECONDS)
                await asyncio.sleep(EVERY_SECONDS)

    async def _show(self, page: list[_Change]) -> None:
        """Show changes of one page to the clients that may see them."""
        listeners = [
            each for each in self._listeners if any(each.hears(one.tenant) for one in page)
        ]
        if not listeners:
            return
        ids = {each.thread_id for each in page}

        def fn(conn: Connection) -> tuple[dict[UUID, Row], dict[UUID, list[UUID]]]:
            found = conn.fetchall(select(*_COLUMNS).where(threads.c.thread_id.in_(ids)))
            return {row["thread_id"]: row for row in found}, _active(conn, ids)

        rows, active = await self._database.read(fn)
        items = {each: _item(row, active.get(each, [])) for each, row in rows.items()}
        for listener in listeners:
            await pacing.turn(listener.view.scope.turn, "changes", ROW_MS * len(page))
            for change in page:
                if listener.hears(change.tenant):
                    _tell(listener, change, rows.get(change.thread_id), items)


def changed(conn: Connection, row: Row, was: Metadata | None = None) -> None:
    """Tell the clients that list threads of a change, with the commit of `conn`.

    Args:
        row: A row of the thread, or of a run of it: `thread_id` and `tenant`.
        was: The thread's metadata before, if that has changed or the thread is deleted. Clients that
            could see the thread then learn that they no longer can.
    """
    key, bus = StreamKey.of_thread(row), process.current().bus
    conn.after_commit(partial(bus.changes.note, key, was))


def changed_metadata(conn: Connection, row: Row, updated: Row) -> None:
    """Tell the clients that list threads of a change that may be one of the metadata, as `changed` does.

    Args:
        row: The thread before.
        updated: The thread now, perhaps of another tenant.
    """
    changed(conn, row, row["metadata"] if updated["metadata"] != row["metadata"] else None)
    if updated["tenant"] != row["tenant"]:
        changed(conn, updated)


def _pages(
    pending: Mapping[str | None, Mapping[UUID, list[Metadata | None]]],
) -> Iterator[list[_Change]]:
    """Yield changes page by page. Tenants take turns, so that a burst of one delays no other."""
    by_tenant = (
        [_Change(tenant, *each) for each in found.items()] for tenant, found in pending.items()
    )
    in_turn = [each for each in chain.from_iterable(zip_longest(*by_tenant)) if each is not None]
    for start in range(0, len(in_turn), PAGE):
        yield in_turn[start : start + PAGE]


def _active(conn: Connection, ids: set[UUID]) -> dict[UUID, list[UUID]]:
    """Return the oldest runs of each thread that are not over."""
    is_active = or_(runs.c.status == PENDING_LITERAL, runs.c.status == RUNNING_LITERAL)
    found: dict[UUID, list[UUID]] = {}
    for row in conn.fetchall(
        select(runs.c.thread_id, runs.c.run_id)
        .where(runs.c.thread_id.in_(ids), is_active)
        .order_by(runs.c.created_at)
        .limit(MOST_RUNS_READ)
    ):
        of_thread = found.setdefault(row["thread_id"], [])
        if len(of_thread) < MOST_RUNS:
            of_thread.append(row["run_id"])
    return found


def _item(row: Row, active: list[UUID]) -> Item:
    """Return the event of a thread. All clients share it."""
    return b"thread", json_codec.encoded({name: row[name] for name in FIELDS} | {"active": active})


def _tell(listener: Listener, change: _Change, row: Row | None, items: Mapping[UUID, Item]) -> None:
    """Tell a client of a change, if it may see the thread now or could see it before."""
    view = listener.view
    is_here = row is not None and StreamKey.of_thread(row).tenant == change.tenant
    if row is not None and is_here and view.shows(row["metadata"], row["status"]):
        listener.put(change.thread_id, items[change.thread_id])
        return
    known = [each for each in change.earlier if each is not None]
    if any(map(view.shows, known)) or (change.earlier and not view.is_limited):
        listener.put(
            change.thread_id, (b"deleted", b'{"thread_id":"%s"}' % str(change.thread_id).encode())
        )
    elif len(known) < len(change.earlier):
        listener.lose()
