"""Ends of streams: end the event streams of `langgraph_api` as `http.stream_ends` says."""

from typing import Any
from uuid import UUID

from starlette.types import Message, Receive, Scope, Send

from langgraph_runtime_sql.stopping import StreamHandedOver, StreamPosition, place
from langgraph_runtime_sql.telemetry import metrics
from threadhold.http.stream_ends import REASON, resume_event, wait_end


def call(stock: Any) -> Any:
    """Return `__call__` of the response, which counts the stream and hands it over at a stop."""

    async def __call__(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
        self.sender = _Sender(self, scope, send)
        token = place.set(self.sender.place)
        counted = metrics.process()
        counted.streams.inc()
        try:
            await stock(self, scope, receive, self.sender.send)
        finally:
            place.reset(token)
            counted.streams.dec()
        await self.sender.hand_over()

    return __call__


def listen(stock: Any) -> Any:
    """Return the method that waits for the end of the stream."""

    async def _listen_for_exit_signal(self: Any) -> None:
        await self.sender.wait_end()

    return _listen_for_exit_signal


class _Sender:
    """Sends one stream, and knows where it is.

    Attributes:
        place: Where the reader of a run's stream is.
    """

    def __init__(self, response: Any, scope: Scope, send: Send) -> None:
        self.place = StreamPosition()
        self._send = send
        self._location: str | None = response.headers.get("location")
        self._path = self._location or scope["path"]
        self._thread = None if self._location else scope.get("path_params", {}).get("thread_id")
        # The last event that has been sent, and the place after it.
        self._last, self._sent = b"", self.place.id
        self._is_cut = self._is_complete = False

    async def send(self, message: Message) -> None:
        """Pass a message on, unless it completes a stream that was cut off."""
        await self._send(message)
        if message["type"] == "http.response.body":
            if not message.get("more_body"):
                self._is_complete = True
            elif not message["body"].startswith(b":"):
                self._last, self._sent = message["body"], self.place.id

    async def wait_end(self) -> None:
        """Wait until the server ends the stream: it stops, or the database cannot be used."""
        await wait_end(None if self._thread is None else UUID(self._thread), self.place)
        self._is_cut = True

    async def hand_over(self) -> None:
        """Send the last event of a stream that the server has cut off.

        Raises:
            StreamHandedOver: the stream is that of a run, so its connection must break.
        """
        if not self._is_cut or self._is_complete:
            return
        metrics.process().cut_streams.inc()
        cursor = _id_of(self._last) or (self._sent if self._location else None)
        told = None if cursor is None else cursor.decode()
        body = resume_event(self._path, told, reason=self.place.reason or REASON)
        is_last = self._location is None
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_last})
        if not is_last:
            raise StreamHandedOver


def _id_of(event: bytes) -> bytes | None:
    """Return the id of a sent event."""
    for line in event.splitlines():
        if line.startswith(b"id: "):
            return line[4:]
    return None
