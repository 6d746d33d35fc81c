"""Ends of streams: let open event streams survive a SIGTERM until their run ends.

sse-starlette ends all streams half a second after the signal. Here a stream of a run goes on until
its run ends, a stream of a thread until no run of the thread is in flight, and both at most for the
grace period. Then the last event, `resume`, says where and after which event to continue.

The client libraries reconnect after a connection that breaks, and take one that ends for the end
of the run. So the stream of a run, whose answer names a `Location`, is cut off after that event.

Streams end in the same way, without a stop, when the database cannot be used for too long.

A WebSocket of a thread ends like a stream of a thread: `hand_over_socket`. A host's own streams use
`wait_end` and `resume_event`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.errors import NotStarted
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.stopping import Stopping, StreamPosition, place
from langgraph_runtime_sql.telemetry import metrics
from langgraph_runtime_sql.tenancy.scope import EVERYTHING, within

# How often a stream of a thread looks whether a run of it is in flight, during a stop.
LOOK_SECONDS = 0.5
RESUME = "resume"
REASON = "The server stops. Continue with this id, at this path."
# The close code of a service that restarts.
SERVICE_RESTART = 1012
OUTLIVE = "threadhold.stop"
"""Extension of the ASGI scope of a WebSocket. `scope["extensions"][OUTLIVE]["outlive"]()` promises
that the application closes the WebSocket by itself when the process stops."""


async def wait_end(thread_id: UUID | None = None, position: StreamPosition | None = None) -> None:
    """Wait until this process, which stops, ends an open stream.

    Args:
        thread_id: The thread whose events the stream sends: it ends as soon as no run of the thread
            is in flight. None: it ends with the grace period.
        position: Where its reader is, which may end it earlier.
    """
    if position is None:
        await _wait_stop(thread_id)
        return
    causes = [asyncio.create_task(each) for each in (_wait_stop(thread_id), position.is_cut.wait())]
    try:
        await asyncio.wait(causes, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in causes:
            each.cancel()


async def _wait_stop(thread_id: UUID | None) -> None:
    try:
        stopping = runtime.current().stopping
    except NotStarted:
        stopping = None
    if stopping is None:
        # Until the client or the run ends it.
        await asyncio.Event().wait()
        return
    await stopping.wait_begun()
    if thread_id is None:
        await stopping.wait_over()
    else:
        await _wait_idle(stopping, thread_id)


async def _wait_idle(stopping: Stopping, thread_id: UUID) -> None:
    was_idle = False
    while not await stopping.wait_over(LOOK_SECONDS):
        with within(EVERYTHING):
            is_idle = not await runtime.current().database.read(
                lambda conn: run_rows.any_in_flight(conn, thread_id)
            )
        # Its last events are on their way after the first look.
        if is_idle and was_idle:
            return
        was_idle = is_idle


def resume_event(path: str, last_event_id: str | None, *, reason: str = REASON) -> bytes:
    """Encode the last server-sent event of a stream that the server ends.

    Args:
        path: The path at which the client continues.
        last_event_id: The event after which it continues; None: with the first one.
        reason: What happened, and what the client does.
    """
    data = orjson.dumps(_resume(path, last_event_id, reason))
    lines = [b"event: " + RESUME.encode(), b"data: " + data]
    if last_event_id is not None:
        lines.append(b"id: " + last_event_id.encode())
    return b"\r\n".join([*lines, b"retry: 1000", b"", b""])


def _resume(path: str, last_event_id: str | None, reason: str) -> dict[str, Any]:
    return {"type": RESUME, "reason": reason, "path": path, "last_event_id": last_event_id}


async def hand_over_socket(
    socket: WebSocket, serve: Callable[[WebSocket], Awaitable[None]]
) -> None:
    """Serve the WebSocket of a thread. When the process stops, end it as a stream of the thread.

    Args:
        socket: The WebSocket.
        serve: Serves it, and returns when it is closed.
    """
    try:
        thread_id = UUID(socket.path_params["thread_id"])
    except ValueError:
        await socket.accept()
        problem = {"error": "invalid_argument", "message": "The thread ID must be a UUID"}
        await socket.send_json({"type": "error", "id": None, **problem})
        await socket.close(1008)
        return
    extension = socket.scope.get("extensions", {}).get(OUTLIVE)
    if extension is not None:
        extension["outlive"]()
    last: int | None = None
    position = StreamPosition()

    async def send(message: Message) -> None:
        nonlocal last
        await socket.send(message)
        text = message.get("text") or ""
        if '"seq":' in text:
            last = orjson.loads(text).get("seq", last)

    async def end() -> None:
        await wait_end(thread_id, position)
        metrics.process().cut_streams.inc()
        told = None if last is None else str(last)
        # The client may disconnect meanwhile.
        with suppress(OSError, RuntimeError, WebSocketDisconnect):
            reason = position.reason or REASON
            await socket.send_json(_resume(socket.scope["path"], told, reason))
            await socket.close(SERVICE_RESTART, reason.partition(".")[0])

    ending = asyncio.create_task(end(), name="end-of-socket")
    token = place.set(position)
    try:
        await serve(WebSocket(socket.scope, socket.receive, send))
    finally:
        place.reset(token)
        ending.cancel()
        await asyncio.wait([ending])
