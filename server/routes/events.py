"""Event streams: translate the stream of a run into the events of a product."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_sdk.schema import StreamPart
from langgraph_sdk.sse import BytesLineDecoder, SSEDecoder
from starlette.types import Message

from server.routes.forwarding import Answer, Request

CONTENT_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
# The platform's heartbeats are passed on, so that proxies keep an idle connection open.
HEARTBEAT = b": heartbeat\n\n"
# The last event of a stream that a stopping server ends.
RESUME = "resume"


@dataclass(frozen=True)
class Event:
    """One event for the client. `data` is sent as JSON."""

    name: str
    data: Any

    def encode(self) -> bytes:
        """Encode the event as server-sent event."""
        return f"event: {self.name}\ndata: {json.dumps(self.data)}\n\n".encode()


class Translator(Protocol):
    """Translates the stream of one run into events for the client."""

    def begin(self, thread_id: str, run_id: str) -> Iterable[Event]:
        """Return the first events, after the platform has accepted the run."""

    def follow(self, part: StreamPart) -> Iterable[Event]:
        """Return the events for one event of the run."""

    def end(self) -> Iterable[Event]:
        """Return the last events, after the run's stream has ended."""


async def stream_run(
    request: Request, path: str, run: dict[str, Any], translator: Translator
) -> None:
    """Start a run and answer with its translated stream.

    A refusal of the platform is passed on unchanged. If the client disconnects, the run continues.

    Args:
        request: The request to answer.
        path: `/threads/{thread_id}/runs/stream`.
        run: The body of the request to `path`.
        translator: Translates the run's events.
    """
    stream = _TranslatedStream(request, translator)
    body = {"on_disconnect": "continue", **run}
    if request.header(b"idempotency-key"):
        # A repeated request gets the stream from its beginning.
        body["stream_resumable"] = True
    await request.forward("POST", path, body, stream.take)


class _TranslatedStream:
    """Receives the ASGI messages of the platform's stream and sends the translated ones."""

    def __init__(self, request: Request, translator: Translator) -> None:
        self._request = request
        self._translator = translator
        self._lines = BytesLineDecoder()
        self._events = SSEDecoder()
        self._refused = False

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._refused = message["status"] != 200
            if not self._refused:
                await self._begin(message)
                return
        if self._refused:
            await self._request.send(message)
            return
        more = message.get("more_body", False)
        body = b"".join(map(self._translate, self._lines.decode(message.get("body", b""))))
        body += b"" if more else _encode(self._translator.end())
        if body or not more:
            await self._send(body, more)

    async def _begin(self, message: Message) -> None:
        answer = Answer([message])
        await self._request.send({**message, "headers": [*answer.headers, CONTENT_TYPE]})
        await self._send(_encode(self._translator.begin(*answer.run)), True)

    def _translate(self, line: bytes | bytearray | memoryview) -> bytes:
        text = bytes(line)
        if text.startswith(b":"):
            return HEARTBEAT
        part = self._events.decode(text)
        if part is None:
            return b""
        if part.event == RESUME:
            # The server stops. The run goes on, and its own events are at this path.
            return Event(RESUME, part.data).encode()
        return _encode(self._translator.follow(part))

    async def _send(self, body: bytes, more: bool) -> None:
        await self._request.send({"type": "http.response.body", "body": body, "more_body": more})


def _encode(events: Iterable[Event]) -> bytes:
    return b"".join(event.encode() for event in events)
