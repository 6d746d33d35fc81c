"""Connections: time limits and a maximum number, which uvicorn does not have.

A client must send the head of a request within `head_seconds`, and its body within
`body_seconds`. It must read an answer that waits in the buffers within `WRITE_SECONDS`.

At the maximum, a new connection replaces the one that has waited longest for a request, or for the
rest of a body. If all connections are busy, only health checks are answered on `RESERVE` more
connections; other requests get 503.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from prometheus_client import Counter, Gauge
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger(__name__)

RESERVE = 64
MAX_HEAD_BYTES = 65_536
WRITE_SECONDS = 120.0
# For the last bytes of a connection that the server closes.
LINGER_SECONDS = 5.0
WARN_SECONDS = 60.0

_OPEN = Gauge("threadhold_connections", "Open connections")
_CLOSED = Counter(
    "threadhold_connections_closed",
    "Connections that the server closed: a client was too slow, or there were too many",
    ["reason"],
)


class Guard:
    """The limits of a server's connections, and the connections that may be replaced.

    Args:
        limit: Maximum number of connections.
        health: Paths of health checks.
        head_seconds: Time for the head of a request.
        body_seconds: Time for the body of a request.
    """

    def __init__(
        self, limit: int, health: Iterable[str], head_seconds: float, body_seconds: float
    ) -> None:
        self.limit = limit
        self.health = frozenset(path.encode() for path in health)
        self.head_seconds = head_seconds
        self.body_seconds = body_seconds
        # Ordered sets, the oldest first.
        self.waiting: dict[HttpConnection, None] = {}
        self.receiving: dict[HttpConnection, None] = {}
        self._warned_at = float("-inf")
        self._shown: Collection[Any] | None = None

    def show(self, connections: Collection[Any]) -> None:
        """Let the metric show the number of the server's connections, which include WebSockets."""
        if self._shown is not connections:
            self._shown = connections
            _OPEN.set_function(lambda: len(connections))

    def make(self, **options: Any) -> "HttpConnection":
        """Make the protocol of a connection, for uvicorn."""
        return HttpConnection(self, **options)

    def find_idle(self) -> "HttpConnection | None":
        """Return the connection to replace: the oldest without a request, or with half of one."""
        return next(iter(self.waiting), None) or next(iter(self.receiving), None)

    def closed(self, reason: str) -> None:
        """Count a connection that the server closed, and log it at most once a minute."""
        _CLOSED.labels(reason).inc()
        now = time.monotonic()
        if now - self._warned_at > WARN_SECONDS:
            self._warned_at = now
            logger.warning("Connections are closed (%s); see threadhold_connections_closed", reason)


class HttpConnection(HttpToolsProtocol):
    """A connection with time limits. WebSockets leave it with their handshake."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._guard = guard
        self._is_extra = False
        self._head_bytes = 0
        # One timer at a time: for the head, the body, or the close.
        self._timer: asyncio.TimerHandle | None = None
        guard.show(self.connections)
        self._write_timer: asyncio.TimerHandle | None = None

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        guard = self._guard
        if len(self.connections) > guard.limit:
            if (idle := guard.find_idle()) is not None:
                idle.abort("replaced")
            elif len(self.connections) > guard.limit + RESERVE:
                self.abort("limit")
                return
            else:
                self._is_extra = True
        guard.waiting[self] = None
        self._arm(guard.head_seconds, self._head_expired)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._forget()
        super().handle_websocket_upgrade()

    def abort(self, reason: str) -> None:
        """Close the connection at once, without sending what is in its buffers."""
        self._guard.closed(reason)
        self._forget()
        # Now, because the transport reports the loss later.
        self.connections.discard(self)
        self.transport.abort()

    def _forget(self) -> None:
        self._guard.waiting.pop(self, None)
        self._guard.receiving.pop(self, None)
        self._disarm()
        if self._write_timer is not None:
            self._write_timer.cancel()

    # --- requests

    def data_received(self, data: bytes) -> None:
        if self in self._guard.waiting:
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            self._linger()
        elif self in self._guard.waiting:
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, "The head of the request is too large", "head_size")
            elif self._timer is None:
                # Bytes of the next request have ended uvicorn's own timer.
                self._arm(self._guard.head_seconds, self._head_expired)
        elif self in self._guard.receiving and self._timer is None:
            self._arm(self._guard.body_seconds, self._body_expired)

    def on_headers_complete(self) -> None:
        guard = self._guard
        guard.waiting.pop(self, None)
        guard.receiving[self] = None
        self._head_bytes = 0
        self._disarm()
        is_check = self.url.partition(b"?")[0] in guard.health
        if self._is_extra and not is_check:
            guard.closed("limit")
            self.app = refuse_busy
        super().on_headers_complete()
        if self._is_extra and self.cycle is not None:
            self.cycle.keep_alive = False

    def _should_upgrade(self) -> bool:
        return not self._is_extra and super()._should_upgrade()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._guard.receiving.pop(self, None)
        self._disarm()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._linger()
        elif self.cycle.response_complete:
            if self in self._guard.receiving:
                # The rest of a body that was not read.
                self._arm(LINGER_SECONDS, lambda: self.abort("body_timeout"))
            else:
                self._guard.waiting[self] = None

    # --- time limits

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._linger()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, lambda: self.abort("write_timeout"))

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _head_expired(self) -> None:
        if self._head_bytes:
            self._refuse(408, "The head of the request did not arrive in time", "head_timeout")
        else:
            self.abort("head_timeout")

    def _body_expired(self) -> None:
        if self.flow.read_paused:
            # The server itself does not read.
            self._arm(self._guard.body_seconds, self._body_expired)
        elif self.cycle.response_started:
            self.abort("body_timeout")
        else:
            # The handler gets a disconnect, and sends nothing more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._refuse(408, "The body of the request did not arrive in time", "body_timeout")

    def _refuse(self, status: int, detail: str, reason: str) -> None:
        """Answer with an error outside of any request, and close the connection."""
        self._guard.closed(reason)
        content = f'{{"detail":"{detail}"}}'
        phrases = {408: "Request Timeout", 431: "Request Header Fields Too Large"}
        head = (
            f"HTTP/1.1 {status} {phrases[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(f"{head}{content}".encode())
        self.transport.close()
        self._linger()

    def _linger(self) -> None:
        """End a closing connection whose last bytes the client does not read."""
        self._guard.waiting.pop(self, None)
        self._guard.receiving.pop(self, None)
        self._arm(LINGER_SECONDS, self.transport.abort)

    def _arm(self, seconds: float, action: Callable[[], object]) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, action)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def refuse_busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 503: all connections are busy."""
    detail = "The server has its maximum number of connections: try again"
    headers = {"Retry-After": "1", "HttpConnection": "close"}
    await JSONResponse({"detail": detail}, 503, headers)(scope, receive, send)
