"""Read server-sent events of one stream, on a connection of its own."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from bench.client import Client, HTTPFailure


@dataclass(frozen=True)
class Event:
    """A server-sent event. `received` is the time of its arrival, in ns since the epoch."""

    id: str
    name: str
    data: Any
    received: int


class Events:
    """The events of one stream, in the order of their arrival. Ends with the stream."""

    def __init__(self) -> None:
        self._buffer = b""
        self._found: asyncio.Queue[Event | None] = asyncio.Queue()

    def feed(self, data: bytes) -> None:
        """Take bytes of the answer's body."""
        received = time.time_ns()
        self._buffer += data
        *whole, self._buffer = self._buffer.replace(b"\r\n", b"\n").split(b"\n\n")
        for block in whole:
            fields = dict(line.split(b": ", 1) for line in block.splitlines() if b": " in line[:8])
            if b"data" in fields:
                self._found.put_nowait(
                    Event(
                        fields.get(b"id", b"").decode(),
                        fields.get(b"event", b"").decode(),
                        orjson.loads(fields[b"data"]),
                        received,
                    )
                )

    def end(self) -> None:
        self._found.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._found.get()) is not None:
            yield event

    async def next(self, name: str) -> Event:
        """Return the next event of this name.

        Raises:
            HTTPFailure: the stream ended before.
        """
        async for event in self:
            if event.name == name:
                return event
        raise HTTPFailure(f"the stream ended before an event {name!r}")


@asynccontextmanager
async def stream(
    port: int, method: str, path: str, body: Any = None, cursor: str = ""
) -> AsyncIterator[Events]:
    """Open a stream, and close it on exit.

    Args:
        port: port of the server.
        method: of the request.
        path: of the request.
        body: of the request, as JSON.
        cursor: the `Last-Event-ID`; empty: none.
    """
    events = Events()
    headers = {"Last-Event-ID": cursor} if cursor else {}
    async with Client(port, headers=headers) as client:
        task = asyncio.ensure_future(client.request(method, path, body, events.feed))
        task.add_done_callback(lambda done: events.end())
        try:
            yield events
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
