"""Event streaming: protocol 2 of `langgraph_api` on the event log.

`langgraph_api` sends all events of a thread again at every open, and its sequence numbers begin
again with each connection. `install` replaces these parts of it:

| part | here |
|---|---|
| `ThreadRunManager.start_thread_stream` | begins at a cursor, or at what is not over |
| `ThreadRunManager.wait_for_thread_stream_end` | a WebSocket's stream begins with its first subscription, which may have a cursor |
| `ThreadRunManager.handle_command`, `_meta` | answers say what the stream contained before the command |
| `ThreadRunManager._create_or_resume_run` | a hook's refusal keeps its error and its hint |
| `EventStreamingSession` | a sequence number is a place in the log; a new attempt takes back what its predecessor streamed |
| `ThreadRunManager._collect_persisted_interrupt_ids` | a thread that does not exist yet is no failure |
| the routes of the stream | read cursors, and refuse invalid ones |

The normalization of events stays that of `langgraph_api`.
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

from langgraph_runtime_sql import pacing, runtime
from langgraph_runtime_sql.errors import DatabaseDamaged, DatabaseOutage
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.log import BEGINNING
from langgraph_runtime_sql.events.stream_key import THREAD
from langgraph_runtime_sql.hooks import Reject
from langgraph_runtime_sql.ops.threads import cursor
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.cursor import Begin
from langgraph_runtime_sql.ops.threads.stream import Stream
from langgraph_runtime_sql.tenancy import scope
from threadhold.http import stream_ends
from threadhold.stream_places import (
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

# The expected time on the event loop until a stream sends its first event, in milliseconds.
BEGIN_MS = 8.0

_view: ContextVar[View | None] = ContextVar("_view", default=None)
_cursor: ContextVar[Cursor | None] = ContextVar("_cursor", default=None)
_refusal: ContextVar[Reject | None] = ContextVar("_refusal", default=None)


def install() -> None:
    """Replace the parts of `langgraph_api`."""
    from langgraph_api.api import event_streaming as api
    from langgraph_api.event_streaming import service

    manager: Any = service.ThreadRunManager
    service.EventStreamingSession = _session_class(service.EventStreamingSession)
    manager.start_thread_stream = _start
    manager.wait_for_thread_stream_end = _wait_for_end
    manager._meta = _meta
    handle = manager.handle_command

    async def handle_command(self: Any, command: dict[str, Any]) -> dict[str, Any]:
        return await _handle(self, command, handle)

    manager.handle_command = handle_command
    create = manager._create_or_resume_run

    async def create_or_resume_run(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await create(self, *args, **options)
        except Reject as refused:
            _refusal.set(refused)
            raise

    manager._create_or_resume_run = create_or_resume_run
    collect = manager._collect_persisted_interrupt_ids

    async def collect_interrupts(self: Any) -> Any:
        # A thread that the caller does not have has none; `langgraph_api` would log a failure.
        return await collect(self) if await _is_visible(self._thread_id) else None

    manager._collect_persisted_interrupt_ids = collect_interrupts
    _install_routes(api)


async def _is_visible(thread_id: str) -> bool:
    """Return whether the thread exists and the caller may read it."""
    try:
        found = UUID(thread_id)
        await Stream.check_thread_stream_auth(found)
    except (ValueError, HTTPException):
        return False
    row = await runtime.current().database.read(lambda conn: thread_rows.find(conn, found))
    return row is not None


def _session_class(base: Any) -> Any:
    """Return the session of `langgraph_api` with places in the log."""

    class LogSession(base):
        """Makes the events of a run, with their places in the log."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.attempt = 0
            self.view = _view.get()
            self._buffer: list[dict[str, Any]] = []

        def _create_event(self, *args: Any, **options: Any) -> Any:
            if self.view is not None:
                self._next_seq = self.view.next_seq() - 1
            return super()._create_event(*args, **options)

        async def _push_event(self, event: dict[str, Any]) -> None:
            if self.view is None:
                await super()._push_event(event)
                return
            self.view.note(event)
            if self.view.is_hidden(event):
                return
            if self.view.is_old(event):
                # A later subscription of the connection may ask for it.
                self._buffer.append(event)
                del self._buffer[: -self._max_buffer_size]
                return
            await super()._push_event(event)

        async def begin_attempt(self, attempt: int, *, is_start: bool) -> None:
            """Tell the client that what an attempt has streamed in its last step comes again.

            Args:
                attempt: The number of the attempt.
                is_start: Whether its first event comes now. An attempt that a stopping server has
                    returned to the queue starts again under the same number.
            """
            if attempt < self.attempt or (attempt == self.attempt and not is_start):
                return
            view, is_first, self.attempt = self.view, self.attempt == 0, attempt
            if view is None or is_first:
                return
            for method, namespace, data, node in _taken_back(self, attempt):
                place = "-".join(map(str, view.order))
                made = f"synth:{self._run_id}:attempt:{attempt}:{place}:{view.index}"
                event = self._create_event(method, namespace, data, node=node, event_id=made)
                await self._push_event(event)

    return LogSession


