"""Event streams: what happens in a run, told in the events of a product."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_sdk.schema import StreamPart
from langgraph_sdk.sse import BytesLineDecoder, SSEDecoder
from starlette.types import Message

from server.routes.forwarding import Answer, Request

CONTENT_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
# It goes on while nothing else does, so that proxies keep the connection.
HEARTBEAT = b": heartbeat\n\n"


@dataclass(frozen=True)
class Event:
    """One event for the client; `data` goes as JSON."""

    name: str
    data: Any

    def encode(self) -> bytes:
        """As it is on the wire."""
        return f"event: {self.name}\ndata: {json.dumps(self.data)}\n\n".encode()


class Story(Protocol):
    """What the client is told of one run."""

    def begin(self, thread_id: str, run_id: str) -> Iterable[Event]:
        """What comes first, once the run is accepted."""

    def follow(self, part: StreamPart) -> Iterable[Event]:
        """What an event of the run means, if anything."""

    def end(self) -> Iterable[Event]:
        """What comes last, when the run streams nothing more."""


async def tell(request: Request, path: str, run: dict[str, Any], story: Story) -> None:
    """Start a run and answer with what `story` makes of its stream.

    What the platform refuses is answered as it says it. The run goes on if the client leaves.

    Args:
        path: `/threads/{thread_id}/runs/stream`.
        run: The body for it.
    """
    teller = _Teller(request, story)
    body = {"on_disconnect": "continue", **run}
    await request.forward("POST", path, body, teller.take)


class _Teller:
    """Takes the ASGI messages of the platform's stream, and sends those of ours."""

    def __init__(self, request: Request, story: Story) -> None:
        self._request = request
        self._story = story
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
        told = b"".join(map(self._line, self._lines.decode(message.get("body", b""))))
        told += b"" if more else _encode(self._story.end())
        if told or not more:
            await self._send(told, more)

    async def _begin(self, message: Message) -> None:
        headers = [*Answer([message]).headers, CONTENT_TYPE]
        *_, thread, _, run = dict(headers)[b"content-location"].decode().split("/")
        await self._request.send({**message, "headers": headers})
        await self._send(_encode(self._story.begin(thread, run)), True)

    def _line(self, line: bytes | bytearray | memoryview) -> bytes:
        text = bytes(line)
        if text.startswith(b":"):
            return HEARTBEAT
        part = self._events.decode(text)
        return b"" if part is None else _encode(self._story.follow(part))

    async def _send(self, body: bytes, more: bool) -> None:
        await self._request.send({"type": "http.response.body", "body": body, "more_body": more})


def _encode(events: Iterable[Event]) -> bytes:
    return b"".join(event.encode() for event in events)
