"""Event streaming: protocol 2 of `langgraph_api` on the event log.

`langgraph_api` sends all events of a thread again at every open, and its sequence numbers begin
again with each connection. Here a stream begins at a cursor, or at what is not over, and a sequence
number is a place in the log. The normalization of events stays that of `langgraph_api`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import orjson
import structlog
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOverloaded
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.log import BEGINNING
from langgraph_runtime_sql.events.stream_key import THREAD
from langgraph_runtime_sql.hooks import Reject
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import cursor
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.cursor import Begin
from langgraph_runtime_sql.ops.threads.stream import CONTINUE, Stream
from langgraph_runtime_sql.stopping import hand_over
from threadhold.stock import event_session
from threadhold.stock.stream_places import (
    MAX_INDEX,
    Cursor,
    InvalidCursor,
    View,
    parse_cursor,
    sequence_number,
)

logger = structlog.stdlib.get_logger(__name__)

# An event of a run of protocol 2, whose checkpoints are in the log.
_NATIVE = b'{"type":"event"'
_SUBSCRIBES = ("subscription.subscribe", "subscription.reconnect")

cursor_of_request: ContextVar[Cursor | None] = ContextVar("cursor_of_request", default=None)

# How long a command waits for the question of a run that is executed, and how often it looks. A
# client has the question from the stream some milliseconds before the thread has it.
SETTLE_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_refusal: ContextVar[Reject | None] = ContextVar("_refusal", default=None)


def handle_command(stock: Any) -> Any:
    """Return `handle_command`, which reads cursors and says what the stream contained before."""

    async def handle_command(self: Any, command: dict[str, Any]) -> dict[str, Any]:
        return await _handle(self, command, stock)

    return handle_command


def create_or_resume_run(stock: Any) -> Any:
    """Return `_create_or_resume_run`, which remembers a hook's refusal."""

    async def create_or_resume_run(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await stock(self, *args, **options)
        except Reject as refused:
            _refusal.set(refused)
            raise

    return create_or_resume_run


def collect_interrupts(stock: Any) -> Any:
    """Return `_collect_persisted_interrupt_ids`, for which a missing thread is no failure."""

    async def collect_interrupts(self: Any) -> Any:
        # A thread that the caller does not have has none; `langgraph_api` would log a failure.
        return await stock(self) if await _is_visible(self._thread_id) else None

    return collect_interrupts


async def _is_visible(thread_id: str) -> bool:
    """Return whether the thread exists and the caller may read it."""
    try:
        found = UUID(thread_id)
        await Stream.check_thread_stream_auth(found)
    except (ValueError, HTTPException):
        return False
    row = await runtime.current().database.read(lambda conn: thread_rows.find(conn, found))
    return row is not None


async def settled_interrupts(self: Any) -> set[str] | None:
    """Return the ids of the thread's questions. Wait for them while a run of it is executed.

    `langgraph_api` waits while the thread is busy: all the time before a run that starts later.
    """
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        # First, because a run that ends in between has stored its questions.
        may_ask = await _is_executed(self._thread_id)
        found: set[str] | None = await self._collect_persisted_interrupt_ids()
        if found or found is None or not may_ask:
            return found
        if asyncio.get_running_loop().time() >= deadline:
            return found
        await asyncio.sleep(_LOOK_SECONDS)


async def _is_executed(thread_id: str) -> bool:
    """Return whether a process executes a run of the thread."""
    try:
        found = UUID(thread_id)
    except ValueError:
        return False
    return await runtime.current().database.read(lambda conn: run_rows.any_running(conn, found))


def start(self: Any, *, auth_filters: Any = None) -> None:
    """Begin to send. A WebSocket has subscribed to nothing yet: it begins with that.

    Args:
        auth_filters: What `Stream.check_thread_stream_auth` has returned for the caller. Before 0.17 the
            routes of `langgraph_api` do not ask it.
    """
    self._begins_at, self._begins_later = cursor_of_request.get(), not self._pending_subscriptions
    if not self._begins_later:
        _begin(self, auth_filters)
    elif auth_filters is None:
        self._thread_source_task = asyncio.create_task(_check(self))


def _begin(self: Any, visible: Any = None) -> None:
    self._begins_later = False
    self._thread_source_task = asyncio.create_task(_consume(self, self._begins_at, visible))


async def _begin_again(self: Any, wanted: Cursor) -> None:
    """Forget what the connection has been sent. Keep its subscriptions."""
    task, self._thread_source_task = self._thread_source_task, None
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if self._session is not None:
        self._pending_subscriptions.update(self._session.subscriptions)
    await self.close()
    self._begins_at, self._begins_later, self._current_run_id = wanted, True, None


async def wait_for_end(self: Any) -> None:
    """Wait until no more events come. The response ends with `resume` if an outage is the cause."""
    await self._thread_stream_done.wait()
    if (reason := getattr(self, "_handed_over", None)) is not None:
        await hand_over(reason)


def meta(self: Any) -> dict[str, Any]:
    """Return the highest sequence number that a replay from before the command can have."""
    return {"applied_through_seq": max(self._seq, getattr(self, "_applied_seq", 0))}


async def _handle(
    self: Any,
    command: dict[str, Any],
    handle: Callable[[Any, dict[str, Any]], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """Handle a command, after reading its cursor and the position of the log before it."""
    method = command.get("method")
    params = command.get("params")
    params = params if isinstance(params, dict) else {}
    if method in ("run.start", "input.respond"):
        with suppress(ValueError):
            order = await cursor.head(UUID(self._thread_id))
            self._applied_seq = sequence_number(order, MAX_INDEX) if order > BEGINNING else 0
        _refusal.set(None)
        return _refused(await handle(self, command), _refusal.get())
    elif method in _SUBSCRIBES and hasattr(self, "_begins_later"):
        try:
            wanted = parse_cursor(params.get("since"), params.get("since_event_id"))
        except InvalidCursor as error:
            found: dict[str, Any] = self._error(command.get("id"), "invalid_argument", str(error))
            return found
        return await _subscribe(self, command, wanted, handle)
    return await handle(self, command)


def _refused(answer: dict[str, Any], refusal: Reject | None) -> dict[str, Any]:
    """Return the answer to a command; a hook's refusal with its own error and hint."""
    if refusal is None or answer.get("type") != "error":
        return answer
    # The envelope's own fields stay, so that clients find the command.
    more = {key: value for key, value in refusal.body.items() if key not in answer}
    error = refusal.body.get("error")
    return {**answer, **more, "error": error if isinstance(error, str) else "rejected"}


async def _subscribe(
    self: Any,
    command: dict[str, Any],
    wanted: Cursor | None,
    handle: Callable[[Any, dict[str, Any]], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """Answer a subscription of a WebSocket, and begin its stream where the cursor says."""
    if wanted is not None:
        await _begin_again(self, wanted)
    if self._session is None and command["method"] == "subscription.reconnect":
        command = {**command, "method": "subscription.subscribe"}
    answer = await handle(self, command)
    if self._begins_later and answer.get("type") == "success":
        _begin(self)
    return answer


async def _check(self: Any) -> None:
    """End the connection if the caller may not read the thread."""
    try:
        await Stream.check_thread_stream_auth(self._thread_id)
    except Exception:
        logger.exception("protocol thread stream failed", thread_id=str(self._thread_id))
        self._thread_stream_done.set()


async def _consume(self: Any, wanted: Cursor | None, visible: Any) -> None:
    """Send the events of a thread until it is deleted."""
    task = asyncio.current_task()
    try:
        await _send_all(self, wanted, visible)
    except DatabaseOverloaded as error:
        # The task of the response hands it over, not this one.
        self._handed_over = f"{error.public} {CONTINUE}"
    except DatabaseDamaged as error:
        await _send_error(self, "unavailable", error.public)
    except Exception:
        logger.exception("protocol thread stream failed", thread_id=str(self._thread_id))
        # Without the text of the error, which may be that of the database. The client may be gone.
        with suppress(Exception):
            await _send_error(self, "unknown_error", "Thread event stream failed.")
    finally:
        if self._thread_source_task is task:
            self._thread_stream_done.set()


async def _send_error(self: Any, error: str, message: str) -> None:
    """Tell the client why its stream ends."""
    body = {"type": "error", "id": None, "error": error, "message": message}
    # The stream forwards nothing without an id.
    body["event_id"] = f"{error}:{self._thread_id}"
    await self._make_send()(orjson.dumps(body).decode())


async def _send_all(self: Any, wanted: Cursor | None, visible: Any) -> None:
    seen = None if wanted is None else wanted.seen
    stream = outage.followed(Stream.events(UUID(self._thread_id), seen, visible))
    view: View | None = None
    async for event in stream:
        if isinstance(event, Begin):
            view = View(wanted, event)
            event_session.view.set(view)
        elif view is None or event.run_id == THREAD:
            continue
        elif event.is_loss:
            # A client without a cursor has not asked for events that were deleted.
            if wanted is not None or view.order > view.begin.head:
                await _send_gap(self, view, wanted)
        else:
            await _send(self, view, event)
            if view.has_lost_its_place:
                view.give_up()
                await _send_gap(self, view, wanted)


async def _send(self: Any, view: View, event: Event) -> None:
    """Send an event of the log.

    Clients expect the checkpoint of a `values` event in front of it. In the log it comes next.
    """
    held, view.held = view.held, None
    if held is not None and (held.run_id != event.run_id or event.name != "checkpoints"):
        await _ingest(self, view, held)
        held = None
    if event.name == "values" and event.data.startswith(_NATIVE):
        view.held = event
        return
    await _ingest(self, view, event)
    if held is not None:
        # Its place is behind that of its checkpoint.
        await _ingest(self, view, held._replace(order=event.order))


async def _ingest(self: Any, view: View, event: Event) -> None:
    view.move(event)
    session = await self._ensure_run_session_for_id(event.run_id)
    if session is None:
        return
    if event.attempt:
        await session.begin_attempt(event.attempt, is_start=event.name == "metadata")
    if event.is_end:
        await _send_open_interrupts(session, view)
        await session.complete()
    elif event.name != "metadata":
        await session.ingest_source_event((event.name.encode(), event.data, event.id))


async def _send_open_interrupts(session: Any, view: View) -> None:
    """Send the open interrupts of a thread whose log does not have them any more."""
    if view.run_id != view.begin.only_interrupts_of:
        return
    missing = [
        {"interrupt_id": name, "payload": each.get("value")}
        for name, each in view.begin.interrupts.items()
        if session.lookup_pending_interrupt(name) is None
    ]
    await session._emit_input_requested_events([], missing)


async def _send_gap(self: Any, view: View, wanted: Cursor | None) -> None:
    """Tell the client that events were deleted. The stream goes on, so it need not ask again."""
    order = view.order if view.order > START else view.begin.seen
    seq = sequence_number(order, 0)
    message = {
        "type": "error",
        "id": None,
        "error": "resume_gap",
        "message": "Some of the events were deleted. Read the state of the thread. "
        "The stream goes on with the events that are left.",
        "since": None if wanted is None else wanted.asked,
        "min_available_seq": seq,
        # The stream forwards nothing without an id.
        "event_id": f"gap:{seq}",
    }
    await self._make_send()(orjson.dumps(message).decode())