def _taken_back(session: Any, attempt: int) -> list[tuple[str, list[str], Any, str | None]]:
    """Return what a client is sent before the events of a new attempt.

    The error closes a message. The client library shows a message of the stream until it has been
    in `values` and is there no more.
    """
    view: View = session.view
    unsaved, view.unsaved = dict(view.unsaved), {}
    graph = session._root_graph_name
    running = {"event": "running", "graph_name": graph, "attempt": attempt}
    found: list[tuple[str, list[str], Any, str | None]] = [("lifecycle", [], running, None)]
    text = "The attempt that streamed this message has ended. The next one streams it again."
    for namespace, node in unsaved.values():
        error = {"event": "error", "code": "attempt_superseded", "message": text}
        found.append(("messages", namespace, error, node))
    values = view.values
    messages = None if values is None else values.get("messages")
    if unsaved and values is not None and isinstance(messages, list):
        kept = {each.get("id") for each in messages if isinstance(each, dict)}
        empty = [{"type": "ai", "content": "", "id": i} for i in unsaved if i not in kept]
        if empty:
            found.append(("values", [], {**values, "messages": [*messages, *empty]}, None))
            found.append(("values", [], values, None))
    return found


def _start(self: Any) -> None:
    """Begin to send. A WebSocket has subscribed to nothing yet: it begins with that."""
    self._begins_at, self._begins_later = _cursor.get(), not self._pending_subscriptions
    if self._begins_later:
        self._thread_source_task = asyncio.create_task(_check(self))
    else:
        _begin(self)


def _begin(self: Any) -> None:
    self._begins_later = False
    self._thread_source_task = asyncio.create_task(_consume(self, self._begins_at))


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


async def _wait_for_end(self: Any) -> None:
    await self._thread_stream_done.wait()


def _meta(self: Any) -> dict[str, Any]:
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


async def _consume(self: Any, wanted: Cursor | None) -> None:
    """Send the events of a thread until it is deleted."""
    task = asyncio.current_task()
    try:
        await _send_all(self, wanted)
    except (DatabaseOutage, DatabaseDamaged) as error:
        body = {"type": "error", "id": None, "error": "unavailable", "message": error.public}
        # The stream forwards nothing without an id.
        body["event_id"] = f"unavailable:{self._thread_id}"
        await self._make_send()(orjson.dumps(body).decode())
    except Exception:
        logger.exception("protocol thread stream failed", thread_id=str(self._thread_id))
    finally:
        if self._thread_source_task is task:
            self._thread_stream_done.set()


async def _send_all(self: Any, wanted: Cursor | None) -> None:
    stream = Stream.events(UUID(self._thread_id), None if wanted is None else wanted.seen)
    view: View | None = None
    async for event in stream:
        if isinstance(event, Begin):
            view = View(wanted, event)
            _view.set(view)
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


def _install_routes(api: Any) -> None:
    """Let the routes of the stream read cursors."""
    from langgraph_api.route import api_request_response
    from starlette.responses import JSONResponse
    from starlette.routing import WebSocketRoute, websocket_session

    events, websocket = api._thread_events, api._thread_websocket

    async def thread_events(request: Any) -> Any:
        try:
            _cursor.set(await _read_cursor(request))
        except InvalidCursor as error:
            return JSONResponse({"detail": str(error)}, 400)
        await pacing.turn(scope.turn(), "streams", BEGIN_MS)
        return await events(request)

    async def thread_websocket(socket: Any) -> None:
        query = socket.query_params
        since = query.get("since")
        try:
            asked = query.get("since_event_id") or since or socket.headers.get("last-event-id")
            _cursor.set(parse_cursor(None, asked))
        except InvalidCursor as error:
            await socket.accept()
            refused = {"type": "error", "id": None, "error": "invalid_argument"}
            await socket.send_json({**refused, "message": str(error)})
            await socket.close(1008)
            return
        await pacing.turn(scope.turn(), "streams", BEGIN_MS)
        await stream_ends.hand_over_socket(socket, websocket)

    for route in api.event_streaming_routes:
        if isinstance(route, WebSocketRoute):
            route.app = websocket_session(thread_websocket)
        elif route.endpoint is events:
            route.app = api_request_response(thread_events)


async def _read_cursor(request: Any) -> Cursor | None:
    """Return the cursor of a request, and remove it from the body.

    Raises:
        InvalidCursor: no event has it.
    """
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    since, event_id = body.pop("since", None), body.pop("since_event_id", None)
    if since is None and event_id is None:
        event_id = request.headers.get("last-event-id") or None
    request._body = orjson.dumps(body)
    return parse_cursor(since, event_id)
